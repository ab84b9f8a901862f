/** The example application as a process. */

import { z } from "zod";
import { pathOf, ROOT } from "../checks/shell.ts";
import { eventually } from "../host/support.ts";
import { TextLineStream } from "../service/text_lines.ts";

const Line = z.looseObject({ msg: z.string(), addr: z.string().optional() });

/** A process of the example, and the addresses on which it listens. */
export class ExampleProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<void>;
  readonly lines: z.infer<typeof Line>[] = [];

  constructor(args: readonly string[], env: Record<string, string> = {}) {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "--allow-all", "--quiet", "deploy/examples/app/main.ts", ...args],
      cwd: pathOf(ROOT),
      env,
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#reading = this.#read();
  }

  /** Waits until so many ports have an application that is ready; gives their addresses. */
  async ready(count: number): Promise<string[]> {
    const told = (msg: string) => this.lines.filter((line) => line.msg === msg);
    await eventually(() => told("ready").length === count, "the example is ready", 30_000);
    return told("listening").flatMap(({ addr }) => addr === undefined ? [] : [`http://${addr}`]);
  }

  /** Asks it to end; gives the exit code. */
  async stop(): Promise<number> {
    this.#child.kill("SIGTERM");
    const { code } = await this.#child.status;
    await this.#reading;
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await this.#child.status;
    await this.#reading;
  }

  async #read(): Promise<void> {
    const lines = this.#child.stdout.pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream());
    for await (const line of lines) this.lines.push(Line.parse(JSON.parse(line)));
  }
}
