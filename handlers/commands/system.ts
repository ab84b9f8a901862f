/**
 * The machine as the commands see it: time, randomness, environment, files, output and signals.
 *
 * This is the composition root. No other file reads a clock, sets a timer or draws a random number: it gets a
 * {@linkcode System} or a part of one, so that one test clock drives everything and a simulation runs the shipped code.
 *
 * @module
 */
import type { Clock } from "../../lib/runtime/clock.ts";
import type { Entropy } from "../../lib/runtime/entropy.ts";

/** Where text goes. */
export interface TextOutput {
  /** True when a person reads it on a terminal. */
  readonly isTerminal: boolean;
  /** Writes all of `text`, as it is. A reader that went away is no error: the text is then dropped. */
  write(text: string): void;
}

/** The signals that ask a process to end. */
export type StopSignal = "SIGINT" | "SIGTERM";

/** All that a command may touch of the machine, besides the network. */
export interface System {
  /** The clocks and timers. */
  readonly clock: Clock;
  /** Cryptographic randomness. */
  readonly entropy: Entropy;
  /** The environment variables that the process may read, as they were at the start. */
  readonly env: Readonly<Record<string, string>>;
  /** What the user asked for, and the log. */
  readonly stdout: TextOutput;
  /** What went wrong. */
  readonly stderr: TextOutput;
  /**
   * The text of a file, or `undefined` where there is none.
   *
   * @throws What the platform says when a file is there and cannot be read.
   */
  readTextFile(path: string): string | undefined;
  /** Ends the process at once, with this exit code. */
  exit(code: number): never;
  /**
   * Calls `handler` each time that `signal` arrives. While a handler is there, the signal does not end the process.
   *
   * @returns A function that removes the handler.
   */
  onSignal(signal: StopSignal, handler: () => void): () => void;
}

/** The longest delay that a platform timer takes, in milliseconds: a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The most bytes that the platform gives in one call. */
const ENTROPY_CHUNK_BYTES = 65_536;

/** The clocks and timers of this machine. */
export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  timer(delayMs, callback) {
    const due = performance.now() + delayMs;
    let handle: ReturnType<typeof setTimeout>;
    // The platform may fire a fraction of a millisecond early, and takes no delay over 25 days: look again on waking.
    const arm = () => {
      const left = Math.min(Math.ceil(Math.max(0, due - performance.now())), LONGEST_TIMER_MS);
      handle = setTimeout(() => performance.now() < due ? arm() : callback(), left);
    };
    arm();
    return () => clearTimeout(handle);
  },
};

/** The randomness of this machine, cryptographic. */
export const systemEntropy: Entropy = {
  bytes(length) {
    const bytes = new Uint8Array(length);
    for (let start = 0; start < length; start += ENTROPY_CHUNK_BYTES) {
      crypto.getRandomValues(bytes.subarray(start, start + ENTROPY_CHUNK_BYTES));
    }
    return bytes;
  },
  uuid: () => crypto.randomUUID(),
  fraction() {
    const [word = 0] = crypto.getRandomValues(new Uint32Array(1));
    return word / 2 ** 32;
  },
};

/** The part of a platform's output stream that is needed here. */
export interface OutputStream {
  /** True on a terminal. */
  isTerminal(): boolean;
  /** Writes what it can at once, and answers with the number of bytes. */
  writeSync(bytes: Uint8Array): number;
}

/** Writes text to a stream of the platform. */
export function textOutput(stream: OutputStream): TextOutput {
  const encoder = new TextEncoder();
  return {
    isTerminal: stream.isTerminal(),
    write(text) {
      let rest = encoder.encode(text);
      try {
        while (rest.length > 0) rest = rest.subarray(stream.writeSync(rest));
      } catch (error) {
        // `holdfast config | head` closes the pipe: that is the reader's choice, not a fault of this process.
        if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
      }
    },
  };
}

/** The real machine. Reads the environment once, so call it after the environment is in its final form. */
export function productionSystem(): System {
  return {
    clock: systemClock,
    entropy: systemEntropy,
    env: Deno.env.toObject(),
    stdout: textOutput(Deno.stdout),
    stderr: textOutput(Deno.stderr),
    readTextFile(path) {
      try {
        return Deno.readTextFileSync(path);
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return undefined;
        throw error;
      }
    },
    exit: (code) => Deno.exit(code),
    onSignal(signal, handler) {
      Deno.addSignalListener(signal, handler);
      return () => Deno.removeSignalListener(signal, handler);
    },
  };
}
