/**
 * A real API server with its store, for tests: kube-apiserver and etcd, and nothing else.
 *
 * No controllers run: namespaces and service accounts are made by hand, and deleting an owner collects nothing.
 *
 * @module
 */

import type { KubeApi } from "../../lib/kube/mod.ts";
import {
  type Authority,
  createAuthority,
  type IssuedCertificate,
} from "../../lib/testing/authority.ts";
import {
  createNamespace,
  createServiceAccount,
  type Credentials,
  type Grant,
  grant,
  kubeconfig,
  requestToken,
  type TokenWish,
} from "./access.ts";
import { type AuditEntry, parseAuditLog } from "./audit_log.ts";
import { type Binaries, BinariesError, ensureBinaries } from "./binaries.ts";
import { Caller } from "./caller.ts";
import { applyCrds } from "./crds.ts";
import { Keeper, pause } from "./keeper.ts";
import type { RawClient } from "./raw_client.ts";
import {
  apiServerFlags,
  AUDIT_LOG_FILE,
  etcdFlags,
  freePorts,
  writeServerFiles,
} from "./server_setup.ts";

/** The options of {@linkcode startCluster}. */
export interface ClusterOptions {
  /** The programs. @default {what ensureBinaries finds} */
  readonly binaries?: Binaries;
  /** Installs `deploy/crds` before the cluster is handed over. @default {true} */
  readonly crds?: boolean;
  /** Writes down who asked for what, for {@linkcode Cluster.auditLog}. @default {false} */
  readonly audit?: boolean;
}

const API_SERVER = "kube-apiserver";
const ETCD = "etcd";
const READY_LIMIT_MS = 90_000;
const START_TRIES = 3;

/** A port that was free a moment ago is taken now. */
class PortTakenError extends Error {
  override readonly name = "PortTakenError";
}

/**
 * Starts etcd and an API server on free ports of 127.0.0.1 and returns when the server says that it is ready: 2.6 s.
 *
 * ```ts
 * await using cluster = await startCluster();
 * await cluster.createNamespace("app");
 * ```
 *
 * @throws {BinariesError} There are no programs: ask {@linkcode ensureBinaries} first to skip instead.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const binaries = options.binaries ?? await ensureBinaries();
  if (binaries === null) {
    throw new BinariesError("Cannot start a cluster as there is no API server to start");
  }
  for (let attempt = 1;; attempt++) {
    try {
      return await startOnce(binaries, options);
    } catch (error) {
      // Another process may take a port between the look and the start.
      if (!(error instanceof PortTakenError) || attempt === START_TRIES) throw error;
    }
  }
}

async function startOnce(binaries: Binaries, options: ClusterOptions): Promise<Cluster> {
  const keeper = await Keeper.open();
  let cluster: Cluster | undefined;
  try {
    const { folder } = keeper;
    const ports = freePorts();
    const audit = options.audit ?? false;
    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    await writeServerFiles(folder, authority);
    await keeper.start(ETCD, binaries.path("etcd"), etcdFlags(folder, ports));
    cluster = new Cluster({
      url: `https://127.0.0.1:${ports.apiServer}`,
      etcdUrl: `http://127.0.0.1:${ports.etcd}`,
      authority,
      admin: await authority.issue({
        client: true,
        commonName: "test-admin",
        organizations: ["system:masters"],
      }),
      keeper,
      program: binaries.path("kube-apiserver"),
      flags: apiServerFlags(folder, ports, audit),
      audit,
    });
    await cluster.startApiServer();
    if (options.crds ?? true) await cluster.applyCrds();
    return cluster;
  } catch (error) {
    await (cluster?.stop() ?? keeper.close());
    throw error;
  }
}

interface ClusterParts {
  readonly url: string;
  readonly etcdUrl: string;
  readonly authority: Authority;
  readonly admin: IssuedCertificate;
  readonly keeper: Keeper;
  readonly program: string;
  readonly flags: readonly string[];
  readonly audit: boolean;
}

/** A running cluster. Make one with {@linkcode startCluster}. */
export class Cluster implements AsyncDisposable {
  /** The base URL of the API server, without a slash at its end. It stays the same over restarts. */
  readonly url: string;
  /** The URL of etcd. It has neither TLS nor a password. */
  readonly etcdUrl: string;
  /** The authority that clients trust, in PEM form. */
  readonly caPem: string;
  /** A client certificate of `system:masters`, to whom everything is allowed. */
  readonly adminCredentials: IssuedCertificate;
  /** Sends anything as that administrator. */
  readonly admin: RawClient;
  /** Calls the cluster as that administrator. */
  readonly adminApi: KubeApi;
  readonly #parts: ClusterParts;
  /** That administrator. */
  readonly adminCaller: Caller;
  /** Carries every token: a caller that has one opens nothing of its own. */
  readonly #tokenClient: Deno.HttpClient;

  /** @param parts What {@linkcode startCluster} prepared. */
  constructor(parts: ClusterParts) {
    this.#parts = parts;
    this.url = parts.url;
    this.etcdUrl = parts.etcdUrl;
    this.caPem = parts.authority.caPem;
    this.adminCredentials = parts.admin;
    this.#tokenClient = Deno.createHttpClient({ caCerts: [this.caPem] });
    this.adminCaller = this.caller(parts.admin);
    this.admin = this.adminCaller.raw;
    this.adminApi = this.adminCaller.api();
  }

  /**
   * Somebody who calls the cluster.
   *
   * @param credentials Who it is; the caller of a certificate must be disposed of.
   */
  caller(credentials: Credentials): Caller {
    if ("token" in credentials) {
      const client = this.#tokenClient;
      return new Caller(this.url, (request) => fetch(request, { client }), credentials.token);
    }
    const { certPem: cert, keyPem: key } = credentials;
    const client = Deno.createHttpClient({ caCerts: [this.caPem], cert, key });
    return new Caller(
      this.url,
      (request) => fetch(request, { client }),
      undefined,
      () => client.close(),
    );
  }

  /** A certificate of a user: `system:masters` in `groups` is allowed everything. */
  async clientCertificate(
    user: string,
    groups: readonly string[] = [],
  ): Promise<IssuedCertificate> {
    return await this.#parts.authority.issue({
      client: true,
      commonName: user,
      organizations: groups,
    });
  }

  /** Makes a namespace. One that is there is left alone. */
  createNamespace(name: string): Promise<void> {
    return createNamespace(this.admin, name);
  }

  /** Makes a service account. One that is there is left alone. */
  createServiceAccount(namespace: string, name: string): Promise<void> {
    return createServiceAccount(this.admin, namespace, name);
  }

  /** A token of a service account, by the token request subresource. */
  token(wish: TokenWish): Promise<string> {
    return requestToken(this.admin, wish);
  }

  /** Grants rules to a user, a group or a service account; returns when the API server acts on it. */
  grant(wish: Grant): Promise<void> {
    return grant(this.admin, wish);
  }

  /** Installs `deploy/crds`, or the definitions given. */
  applyCrds(crds?: readonly unknown[]): Promise<void> {
    return applyCrds(this.admin, crds);
  }

  /** The text of a kubeconfig file. @param credentials Whose. @default {the administrator's} */
  kubeconfig(credentials: Credentials = this.adminCredentials, namespace?: string): string {
    return kubeconfig(this.url, this.caPem, credentials, namespace);
  }

  /** Starts the API server that was stopped or killed, on its old port, and returns when it is ready. */
  async startApiServer(): Promise<void> {
    await this.#parts.keeper.start(API_SERVER, this.#parts.program, this.#parts.flags);
    const deadlineMs = performance.now() + READY_LIMIT_MS;
    while (!await this.#isReady()) {
      for (const name of [ETCD, API_SERVER]) {
        if (!await this.#parts.keeper.hasExited(name)) continue;
        const tail = await this.#parts.keeper.logTail(name);
        if (tail.includes("address already in use")) throw new PortTakenError(tail);
        throw new Error(`Cannot start ${name} as it ended: ${tail}`);
      }
      if (performance.now() > deadlineMs) {
        throw new Error(
          `Cannot start the API server: it is not ready after ${READY_LIMIT_MS} ms: ` +
            await this.#parts.keeper.logTail(API_SERVER),
        );
      }
      await pause(50);
    }
  }

  /** Ends the API server with SIGTERM. What it stored stays. */
  stopApiServer(): Promise<void> {
    return this.#parts.keeper.stop(API_SERVER);
  }

  /** Ends the API server with SIGKILL. What it stored stays. */
  killApiServer(): Promise<void> {
    return this.#parts.keeper.kill(API_SERVER);
  }

  /** Stops the API server and starts it again. Connections and watches break. */
  async restartApiServer(): Promise<void> {
    await this.stopApiServer();
    await this.startApiServer();
  }

  /**
   * What was asked of the API server so far, in order of completion. A watch is in it from its start.
   *
   * @throws {Error} The cluster was started without `audit`.
   */
  async auditLog(): Promise<AuditEntry[]> {
    if (!this.#parts.audit) {
      throw new Error("Cannot read the audit log as there is none: start the cluster with 'audit'");
    }
    return parseAuditLog(
      await Deno.readTextFile(`${this.#parts.keeper.folder}/${AUDIT_LOG_FILE}`),
    );
  }

  /** Ends both processes and removes their files. */
  async stop(): Promise<void> {
    this.adminCaller[Symbol.dispose]();
    this.#tokenClient.close();
    await this.#parts.keeper.close();
  }

  /** The same as {@linkcode Cluster.stop}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #isReady(): Promise<boolean> {
    try {
      return (await this.admin("GET", "/readyz")).status === 200;
    } catch {
      return false;
    }
  }
}
