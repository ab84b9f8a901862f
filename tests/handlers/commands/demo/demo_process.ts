/**
 * The demo as a process: with the arguments and the permissions of its task, and a folder for temporary files of its own.
 *
 * @module
 */

import manifest from "../../../../deno.json" with { type: "json" };
import { pathOf, ROOT } from "../../../checks/shell.ts";
import { TextLineStream } from "../../../service/text_lines.ts";

/** How long a demo may take to get somewhere. Generous: the machine may be busy. */
const PATIENCE_MS = 60_000;

/** The last line of a demo that stays up. */
const LAST_LINE = /^kubectl get events/;

/** What differs between two demos. */
export interface DemoProcessOptions {
  /** What stands before the command, behind `deno`. @default {the task's own} */
  readonly program?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** What a demo that ended left. */
export interface DemoEnd {
  readonly code: number;
  readonly lines: readonly string[];
  readonly errors: string;
  /** What is left in its folder for temporary files. */
  readonly left: readonly string[];
}

/** A running demo. */
export class DemoProcess implements AsyncDisposable {
  /** The folder that the demo takes for the system's folder of temporary files. */
  readonly folder: string;
  readonly #child: Deno.ChildProcess;
  readonly #lines: string[] = [];
  readonly #reading: Promise<unknown>;
  #errors = "";
  #onLine = () => {};

  private constructor(folder: string, child: Deno.ChildProcess) {
    this.folder = folder;
    this.#child = child;
    this.#reading = Promise.all([this.#readLines(), this.#readErrors()]);
  }

  /** Starts a demo. */
  static async start(
    args: readonly string[],
    { program, env = {} }: DemoProcessOptions = {},
  ): Promise<DemoProcess> {
    const folder = await Deno.makeTempDir({ prefix: "demo-test-" });
    // A program that is no file of the project must not write into the data of what is covered.
    const coverage = program === undefined ? Deno.env.get("DENO_COVERAGE_DIR") : undefined;
    const child = new Deno.Command(Deno.execPath(), {
      args: [...program ?? taskProgram(), "demo", ...args],
      cwd: pathOf(ROOT),
      clearEnv: true,
      env: {
        HOME: Deno.env.get("HOME") ?? folder,
        TMPDIR: folder,
        NO_COLOR: "1",
        ...(coverage === undefined ? {} : { DENO_COVERAGE_DIR: coverage }),
        ...env,
      },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    return new DemoProcess(folder, child);
  }

  /** Runs a demo to its end. */
  static async run(args: readonly string[], options?: DemoProcessOptions): Promise<DemoEnd> {
    await using demo = await DemoProcess.start(args, options);
    return await demo.ended();
  }

  /** What it printed so far. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Waits until the story is over and all hints are printed. */
  ready(): Promise<void> {
    return this.printed(LAST_LINE);
  }

  /** Waits for a line. */
  async printed(wanted: RegExp): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = () => void (this.#lines.some((line) => wanted.test(line)) && resolve());
    const fail = () => reject(new Error(`Cannot go on:\n${this.#lines.join("\n")}${this.#errors}`));
    const timer = setTimeout(fail, PATIENCE_MS);
    this.#onLine = look;
    void this.#reading.then(fail);
    look();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The lines from one to another, or to the end, both left out and without blank ones. */
  between(first: string, last?: string): readonly string[] {
    const start = this.#lines.indexOf(first);
    const end = last === undefined ? undefined : this.#lines.indexOf(last, start);
    return this.#lines.slice(start + 1, end).filter((line) => line !== "");
  }

  /** Sends a signal. */
  kill(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** What it left, when it has ended. */
  async ended(): Promise<DemoEnd> {
    const { code } = await this.#child.status;
    await this.#reading;
    const left: string[] = [];
    for await (const { name } of Deno.readDir(this.folder)) left.push(name);
    return { code, lines: this.#lines, errors: this.#errors, left };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
    await this.#child.status;
    await this.#reading;
    await Deno.remove(this.folder, { recursive: true });
  }

  async #readLines(): Promise<void> {
    const text = this.#child.stdout.pipeThrough(new TextDecoderStream());
    for await (const line of text.pipeThrough(new TextLineStream())) {
      this.#lines.push(line);
      this.#onLine();
    }
  }

  async #readErrors(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.#errors += text;
    }
  }
}

/** The arguments of the task `demo`, without the command itself. */
function taskProgram(): readonly string[] {
  const [deno, ...args] = manifest.tasks.demo.command.split(" ");
  if (deno !== "deno" || args.pop() !== "demo") {
    throw new Error("Cannot start the task as it must be 'deno run … demo'");
  }
  return args;
}
