/**
 * The processes of a cluster, in the hands of a small shell program.
 *
 * It stands between for two reasons. When the test process dies, however it dies, the shell's input ends and it stops
 * them: no orphan is left. And a test may restart the API server without any process of its own, so that the leak
 * sanitizers stay on.
 *
 * @module
 */

const SCRIPT = new URL("keeper.sh", import.meta.url);

/** Starts and stops named processes in one folder. */
export class Keeper {
  /** Where the processes run, log and keep their files. It is removed with the keeper. */
  readonly folder: string;
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  /** The latest run of each name. */
  readonly #runs = new Map<string, string>();
  #starts = 0;

  private constructor(folder: string, process: Deno.ChildProcess) {
    this.folder = folder;
    this.#process = process;
    this.#input = process.stdin.getWriter();
  }

  /** Makes a folder and the keeper of it. */
  static async open(): Promise<Keeper> {
    const folder = await Deno.makeTempDir({ prefix: "holdfast-cluster-" });
    const process = new Deno.Command("sh", {
      args: [decodeURIComponent(SCRIPT.pathname), folder],
      stdin: "piped",
      stdout: "null",
      stderr: "inherit",
      // The runtime kills what it started when it ends a test file in disorder. This one ends by itself, with its input.
      detached: true,
    }).spawn();
    return new Keeper(folder, process);
  }

  /** Starts `program`. The same name may be started again once it is over. */
  async start(name: string, program: string, args: readonly string[]): Promise<void> {
    // Each start has files of its own, so that nothing mistakes an earlier exit for this one's.
    const run = `${name}.${++this.#starts}`;
    this.#runs.set(name, run);
    const command = [program, ...args].map(quote).join(" ");
    await Deno.writeTextFile(`${this.folder}/${run}.sh`, `exec ${command}\n`);
    await this.#say(`start ${run}`);
  }

  /** Ends a process with SIGTERM, and with SIGKILL after 5 s; returns when it is over. */
  async stop(name: string): Promise<void> {
    await this.#say(`stop ${this.#runOf(name)}`);
    await this.#waitForExit(name);
  }

  /** Ends a process with SIGKILL; returns when it is over. */
  async kill(name: string): Promise<void> {
    await this.#say(`kill ${this.#runOf(name)}`);
    await this.#waitForExit(name);
  }

  /** True once the process is over. */
  async hasExited(name: string): Promise<boolean> {
    try {
      await Deno.stat(`${this.folder}/${this.#runOf(name)}.exit`);
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return false;
      throw error;
    }
  }

  /** The last lines of what a process printed. */
  async logTail(name: string, lines = 15): Promise<string> {
    const path = `${this.folder}/${this.#runOf(name)}.log`;
    const text = await Deno.readTextFile(path).catch(() => "");
    return text.trimEnd().split("\n").slice(-lines).join("\n");
  }

  /** Stops all processes, removes the folder and returns when both is done. */
  async close(): Promise<void> {
    await this.#input.close();
    await this.#process.status;
  }

  #runOf(name: string): string {
    const run = this.#runs.get(name);
    if (run === undefined) throw new Error(`Cannot find the process '${name}': start it first`);
    return run;
  }

  async #say(line: string): Promise<void> {
    await this.#input.write(new TextEncoder().encode(`${line}\n`));
  }

  async #waitForExit(name: string): Promise<void> {
    while (!await this.hasExited(name)) await pause(20);
  }
}

/** Waits in real time: for what real processes need. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
