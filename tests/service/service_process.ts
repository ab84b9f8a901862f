/**
 * The program itself: `serve` as a process, with the permissions of its task, against a cluster.
 *
 * @module
 */

import { TextLineStream } from "./text_lines.ts";
import { z } from "zod";
import manifest from "../../deno.json" with { type: "json" };
import { pathOf, ROOT } from "../checks/shell.ts";

/** One line of the log, as it is written. */
export const logLine = z.looseObject({ msg: z.string(), level: z.string() });

/** One line of the log. */
export type LogLine = z.infer<typeof logLine>;

/** How a process is started. */
export interface ServiceProcessOptions {
  /** The path of the kubeconfig. */
  readonly kubeconfig: string;
  /** The paths of the certificate and its key. */
  readonly certFile: string;
  readonly keyFile: string;
  /** The namespace of the election Lease. */
  readonly namespace: string;
  /** More variables of the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** A module that runs in the process before the program. */
  readonly preload?: URL;
  /** What is started in the place of the task. It gets no variable of this process. */
  readonly program?: Program;
}

/** A program that serves. */
export interface Program {
  /** The file that is executed. */
  readonly command: string;
  readonly args: readonly string[];
  /** The folder that it is started in. */
  readonly folder: string;
}

/** How long a process may take to come up, or to write a line. Generous: the machine may be busy. */
const PATIENCE_MS = 30_000;

/** The arguments of the task `serve`, behind `deno`. */
export function serveArguments(): readonly string[] {
  const [deno, ...args] = manifest.tasks.serve.command.split(" ");
  if (deno !== "deno") throw new Error("Cannot start the task as it does not begin with 'deno'");
  return args;
}

/** A running service. */
export class ServiceProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #lines: LogLine[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #reading: Promise<unknown>;
  #errors = "";

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.#reading = Promise.all([this.#readLog(), this.#readErrors()]);
  }

  /** Starts a service and waits until it listens. */
  static async start(options: ServiceProcessOptions): Promise<ServiceProcess> {
    const service = new ServiceProcess(spawn(options));
    try {
      await service.logged((line) => line.msg === "serving");
      return service;
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts a service that is expected to end by itself, and waits for that. */
  static async run(
    options: ServiceProcessOptions,
  ): Promise<
    { readonly code: number; readonly errors: string; readonly lines: readonly LogLine[] }
  > {
    const service = new ServiceProcess(spawn(options));
    const { code } = await service.#child.status;
    await service.#reading;
    return { code, errors: service.#errors, lines: service.#lines };
  }

  /** What it logged so far. */
  get lines(): readonly LogLine[] {
    return this.#lines;
  }

  /** The address of one of its listeners. */
  address(listener: "tls" | "metrics" | "probes" | "auxiliary"): string {
    const line = this.#lines.find((found) =>
      found.msg === "listening" && found.listener === listener
    );
    return z.string().parse(line?.addr).replace(/^(0\.0\.0\.0|\[::\])?:/, "127.0.0.1:");
  }

  /** Waits for a line of the log. */
  async logged(wanted: (line: LogLine) => boolean): Promise<LogLine> {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = this.#lines.find(wanted);
      if (found !== undefined) return found;
      const left = until - performance.now();
      const more = left > 0 && await this.#more(left);
      if (!more) {
        const log = this.#lines.map((line) => JSON.stringify(line)).join("\n");
        throw new Error(`Cannot find the log line: the log is\n${log}\n${this.#errors}`);
      }
    }
  }

  /** The process id. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Sends a signal. */
  kill(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** The exit code, when it has ended and its output is read. */
  async ended(): Promise<number> {
    const { code } = await this.#child.status;
    await this.#reading;
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
    await this.ended();
  }

  async #more(limitMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const wake = () => resolve(true);
    const timer = setTimeout(() => resolve(false), limitMs);
    this.#waiting.add(wake);
    void this.#reading.then(() => resolve(false));
    const more = await promise;
    clearTimeout(timer);
    this.#waiting.delete(wake);
    return more;
  }

  async #readLog(): Promise<void> {
    const lines = this.#child.stdout.pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream());
    for await (const line of lines) {
      this.#lines.push(logLine.parse(JSON.parse(line)));
      for (const wake of this.#waiting) wake();
    }
  }

  async #readErrors(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.#errors += text;
    }
  }
}

function spawn(options: ServiceProcessOptions): Deno.ChildProcess {
  const { kubeconfig, certFile, keyFile, namespace, preload } = options;
  const own = options.program === undefined;
  const { command, args, folder } = options.program ?? taskProgram(preload);
  return new Deno.Command(command, {
    args: [...args],
    cwd: folder,
    clearEnv: true,
    env: {
      ...(own ? inherited(["HOME", "PATH", "DENO_DIR", "DENO_COVERAGE_DIR"]) : {}),
      KUBECONFIG: kubeconfig,
      HOLDFAST__LISTEN__TLS: "127.0.0.1:0",
      HOLDFAST__LISTEN__METRICS: "127.0.0.1:0",
      HOLDFAST__LISTEN__PROBES: "127.0.0.1:0",
      HOLDFAST__LISTEN__AUXILIARY: "127.0.0.1:0",
      HOLDFAST__TLS__CERT_FILE: certFile,
      HOLDFAST__TLS__KEY_FILE: keyFile,
      HOLDFAST__DEPLOY_API__ENABLED: "true",
      HOLDFAST__KUBERNETES__NAMESPACE: namespace,
      HOLDFAST__HOST__PRESTOP_GRACE_SECS: "0",
      HOLDFAST__LOG__FORMAT: "json",
      ...options.env,
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

function taskProgram(preload: URL | undefined): Program {
  const [run = "", ...args] = serveArguments();
  const first = preload === undefined ? [] : [`--preload=${pathOf(preload)}`];
  return { command: Deno.execPath(), args: [run, ...first, ...args], folder: pathOf(ROOT) };
}

function inherited(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = Deno.env.get(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
