/**
 * What tests of `serve` need in this process: an API server in memory behind HTTPS, the service's files, and a machine
 * whose signals the test sends.
 *
 * @module
 */

import { kubeconfig } from "../../../handlers/commands/demo/folder.ts";
import type { ServeOptions } from "../../../handlers/commands/options.ts";
import { systemClock, systemEntropy } from "../../../handlers/commands/system.ts";
import { loadConfig, servicePurpose } from "../../../lib/config/layers.ts";
import { type Lease, LEASES } from "../../../lib/kube/resources.ts";
import { createAuthority, FakeCluster } from "../../../lib/testing/mod.ts";
import { type LogLine, logLine } from "../../service/service_process.ts";
import { fakeSystem } from "./fake_system.ts";

/** A place where `serve` can be started. */
export class ServeRig implements AsyncDisposable {
  readonly fake: FakeCluster;
  readonly kubeconfig: string;
  /** The folder of `tls.crt` and `tls.key`. */
  readonly folder: string;
  /** Trusts the service's certificate. */
  readonly http: Deno.HttpClient;
  readonly lines: LogLine[] = [];
  readonly #signals = new Map<string, Set<() => void>>();

  private constructor(parts: Pick<ServeRig, "fake" | "kubeconfig" | "folder" | "http">) {
    this.fake = parts.fake;
    this.kubeconfig = parts.kubeconfig;
    this.folder = parts.folder;
    this.http = parts.http;
  }

  static async open(): Promise<ServeRig> {
    const fake = new FakeCluster({ clock: systemClock, entropy: systemEntropy });
    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    const { caPem } = authority;
    const { certPem: cert, keyPem: key } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
    const { url: server } = await fake.listen({ cert, key });
    const folder = await Deno.makeTempDir({ prefix: "serve-test-" });
    await Deno.writeTextFile(`${folder}/tls.crt`, cert);
    await Deno.writeTextFile(`${folder}/tls.key`, key);
    return new ServeRig({
      fake,
      folder,
      kubeconfig: kubeconfig({ server, caPem, token: fake.adminToken, namespace: "default" }),
      http: Deno.createHttpClient({ caCerts: [caPem] }),
    });
  }

  /**
   * What `serve` is given.
   *
   * @param settings Keys that differ from a service with the deploy API on free ports and a grace of 1 s.
   * @param files What the machine has; by itself the kubeconfig.
   */
  options(
    settings: Readonly<Record<string, string>> = {},
    files: Readonly<Record<string, string>> = { "/kubeconfig": this.kubeconfig },
  ): ServeOptions {
    const all = {
      "listen.tls": "127.0.0.1:0",
      "listen.metrics": "127.0.0.1:0",
      "listen.probes": "127.0.0.1:0",
      "listen.auxiliary": "127.0.0.1:0",
      "tls.cert_file": `${this.folder}/tls.crt`,
      "tls.key_file": `${this.folder}/tls.key`,
      "deploy_api.enabled": "true",
      "host.prestop_grace_secs": "1",
      ...settings,
    };
    const { config, sources } = loadConfig({
      env: {},
      readTextFile: () => undefined,
      purpose: servicePurpose,
      options: Object.entries(all).map(([key, text]) => ({ option: "test", key, text })),
    });
    const env: Record<string, string> = "/kubeconfig" in files ? { KUBECONFIG: "/kubeconfig" } : {};
    return {
      config,
      sources,
      system: {
        ...fakeSystem({ files, env }),
        onSignal: (signal, handler) => {
          const handlers = this.#signals.get(signal) ?? new Set();
          this.#signals.set(signal, handlers.add(handler));
          return () => handlers.delete(handler);
        },
      },
      writeLog: (line) => void this.lines.push(logLine.parse(JSON.parse(line))),
    };
  }

  /** Sends a signal to the service. */
  signal(name: "SIGINT" | "SIGTERM"): void {
    for (const handler of this.#signals.get(name) ?? []) handler();
  }

  /** How many listen for signals. */
  get listening(): number {
    return [...this.#signals.values()].reduce((sum, handlers) => sum + handlers.size, 0);
  }

  /** The address of a port, once the log has it. */
  async address(listener: string): Promise<string> {
    const found = () => this.lines.find((line) => line.listener === listener)?.addr;
    await until(() => found() !== undefined);
    return String(found());
  }

  /** Looks at a group with a token that needs a review. */
  async look(address: string): Promise<{ readonly status: number; readonly error: unknown }> {
    const response = await fetch(`https://${address}/deploy/v1/groups/orders`, {
      client: this.http,
      headers: { Authorization: "Bearer not.a.token" },
    });
    return { status: response.status, error: (await response.json()).error };
  }

  /** The election Lease. */
  get lease(): Lease | null {
    return this.fake.read(LEASES, { namespace: "default", name: "holdfast.shipstream.io" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.http.close();
    await this.fake.close();
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Waits, on the real clock, until it holds. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > limit) throw new Error("Cannot wait any longer");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
