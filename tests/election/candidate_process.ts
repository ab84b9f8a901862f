/**
 * Candidates as processes on a real API server, and what they believe.
 *
 * @module
 */

import assert from "node:assert/strict";
import { LEASES } from "../../lib/kube/mod.ts";
import type { ElectionTiming } from "../../lib/election/mod.ts";
import type { RoleRule } from "../cluster/access.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { pause } from "../cluster/keeper.ts";
import { TextLineStream } from "../service/text_lines.ts";
import { parseSample, type Reign, reignsOf, type Sample } from "./beliefs.ts";
import type { CandidateOrders } from "./candidate_program.ts";

const PROGRAM = new URL("candidate_program.ts", import.meta.url);
const LEASE_NAME = "app";

/** How long something may take that does come. Generous: the machine may be busy. */
const PATIENCE_MS = 60_000;

/** What a candidate is. */
export interface CandidateKind {
  /** The program that takes the orders. */
  readonly program: URL;
  /** What its service account is allowed. */
  readonly rules: readonly RoleRule[];
}

/** An elector and nothing else. Its Role names the Lease, and has no more than the election needs. */
const ELECTOR: CandidateKind = {
  program: PROGRAM,
  rules: [{
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    resourceNames: [LEASE_NAME],
    verbs: ["get", "create", "update", "patch", "list", "watch"],
  }],
};

/** One candidate. */
export class CandidateProcess {
  readonly identity: string;
  readonly samples: Sample[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<void>;
  #ended = false;

  constructor(program: URL, orders: CandidateOrders) {
    this.identity = orders.identity;
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "--quiet", "--allow-all", program.pathname],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#reading = this.#read(orders);
  }

  /** True while its newest answer is yes. */
  get leads(): boolean {
    return !this.#ended && (this.samples.at(-1)?.token ?? null) !== null;
  }

  signal(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** Its exit code, when it has ended and all that it wrote is read. */
  async ended(): Promise<number> {
    const { code } = await this.#child.status;
    await this.#reading;
    return code;
  }

  /** Ends it at once, whatever it does. */
  async kill(): Promise<void> {
    if (!this.#ended) this.#child.kill("SIGKILL");
    await this.ended();
  }

  async #read(orders: CandidateOrders): Promise<void> {
    const input = this.#child.stdin.getWriter();
    await input.write(new TextEncoder().encode(JSON.stringify(orders)));
    await input.close();
    const lines = this.#child.stdout.pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream());
    const text: string[] = [];
    for await (const line of lines) {
      text.push(line);
      // A process that was killed may have written half a line.
      if (text.length > 1) this.samples.push(parseSample(text.shift() ?? ""));
    }
    this.#ended = true;
  }
}

/** The candidates of one Lease, in a namespace and with a service account of their own. */
export class CandidateProcesses implements AsyncDisposable {
  readonly all: CandidateProcess[] = [];
  readonly #cluster: Cluster;
  readonly #orders: Omit<CandidateOrders, "identity">;

  readonly #program: URL;

  private constructor(
    cluster: Cluster,
    program: URL,
    orders: Omit<CandidateOrders, "identity">,
  ) {
    this.#cluster = cluster;
    this.#program = program;
    this.#orders = orders;
  }

  /** Prepares a namespace. @param kind What the candidates are. @default {electors} */
  static async in(
    cluster: Cluster,
    namespace: string,
    timing: ElectionTiming,
    { program, rules }: CandidateKind = ELECTOR,
  ): Promise<CandidateProcesses> {
    const subject = { namespace, serviceAccount: "app" };
    await cluster.createNamespace(namespace);
    await cluster.createServiceAccount(namespace, subject.serviceAccount);
    await cluster.grant({ subject, namespace, rules });
    return new CandidateProcesses(cluster, program, {
      url: cluster.url,
      caPem: cluster.caPem,
      token: await cluster.token(subject),
      namespace,
      leaseName: LEASE_NAME,
      timing: { ...timing },
    });
  }

  /** Starts a candidate and waits until it runs. */
  async start(identity: string): Promise<CandidateProcess> {
    const process = new CandidateProcess(this.#program, { ...this.#orders, identity });
    this.all.push(process);
    await until(`${identity} to run`, () => process.samples.length > 0);
    return process;
  }

  /** Waits until one of these leads (of all, when none is named), and answers with it. */
  async leader(among: readonly CandidateProcess[] = this.all): Promise<CandidateProcess> {
    let leader: CandidateProcess | undefined;
    await until("a leader", () => {
      leader = among.find((process) => process.leads);
      return leader !== undefined;
    });
    if (leader === undefined) throw new Error("Cannot find a leader");
    return leader;
  }

  /** All terms that any of them believed in. */
  reigns(): Reign[] {
    return reignsOf(new Map(this.all.map(({ identity, samples }) => [identity, samples])));
  }

  /** How often the holder changed, as the Lease says. */
  async transitions(): Promise<number> {
    const name = { namespace: this.#orders.namespace, name: LEASE_NAME };
    const signal = new AbortController().signal;
    return (await this.#cluster.adminApi.get(LEASES, name, { signal })).spec?.leaseTransitions ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map((process) => process.kill()));
  }
}

/** One candidate more, then one old one less, as a Deployment rolls its pods. */
export async function replaceOneByOne(
  processes: CandidateProcesses,
  old: readonly CandidateProcess[],
): Promise<void> {
  for (const [at, replica] of old.entries()) {
    await processes.start(`new-${at + 1}`);
    await pause(500);
    replica.signal("SIGTERM");
    assert.equal(await replica.ended(), 0);
  }
}

/** Waits in real time until it holds. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS;
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`Cannot wait any longer for ${what}`);
    await pause(5);
  }
}
