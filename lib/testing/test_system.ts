/**
 * A machine for tests of an application: its clock stands still, its files are in memory, and it ends nothing.
 *
 * @module
 */

import type { HostSystem } from "../host/hooks.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import { seededEntropy } from "./entropy.ts";

/** What a {@linkcode TestSystem} takes. */
export interface TestSystemOptions {
  readonly clock: Clock;
  /** @default {seededEntropy(1)} */
  readonly entropy?: Entropy;
  /** The environment variables. @default {{}} */
  readonly env?: Readonly<Record<string, string>>;
  /** Files, by path. @default {{}} */
  readonly files?: Readonly<Record<string, string>>;
  /** A person reads the output. @default {false} */
  readonly isTerminal?: boolean;
}

/**
 * A machine that remembers what was done to it.
 *
 * ```ts
 * import { createHost } from "@holdfast/holdfast";
 * import { TestClock } from "@holdfast/holdfast/testing";
 *
 * const clock = new TestClock();
 * const system = new TestSystem({ clock, files: { "holdfast.yaml": "host: { role: web }" } });
 * const host = createHost({ system, listen: null });
 * await host.start();
 * (await host.request("/ready")).status; // 200
 * system.signal("SIGTERM");
 * await clock.advance(5_000);
 * await host.done; // 0
 * ```
 */
export class TestSystem implements HostSystem {
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly env: Readonly<Record<string, string>>;
  /** Files, by path: set one to write it. */
  readonly files: Map<string, string>;
  /** Keeps what is written. */
  readonly stdout: HostSystem["stdout"];
  /** The codes that the program wanted to exit with at once. */
  readonly exits: number[] = [];
  readonly #handlers = new Map<string, Set<() => void>>();
  #written = "";

  constructor(options: TestSystemOptions) {
    this.clock = options.clock;
    this.entropy = options.entropy ?? seededEntropy(1);
    this.env = options.env ?? {};
    this.files = new Map(Object.entries(options.files ?? {}));
    this.stdout = {
      isTerminal: options.isTerminal ?? false,
      write: (text) => {
        this.#written += text;
      },
    };
  }

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
