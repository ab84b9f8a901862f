/**
 * Where recipes run: a service, a group for each recipe, and a folder of programs that they find on their path.
 *
 * @module
 */

import { fromEnvironment } from "../../handlers/commands/client.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { pathOf, ROOT } from "../checks/shell.ts";
import { callerOf, type RealCaller } from "../client/real_caller.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { seedOrders, setStatus } from "../service/orders.ts";

const { signal } = new AbortController();

/** A file of deploy/examples. */
export function example(path: string): string {
  return pathOf(new URL(`deploy/examples/${path}`, ROOT));
}

/** A group of its own for one recipe, with one database that names the caller. */
export interface RecipeGroup {
  readonly group: string;
  /** The settings of a caller, as a program finds them in its environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** The place. */
export class RecipePlace implements AsyncDisposable {
  readonly #bin: string;

  private constructor(readonly caller: RealCaller, readonly cluster: Cluster) {
    this.#bin = `${caller.folder}/bin`;
  }

  /** Starts a service. `holdfast` on the path is the program of this tree, with the permissions of `run`. */
  static async open(cluster: Cluster, name: string): Promise<RecipePlace> {
    const place = new RecipePlace(await callerOf(cluster, name), cluster);
    await Deno.mkdir(place.#bin);
    const main = pathOf(new URL("main.ts", ROOT));
    await place.program(
      "holdfast",
      `exec ${Deno.execPath()} run -q -P=run --no-prompt ${main} "$@"`,
    );
    return place;
  }

  /** Puts a shell script on the path. */
  async program(name: string, script: string): Promise<void> {
    await Deno.writeTextFile(`${this.#bin}/${name}`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  /** A file with a token of somebody whom no database names. */
  async strangersToken(): Promise<string> {
    const { namespace, folder } = this.caller;
    const audiences = ["bloodraven-deploy"];
    const token = await this.cluster.token({ namespace, serviceAccount: "stranger", audiences });
    await Deno.writeTextFile(`${folder}/stranger`, token);
    return `${folder}/stranger`;
  }

  /** The path with the programs of this place. */
  get path(): string {
    return `${this.#bin}:${Deno.env.get("PATH") ?? ""}`;
  }

  /** Makes a group and its database. */
  async group(group: string): Promise<RecipeGroup> {
    const { namespace, env } = this.caller;
    const instance = `${group}-app`;
    const databases = { [instance]: [{ namespace, serviceAccount: "deployer" }] };
    await seedOrders(this.cluster.adminApi, { namespace, group, databases, signal });
    return {
      group,
      env: {
        ...env,
        HOLDFAST_GROUP: group,
        HOLDFAST_INSTANCE: instance,
        PATH: this.path,
        NO_COLOR: "1",
      },
    };
  }

  /** The kinds of the leases that are held. */
  async held(group: string): Promise<string[]> {
    const client = await fromEnvironment({ ...this.caller.settings, group });
    return (await client.observe()).leases.map(({ kind }) => kind);
  }

  /** Takes the leases from who holds them, as an emergency failover does: the primary moves. */
  async failOver(...groups: readonly string[]): Promise<void> {
    const { namespace } = this.caller;
    for (const name of groups) {
      const { adminApi } = this.cluster;
      const { status } = await adminApi.get(MYSQL_FAILOVER_GROUPS, { namespace, name }, { signal });
      const topologyGeneration = (status?.topologyGeneration ?? 0) + 1;
      const [activeSite, other] = status?.activeSite === "iad" ? ["pdx", "iad"] : ["iad", "pdx"];
      const sites = [
        { name: activeSite, state: "writable", replicating: false },
        { name: other, state: "read-only", replicating: true, secondsBehindSource: 0 },
      ];
      const change = { activeSite, topologyGeneration, sites };
      await setStatus(adminApi, { namespace, name }, change, signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.caller[Symbol.asyncDispose]();
  }
}

/** A program under way. */
export class Program implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<unknown>;
  #onText = () => {};
  stdout = "";
  stderr = "";

  constructor(
    [path = "", ...args]: readonly string[],
    { env, cwd }: { readonly env: Readonly<Record<string, string>>; readonly cwd?: string },
  ) {
    const kept = ["HOME", "DENO_DIR", "DENO_COVERAGE_DIR"].flatMap((name) => {
      const value = Deno.env.get(name);
      return value === undefined ? [] : [[name, value]];
    });
    this.#child = new Deno.Command(path, {
      args,
      cwd,
      clearEnv: true,
      env: { ...Object.fromEntries(kept), ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#reading = Promise.all([
      this.#read(this.#child.stdout, (text) => this.stdout += text),
      this.#read(this.#child.stderr, (text) => this.stderr += text),
    ]);
  }

  kill(name: Deno.Signal): void {
    this.#child.kill(name);
  }

  /** Waits for a text on either output. */
  async said(pattern: RegExp): Promise<RegExpExecArray> {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const look = () => {
      const found = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
      if (found !== null) resolve(found);
    };
    const fail = () => reject(new Error(`Cannot find ${pattern}\n${this.stdout}\n${this.stderr}`));
    const timer = setTimeout(fail, 60_000);
    void this.#reading.then(fail);
    this.#onText = look;
    look();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** How it ended. */
  async ended() {
    const { code } = await this.#child.status;
    await this.#reading;
    return { code, stdout: this.stdout, stderr: this.stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGTERM");
    } catch {
      // It has ended already.
    }
    await this.ended();
  }

  async #read(stream: ReadableStream<Uint8Array<ArrayBuffer>>, take: (text: string) => void) {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      take(text);
      this.#onText();
    }
  }
}
