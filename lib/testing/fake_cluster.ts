/**
 * A Kubernetes cluster in memory, for tests and for the demo.
 *
 * It has one mechanism: HTTP requests against a store with the rules of kube-apiserver. So the client of production runs
 * against it unchanged, in this process (through {@linkcode FakeCluster.fetch}) and over HTTPS
 * ({@linkcode FakeCluster.listen}).
 *
 * What it has not: controllers (an owner's deletion collects nothing, a namespace that is deleted stays `Terminating`),
 * admission webhooks, server-side apply, `deletecollection`, OpenAPI documents, YAML and protobuf bodies, managed fields,
 * the rules of `x-kubernetes-validations` but for `self == oldSelf`, and strategic merge patches with lists. The two event
 * APIs keep their objects apart. Kinds other than leases, ConfigMaps, namespaces, roles and bindings, and CRDs are
 * checked in their metadata only.
 *
 * @module
 */

import type { KubeObject, ObjectName, Resource } from "../kube/api.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import { ApiServer } from "./api_server/api_server.ts";
import { CrdController } from "./api_server/crd_controller.ts";
import { isObject, type Json, objectAt, parseJson, stringAt } from "./api_server/json.ts";
import { type Kind, kindKey, KindRegistry } from "./api_server/kinds.ts";
import { objectKey, Store, type StoreSnapshot } from "./api_server/store.ts";
import { API_AUDIENCE, Tokens } from "./api_server/tokens.ts";
import { Rbac } from "./api_server/users.ts";
import { CallLog } from "./calls.ts";
import { FaultBook } from "./faults.ts";
import { HttpFront } from "./http_front.ts";
import { type HttpsOptions, listenHttps, type RunningServer } from "./https_server.ts";

/** The options of a {@linkcode FakeCluster}. */
export interface FakeClusterOptions {
  /** Counts latencies, timeouts of watches, ages and ends of tokens. */
  readonly clock: Clock;
  /** Makes uids, names and the key that signs tokens. */
  readonly entropy: Entropy;
  /** Namespaces that are there from the start. @default {["default"]} */
  readonly namespaces?: readonly string[];
  /** Lets a write into a missing namespace succeed. A real server answers 404. @default {false} */
  readonly lenientNamespaces?: boolean;
  /** Enforces roles and bindings. Without it every known user may do everything. @default {false} */
  readonly rbac?: boolean;
  /** How far the server's wall clock is ahead of `clock`, in milliseconds. @default {0} */
  readonly serverClockOffsetMs?: number;
  /** Milliseconds between the bookmarks of a watch that asked for them. @default {60000} */
  readonly bookmarkIntervalMs?: number;
  /** How many changes the server remembers; a watch from before them is answered 410. @default {20000} */
  readonly historyLimit?: number;
}

/** What {@linkcode FakeCluster.tokenFor} takes. */
export interface ServiceAccountTokenOptions {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** Whom the token is for. @default {["https://kubernetes.default.svc"]}, the server itself */
  readonly audiences?: readonly string[];
  /** Seconds on the server's clock until the token ends; below the 600 of the real server too. @default {3600} */
  readonly expirationSeconds?: number;
}

/**
 * A Kubernetes cluster in memory.
 *
 * ```ts
 * import { CONFIG_MAPS } from "@holdfast/holdfast/kube";
 * import { seededEntropy, TestClock } from "@holdfast/holdfast/testing";
 *
 * const clock = new TestClock();
 * await using fake = new FakeCluster({ clock, entropy: seededEntropy(1) });
 * fake.seed(CONFIG_MAPS, { metadata: { namespace: "default", name: "settings" }, data: { color: "red" } });
 * const response = await fake.fetch("https://fake/api/v1/namespaces/default/configmaps/settings");
 * ```
 */
export class FakeCluster implements AsyncDisposable {
  /** What goes wrong. */
  readonly faults: FaultBook = new FaultBook();
  /** What was asked. */
  readonly calls: CallLog = new CallLog();
  /** A token of a user that may do everything, also with RBAC. */
  readonly adminToken: string;
  /** How far the server's wall clock is ahead of the injected one, in milliseconds. Set it to make the clock jump. */
  serverClockOffsetMs: number;
  /** Enforces roles and bindings. */
  rbac: boolean;
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #kinds = new KindRegistry();
  readonly #tokens: Tokens;
  readonly #server: ApiServer;
  readonly #front: HttpFront;
  readonly #listeners = new Set<RunningServer>();

  constructor(options: FakeClusterOptions) {
    const { clock, entropy } = options;
    this.#clock = clock;
    this.serverClockOffsetMs = options.serverClockOffsetMs ?? 0;
    this.rbac = options.rbac ?? false;
    this.#store = new Store(options.historyLimit ?? 20_000);
    this.#store.subscribe(new CrdController(this.#store, this.#kinds));
    const now = () => this.serverNowMs();
    this.#tokens = new Tokens(this.#store, entropy, now);
    this.adminToken = this.#tokens.forUser("admin", ["system:masters"]);
    this.#server = new ApiServer({
      store: this.#store,
      kinds: this.#kinds,
      tokens: this.#tokens,
      rbac: new Rbac(this.#store),
      clock,
      entropy,
      now,
      bookmarkIntervalMs: options.bookmarkIntervalMs ?? 60_000,
      enforcesRbac: () => this.rbac,
      createsNamespaces: () => options.lenientNamespaces ?? false,
    });
    this.#front = new HttpFront({
      server: this.#server,
      tokens: this.#tokens,
      faults: this.faults,
      calls: this.calls,
      clock,
      now,
    });
    for (const namespace of options.namespaces ?? ["default"]) this.#seedNamespace(namespace);
  }

  /**
   * Serves a request in this process, with the signature of the global `fetch`. The host of the URL has no meaning. The
   * caller is the user of the bearer token; without one it is the administrator.
   *
   * It rejects as `fetch` does: with the signal's reason, or with a `TypeError` when the connection is lost.
   */
  readonly fetch = (input: Request | URL | string, init?: RequestInit): Promise<Response> =>
    this.#front.handle(new Request(input, init), "admin");

  /**
   * Serves over HTTPS, on 127.0.0.1 and a free port unless told otherwise. A caller without a token is
   * `system:anonymous`, as on a real server.
   */
  async listen(options: HttpsOptions): Promise<RunningServer> {
    const server = await listenHttps(
      (request) => this.#front.handle(request, "anonymous"),
      options,
    );
    const listener: RunningServer = {
      url: server.url,
      port: server.port,
      close: () => {
        this.#listeners.delete(listener);
        return server.close();
      },
    };
    this.#listeners.add(listener);
    return listener;
  }

  /** The server's wall time, in milliseconds since 1970. */
  serverNowMs(): number {
    return this.#clock.wall() + this.serverClockOffsetMs;
  }

  /**
   * Writes an object past all users, versions and namespaces that are missing, as a foreign writer would: it is there
   * afterwards under a new version. `status`, `uid` and times are taken from the object when it has them.
   *
   * @returns The object as it is stored.
   * @throws {ApiError} When the object breaks the rules of its kind.
   */
  seed<T extends KubeObject>(resource: Resource<T>, object: T): T {
    return resource.parse(this.#seed(this.#kindOf(resource), toJson(object)));
  }

  /**
   * As {@linkcode FakeCluster.seed}, for an object that names its kind itself: a manifest. A CRD makes its kind served.
   *
   * @throws {TypeError} When the manifest names no kind that is served.
   */
  apply(manifest: unknown): void {
    const object = toJson(manifest);
    const apiVersion = stringAt(object, "apiVersion");
    const name = stringAt(object, "kind");
    const kind = this.#kinds.findByObject(apiVersion, name);
    if (kind === null) {
      throw new TypeError(
        `Cannot apply manifest as its kind must be served: current value is "${apiVersion} ${name}"; apply its CRD first`,
      );
    }
    this.#seed(kind, object);
  }

  /** The object as it is stored, or `null`. It is no call: nothing is logged, and no fault hits it. */
  read<T extends KubeObject>(resource: Resource<T>, { namespace, name }: ObjectName): T | null {
    const kind = this.#kindOf(resource);
    const object = this.#store.get(
      kindKey(kind),
      objectKey(kind.namespaced ? namespace ?? "default" : "", name),
    );
    return object === null ? null : resource.parse(object);
  }

  /** All stored objects of a kind, in the order of namespace and name. */
  readAll<T extends KubeObject>(resource: Resource<T>, namespace = ""): T[] {
    return this.#store.list(kindKey(this.#kindOf(resource)), namespace).map((object) =>
      resource.parse(object)
    );
  }

  /** Removes an object at once, past finalizers. False when it was not there. */
  remove(resource: Resource, { namespace, name }: ObjectName): boolean {
    const kind = this.#kindOf(resource);
    const key = objectKey(kind.namespaced ? namespace ?? "default" : "", name);
    return this.#store.remove(kindKey(kind), key) !== null;
  }

  /** Makes a token of a service account, and the account and its namespace when they are missing. */
  tokenFor(options: ServiceAccountTokenOptions): string {
    const { namespace, serviceAccount: name } = options;
    const stored = this.#store.get("/serviceaccounts", objectKey(namespace, name)) ??
      this.#seed(this.#builtIn("v1", "ServiceAccount"), { metadata: { namespace, name } });
    return this.#tokens.sign({
      namespace,
      serviceAccount: name,
      uid: stringAt(objectAt(stored, "metadata"), "uid"),
      audiences: options.audiences ?? [API_AUDIENCE],
      expirationSeconds: options.expirationSeconds ?? 3_600,
    });
  }

  /** Makes a token of any other user. It has no end. */
  userToken(username: string, groups: readonly string[] = []): string {
    return this.#tokens.forUser(username, groups);
  }

  /** The version of the last change of the store. */
  get revision(): number {
    return this.#store.revision;
  }

  /** The state of the store, for {@linkcode FakeCluster.restore}. */
  snapshot(): StoreSnapshot {
    return this.#store.snapshot();
  }

  /**
   * Rewinds: goes back to an earlier state, as a restored backup of etcd does. Versions that were given since are given
   * again, and running watches break.
   */
  restore(snapshot: StoreSnapshot): void {
    this.#store.restore(snapshot);
  }

  /** Forgets the history of changes: a watch or a page from before now is answered 410. */
  compact(): void {
    this.#store.compact(this.#store.revision);
  }

  /** Sends a bookmark to every watch that asked for them. */
  sendBookmarks(): void {
    this.#server.sendBookmarks();
  }

  /** Ends all calls, watches and listeners. Calls that come later fail as on a lost connection. */
  async close(): Promise<void> {
    this.#front.close();
    await Promise.all([...this.#listeners].map((listener) => listener.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #kindOf({ group, version, plural }: Resource): Kind {
    const kind = this.#kinds.find(group, version, plural);
    if (kind !== null) return kind;
    throw new TypeError(
      `Cannot use resource as it must be served: current value is "${plural}.${version}.${group}"; apply its CRD first`,
    );
  }

  #builtIn(apiVersion: string, name: string): Kind {
    const kind = this.#kinds.findByObject(apiVersion, name);
    if (kind === null) throw new TypeError(`Cannot find built-in kind "${apiVersion} ${name}"`);
    return kind;
  }

  #seed(kind: Kind, object: Json) {
    const namespace = kind.namespaced
      ? stringAt(objectAt(object, "metadata"), "namespace") || "default"
      : "";
    if (namespace !== "") this.#seedNamespace(namespace);
    return this.#server.writer.seed(kind, namespace, object);
  }

  #seedNamespace(name: string): void {
    if (this.#store.get("/namespaces", name) !== null) return;
    this.#server.writer.seed(this.#builtIn("v1", "Namespace"), "", { metadata: { name } });
  }
}

/** What a caller of this program gives, as JSON: members that are `undefined` and the like go. */
function toJson(value: unknown): Json {
  const text = JSON.stringify(value);
  const json = text === undefined ? null : parseJson(text);
  if (isObject(json)) return json;
  throw new TypeError(
    `Cannot use manifest as it must be an object: current value is ${typeof value}`,
  );
}
