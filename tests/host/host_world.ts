/** A host on a test clock, and the machine that it believes in. */

import { type Config, configSchema } from "../../lib/config/schema.ts";
import type { HostSystem } from "../../lib/host/hooks.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { seededEntropy, TestClock } from "../../lib/testing/mod.ts";

/** A machine that remembers what was done to it. */
export class FakeSystem implements HostSystem {
  readonly clock: Clock;
  readonly entropy = seededEntropy(5);
  readonly env: Record<string, string>;
  readonly files = new Map<string, string>();
  readonly exits: number[] = [];
  readonly #handlers = new Map<string, Set<() => void>>();
  #written = "";

  constructor(clock: Clock, env: Record<string, string> = {}) {
    this.clock = clock;
    this.env = env;
  }

  readonly stdout = {
    isTerminal: false,
    write: (text: string) => {
      this.#written += text;
    },
  };

  /** All that was written. */
  get written(): string {
    return this.#written;
  }

  readTextFile(path: string): string | undefined {
    return this.files.get(path);
  }

  exit(code: number): void {
    this.exits.push(code);
  }

  onSignal(signal: string, handler: () => void): () => void {
    const handlers = this.#handlers.get(signal) ?? new Set();
    this.#handlers.set(signal, handlers.add(handler));
    return () => handlers.delete(handler);
  }

  /** Sends a signal. */
  signal(name: "SIGINT" | "SIGTERM"): void {
    for (const handler of [...this.#handlers.get(name) ?? []]) handler();
  }
}

/** A configuration with only what a test says about hosts. */
export function hostConfig(host: Record<string, unknown> = {}): Config {
  return configSchema.parse({ host: { listen: "127.0.0.1:0", ...host } });
}

/** A test clock and its machine. */
export function machine(env: Record<string, string> = {}) {
  const clock = new TestClock();
  return { clock, system: new FakeSystem(clock, env) };
}

/** The status of an answer, and its body. */
export async function answerOf(answer: Promise<Response> | Response): Promise<[number, unknown]> {
  const response = await answer;
  const text = await response.text();
  return [
    response.status,
    response.headers.get("Content-Type")?.startsWith("application/json") ? JSON.parse(text) : text,
  ];
}
