/**
 * The program as a process, with the permissions of its tasks: for commands that a user runs beside a service.
 *
 * @module
 */

import { pathOf, ROOT } from "../../checks/shell.ts";

/** How long a process may take to print something. Generous: the machine may be busy. */
const PATIENCE_MS = 30_000;

/** What is left of a process that ended. */
export interface ProcessEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running command. */
export class HoldfastProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<unknown>;
  readonly #written = { stdout: "", stderr: "" };
  #onText = () => {};

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.#reading = Promise.all([this.#read("stdout"), this.#read("stderr")]);
  }

  /** Starts a command. It sees of this process's environment what it needs to start, and `env`. */
  static start(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ): HoldfastProcess {
    const kept = ["HOME", "PATH", "DENO_DIR", "DENO_COVERAGE_DIR"].flatMap((name) => {
      const value = Deno.env.get(name);
      return value === undefined ? [] : [[name, value]];
    });
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-q", "-P=serve", "--no-prompt", "main.ts", ...args],
      cwd: pathOf(ROOT),
      clearEnv: true,
      env: { ...Object.fromEntries(kept), NO_COLOR: "1", ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    return new HoldfastProcess(child);
  }

  /** Runs a command to its end. */
  static async run(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ): Promise<ProcessEnd> {
    await using process = HoldfastProcess.start(args, env);
    return await process.ended();
  }

  /** What it printed so far. */
  get stdout(): string {
    return this.#written.stdout;
  }

  /** Waits until it has printed something. */
  async printed(wanted: RegExp): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = () =>
      reject(
        new Error(`Cannot find ${wanted} in\n${this.#written.stdout}\n${this.#written.stderr}`),
      );
    const look = () => void (wanted.test(this.#written.stdout) && resolve());
    const timer = setTimeout(fail, PATIENCE_MS);
    this.#onText = look;
    void this.#reading.then(fail);
    look();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends a signal. */
  kill(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** What it left, when it has ended. */
  async ended(): Promise<ProcessEnd> {
    const { code } = await this.#child.status;
    await this.#reading;
    return { code, ...this.#written };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
    await this.ended();
  }

  async #read(name: "stdout" | "stderr"): Promise<void> {
    for await (const text of this.#child[name].pipeThrough(new TextDecoderStream())) {
      this.#written[name] += text;
      this.#onText();
    }
  }
}
