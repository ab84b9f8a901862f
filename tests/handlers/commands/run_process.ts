/**
 * `holdfast run` as a process, with the permissions of its set.
 *
 * @module
 */

import { pathOf, ROOT } from "../../checks/shell.ts";

/** How a run ended. */
export interface RunEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A run that is under way. */
export class RunProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<unknown>;
  readonly #waiting = new Set<() => void>();
  stdout = "";
  stderr = "";

  /** Starts `holdfast run` with these arguments. */
  constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-q", "-P=run", "--no-prompt", `${pathOf(ROOT)}/main.ts`, "run", ...args],
      env: { NO_COLOR: "1", ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#reading = Promise.all([
      this.#read(this.#child.stdout, (text) => this.stdout += text),
      this.#read(this.#child.stderr, (text) => this.stderr += text),
    ]);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** The process id of the command, which must write `pid N` on its output. */
  async commandPid(): Promise<number> {
    const [, pid] = await this.said(/^pid (\d+)$/m);
    return Number(pid);
  }

  kill(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** Waits for a text on either output. */
  async said(pattern: RegExp, limitMs = 30_000): Promise<RegExpExecArray> {
    const until = performance.now() + limitMs;
    for (;;) {
      const found = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
      if (found !== null) return found;
      const left = until - performance.now();
      if (left <= 0 || !await this.#more(left)) {
        throw new Error(`Cannot find ${pattern}\n${this.stdout}\n${this.stderr}`);
      }
    }
  }

  async ended(): Promise<RunEnd> {
    const { code } = await this.#child.status;
    await this.#reading;
    const { stdout, stderr } = this;
    return { code, stdout, stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGCONT");
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
    await this.ended();
  }

  async #more(limitMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const wake = () => resolve(true);
    const timer = setTimeout(() => resolve(true), limitMs);
    this.#waiting.add(wake);
    void this.#reading.then(() => resolve(false));
    const more = await promise;
    clearTimeout(timer);
    this.#waiting.delete(wake);
    return more;
  }

  async #read(
    stream: ReadableStream<Uint8Array<ArrayBuffer>>,
    take: (text: string) => void,
  ): Promise<void> {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      take(text);
      for (const wake of this.#waiting) wake();
    }
  }
}

/** The processes of a group that still run. What has ended and waits to be collected is gone. */
export async function livingOf(group: number): Promise<number[]> {
  const living: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    let stat: string;
    try {
      stat = await Deno.readTextFile(`/proc/${name}/stat`);
    } catch {
      continue;
    }
    // After the name, which stands in brackets and may hold anything: state, parent, group.
    const [state, , ofGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (Number(ofGroup) === group && state !== "Z" && state !== "X") living.push(Number(name));
  }
  return living;
}

/** Waits until a group is gone. */
export async function untilGone(group: number, limitMs: number): Promise<void> {
  const until = performance.now() + limitMs;
  while ((await livingOf(group)).length > 0) {
    if (performance.now() > until) throw new Error(`Cannot go on as group ${group} still runs`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
