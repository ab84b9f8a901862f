/**
 * The supervisor's side of its guard.
 *
 * @module
 */

import { type Clock, startDeadline } from "../runtime/clock.ts";
import { TextLines } from "./text_lines.ts";
import { formatOrder, type GuardOrder, parseReady } from "./guard_protocol.ts";
import type { CommandLine } from "./process_group.ts";
import { onGuardClock } from "./rules.ts";

/** The guard did not start. */
export class GuardError extends Error {
  override readonly name = "GuardError";
}

/** What a supervisor tells its guard. */
export interface ChildGuard {
  /** Moves the kill deadline, in milliseconds on this process's monotonic clock. */
  killAt(deadlineMs: number): void;
  /** Names the group to kill. */
  watch(group: number): void;
  /** The group is gone. */
  done(): Promise<void>;
}

/** How long a guard may take to start, in milliseconds. */
const START_MS = 15_000;

/** A guard that runs. */
export class GuardProcess implements ChildGuard, AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #orders: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #encoder = new TextEncoder();
  readonly #guardMs: number;
  readonly #heardMs: number;
  #writing: Promise<unknown> = Promise.resolve();
  #ended = false;

  private constructor(child: Deno.ChildProcess, guardMs: number, heardMs: number) {
    this.#child = child;
    this.#orders = child.stdin.getWriter();
    this.#guardMs = guardMs;
    this.#heardMs = heardMs;
  }

  /**
   * Starts a guard and waits until it is ready.
   *
   * @param command The program that calls {@linkcode guard}.
   * @throws {GuardError}
   */
  static async start(command: CommandLine, clock: Clock): Promise<GuardProcess> {
    let child: Deno.ChildProcess;
    try {
      child = new Deno.Command(command.path, {
        args: [...command.args],
        detached: true,
        stdin: "piped",
        stdout: "piped",
        stderr: "null",
      }).spawn();
    } catch (cause) {
      throw new GuardError("Cannot start the guard process: nothing was acquired", { cause });
    }
    using limit = startDeadline(clock, START_MS);
    const onLimit = () => child.kill("SIGKILL");
    limit.signal.addEventListener("abort", onLimit, { once: true });
    try {
      const lines = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLines());
      const reader = lines.getReader();
      const { value = "" } = await reader.read();
      const heardMs = clock.monotonic();
      const guardMs = parseReady(value);
      await reader.cancel();
      if (guardMs !== null) return new GuardProcess(child, guardMs, heardMs);
    } finally {
      limit.signal.removeEventListener("abort", onLimit);
    }
    await child.stdin.close().catch(() => {});
    await child.status;
    throw new GuardError(
      "Cannot start the guard process as it did not say ready: nothing was acquired",
    );
  }

  /** The guard's process id. */
  get pid(): number {
    return this.#child.pid;
  }

  killAt(deadlineMs: number): void {
    const atMs = onGuardClock(deadlineMs, this.#guardMs, this.#heardMs);
    this.#send({ type: "kill-at", atMs });
  }

  watch(group: number): void {
    this.#send({ type: "watch", group });
  }

  async done(): Promise<void> {
    if (this.#ended) return;
    this.#send({ type: "done" });
    this.#ended = true;
    await this.#writing;
    await this.#orders.close().catch(() => {});
    await this.#child.status;
  }

  /** Ends the guard, which kills the group that it watches unless {@linkcode GuardProcess.done} came before. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#writing;
    await this.#orders.close().catch(() => {});
    await this.#child.status;
  }

  /** A guard that was killed takes no orders. This process still stops the child by itself. */
  #send(order: GuardOrder): void {
    if (this.#ended) return;
    const bytes = this.#encoder.encode(formatOrder(order));
    this.#writing = this.#orders.write(bytes).catch(() => {});
  }
}
