/**
 * The Go operator of this folder as a process: built with the Go that built the API server, and run beside the service.
 *
 * @module
 */

import { z } from "zod";
import { TextLineStream } from "../../service/text_lines.ts";
import type { RoleRule } from "../access.ts";
import { printLine, REQUIRED_VARIABLE } from "../binaries.ts";

const MODULE_FOLDER = new URL("../", import.meta.url);
/** How long the operator may take to say something. Generous: the machine may be busy. */
const PATIENCE_MS = 30_000;

const saying = z.object({ state: z.string(), detail: z.string() });

/** One line that the operator printed. */
export type Saying = z.infer<typeof saying>;

/** What docs/operator-integration.md says that an operator needs, and no more. */
export const operatorRules: readonly RoleRule[] = [
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    verbs: ["get", "list", "update"],
  },
  { apiGroups: ["shipstream.io"], resources: ["mysqlfailovergroups"], verbs: ["get", "patch"] },
  { apiGroups: ["shipstream.io"], resources: ["mysqlfailovergroups/status"], verbs: ["patch"] },
];

/** True when there is a Go to build the operator with. Otherwise one line says so. */
export async function hasGo(): Promise<boolean> {
  try {
    if ((await go(["version"]).output()).success) return true;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  if (Deno.env.get(REQUIRED_VARIABLE) === "required") {
    throw new Error("Cannot test the Go operator as there is no Go to build it");
  }
  printLine("The tests of the Go operator are skipped: there is no Go to build it");
  return false;
}

/** Builds the operator. @param file Where it is put. */
export async function buildOperator(file: string): Promise<void> {
  const { success, stderr } = await go(["build", "-trimpath", "-o", file, "./operator"]).output();
  if (!success) {
    throw new Error(`Cannot build the operator: ${new TextDecoder().decode(stderr)}`);
  }
}

function go(args: string[]): Deno.Command {
  return new Deno.Command("go", {
    args,
    cwd: MODULE_FOLDER,
    env: { CGO_ENABLED: "0" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

/** How an operator is started. */
export interface OperatorOptions {
  readonly program: string;
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly operation: "OrderedUpdate" | "RestoreInPlace";
  /** Stops between the admission and the phase, until {@linkcode OperatorProcess.goOn}. @default {false} */
  readonly step?: boolean;
}

/** A running operator. */
export class OperatorProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #sayings: Saying[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #reading: Promise<unknown>;
  #errors = "";

  constructor({ program, kubeconfig, namespace, operation, step = false }: OperatorOptions) {
    this.#child = new Deno.Command(program, {
      args: [
        ...["-namespace", namespace, "-group", "orders", "-operation", operation],
        ...(step ? ["-step"] : []),
      ],
      clearEnv: true,
      env: { KUBECONFIG: kubeconfig },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#reading = Promise.all([this.#readSayings(), this.#readErrors()]);
  }

  /** What it said so far. */
  get states(): readonly string[] {
    return this.#sayings.map(({ state }) => state);
  }

  /** Waits until it says that it is in a state. */
  async says(state: string): Promise<Saying> {
    const late = setTimeout(() => this.kill(), PATIENCE_MS);
    try {
      for (;;) {
        const found = this.#sayings.find((one) => one.state === state);
        if (found !== undefined) return found;
        if (!await this.#more()) {
          throw new Error(`Cannot go on as the operator did not say "${state}": ${this.#all()}`);
        }
      }
    } finally {
      clearTimeout(late);
    }
  }

  /** Lets it go on from its admission to its phase. */
  async goOn(): Promise<void> {
    const writer = this.#child.stdin.getWriter();
    await writer.write(new TextEncoder().encode("\n"));
    writer.releaseLock();
  }

  /** Ends it without a chance to tidy up. */
  kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
  }

  /** The exit code, once it has ended and its output is read. */
  async ended(): Promise<number> {
    const { code } = await this.#child.status;
    await this.#reading;
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    await this.ended();
    await this.#child.stdin.close().catch(() => {});
  }

  #all(): string {
    return `${JSON.stringify(this.#sayings)} ${this.#errors}`;
  }

  #more(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waiting.add(() => resolve(true));
      void this.#reading.then(() => resolve(false));
    });
  }

  async #readSayings(): Promise<void> {
    const lines = this.#child.stdout.pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream());
    for await (const line of lines) {
      this.#sayings.push(saying.parse(JSON.parse(line)));
      for (const wake of this.#waiting) wake();
      this.#waiting.clear();
    }
  }

  async #readErrors(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.#errors += text;
    }
  }
}
