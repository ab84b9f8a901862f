/**
 * The one interface to a Kubernetes cluster. Everything that talks to a cluster goes through it.
 *
 * Two things answer behind it: {@linkcode HttpApi} (a real API server, over HTTPS) and the server of `lib/testing`
 * (in process, or over HTTPS too).
 *
 * What the shape rules out:
 * - an update or a delete that is fenced by nothing: {@linkcode KubeApi.replace} wants an object that was read, with its
 *   `uid` and `resourceVersion`, and {@linkcode KubeApi.delete} wants both as preconditions. (A PUT with a stale version
 *   alone *creates* an object that was deleted meanwhile.)
 * - a call without an end: each takes an `AbortSignal`.
 * - outside data that nobody looked at: a {@linkcode Resource} brings the schema that every answer passes.
 *
 * @module
 */

import type { KubeError } from "./errors.ts";

/** What Kubernetes keeps about every object. Members that nobody here uses are left out; they are kept on writes. */
export interface ObjectMeta {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string | null;
  readonly deletionTimestamp?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

/** Who owns an object: when the owner goes, the garbage collector removes it. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** Any object of the API. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** An object as the API server returned it: it has a name, a uid and a version. */
export type Stored<T extends KubeObject> = T & {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
};

/**
 * A kind of object, as its URL names it, and the schema that answers pass.
 *
 * Make one with `resource()`; the ones this project uses are in `resources.ts`.
 */
export interface Resource<T extends KubeObject = KubeObject> {
  /** The API group; empty for the core group. */
  readonly group: string;
  /** The version, for example `v1`. */
  readonly version: string;
  /** The plural in the URL, for example `leases`. */
  readonly plural: string;
  /** The kind in the object, for example `Lease`. */
  readonly kind: string;
  /** False for objects that live outside namespaces. */
  readonly namespaced: boolean;
  /**
   * Checks one object and gives it its type. Unknown members are kept, so that an object that is written back loses
   * nothing.
   *
   * @throws {z.ZodError} When the object has another form.
   */
  parse(value: unknown): T;
}

/** The address of one object. */
export interface ObjectName {
  readonly name: string;
  /** The namespace, for namespaced kinds. */
  readonly namespace?: string;
}

/** What every call takes. */
export interface CallOptions {
  /** Ends the call: it then rejects with the signal's reason. A write may have been stored all the same. */
  readonly signal: AbortSignal;
  /**
   * Milliseconds for the whole call, answer included. The call rejects with `KubeTimeoutError` after it.
   *
   * @default {10000}
   */
  readonly timeoutMs?: number;
}

/** What a list or a watch selects. */
export interface Selection {
  /** One namespace; all of them when it is left out. */
  readonly namespace?: string;
  /** A label selector in the API's own text form, for example `app=x,tier in (a,b),!old`. */
  readonly labelSelector?: string;
  /** A field selector, for example `metadata.name=x` or `spec.groupRef.name=orders`. */
  readonly fieldSelector?: string;
}

/** The options of a list. A list reads the newest state (no `resourceVersion` is sent); long ones are read in pages. */
export interface ListOptions extends CallOptions, Selection {
  /**
   * Takes what the API server has in its cache (`resourceVersion=0`). It waits for nothing, and may be old by any time: decide
   * nothing by it alone.
   *
   * @default {false}
   */
  readonly cached?: boolean;
}

/** A consistent list. */
export interface ObjectList<T extends KubeObject> {
  readonly items: readonly Stored<T>[];
  /** The version of the state that was listed: a watch goes on from it. */
  readonly resourceVersion: string;
  /** Objects that do not have their kind's form: one of them does not hide the others. */
  readonly undecodable: readonly UndecodableObject[];
}

/** An object that does not pass its kind's schema. */
export interface UndecodableObject {
  readonly namespace: string;
  readonly name: string;
  /** Where it differs, as paths of member names. */
  readonly paths: readonly string[];
}

/** A part of an object that has a URL of its own. */
export type Subresource = "status" | "scale" | "token" | "eviction";

/** The options of a write. */
export interface WriteOptions extends CallOptions {
  /** Writes this part of the object. */
  readonly subresource?: Subresource;
  /** Lets the server check the write and store nothing. @default {false} */
  readonly dryRun?: boolean;
}

/** How a patch is to be read. */
export type Patch =
  | {
    /** RFC 7386. With `metadata.resourceVersion` (and `metadata.uid`) in it, it is fenced like an update. */
    readonly type: "merge";
    readonly body: Readonly<Record<string, unknown>>;
  }
  | {
    /** RFC 6902. A `test` of `/metadata/resourceVersion` fences it. */
    readonly type: "json";
    readonly body: readonly Readonly<Record<string, unknown>>[];
  };

/** Which object a delete means: exactly this one, in exactly this version. */
export interface DeletePreconditions {
  readonly uid: string;
  readonly resourceVersion: string;
}

/** The options of a watch. */
export interface WatchOptions extends Selection {
  /** Ends the watch; the iteration then ends without an error. */
  readonly signal: AbortSignal;
  /**
   * Milliseconds without a byte from the server after which the stream is thought dead and started anew.
   *
   * @default {90000}
   */
  readonly idleTimeoutMs?: number;
}

/**
 * What a watch tells.
 *
 * A watch never ends by itself and never throws: it tells of a failure, waits and goes on.
 */
export type WatchEvent<T extends KubeObject> =
  | {
    /** The whole state, first thing. */
    readonly type: "initial";
    readonly list: ObjectList<T>;
  }
  | {
    /** The whole state anew, since events may have been missed: forget what you knew. */
    readonly type: "restarted";
    readonly reason: "gone" | "rewound" | "requested";
    readonly list: ObjectList<T>;
  }
  | { readonly type: "added" | "modified" | "deleted"; readonly object: Stored<T> }
  | { readonly type: "undecodable"; readonly object: UndecodableObject }
  | {
    /** A list, a start or a stream failed; the watch goes on after a pause. `verb` of its call is `list` or `watch`. */
    readonly type: "failed";
    readonly error: KubeError;
  };

/** A running watch. */
export interface Watch<T extends KubeObject> extends AsyncIterable<WatchEvent<T>> {
  /**
   * Lists anew and tells it as `restarted`: for a caller that saw a sign of a store that went back in time (a version
   * lower than one it knew before it asked; design of the state protocol, section 2.4).
   */
  restart(): void;
}

/** The answer of `GET /version`. */
export interface ServerVersion {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
}

/**
 * When a request was sent, when the head of its answer came, and what time the server said it was. The state protocol's
 * lease time is made of these.
 */
export interface AnswerObservation {
  /** Monotonic milliseconds, just before the request was handed to the connection. */
  readonly sentMs: number;
  /** Monotonic milliseconds, just after the head of the answer was there. */
  readonly receivedMs: number;
  /** The `Date` header as milliseconds since 1970 (whole seconds), or `null` when it is missing or unreadable. */
  readonly serverDateMs: number | null;
  /** The HTTP status. */
  readonly status: number;
  /** The RBAC verb of the call. */
  readonly verb: string;
  /** The plural with its API group. */
  readonly resource: string;
}

/** Sees every answer, errors and watch starts included. It must not throw. */
export type AnswerObserver = (observation: AnswerObservation) => void;

/** All calls to a cluster. Errors are the classes of `errors.ts`; an abort rejects with the signal's reason. */
export interface KubeApi {
  /** The namespace of the credentials: of the pod, or of the kubeconfig's context. */
  readonly defaultNamespace: string;

  /** Reads the newest state of one object (linearizable). @throws {NotFoundError} */
  get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>>;

  /** Lists the newest state. */
  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions): Promise<ObjectList<T>>;

  /** Watches. The first event is `initial`, and no call is made before it is asked for. */
  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): Watch<T>;

  /**
   * Creates with POST: for names that the server makes (`generateName`), and for reviews, which are answered and not
   * stored.
   *
   * @throws {AlreadyExistsError}
   */
  create<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions): Promise<T>;

  /**
   * Creates with PUT by name and without a version: the Role rule can name the object (RBAC checks `update` and then
   * `create` with that name). Only for Leases: for other kinds the server takes such a PUT as an update, which answers 404
   * or writes over whatever is there.
   *
   * @throws {AlreadyExistsError} The object is there: 422 about `resourceVersion`, or 409.
   * @throws {TypeError} The object has a `uid` or a `resourceVersion`, or its kind cannot be created so.
   */
  createNamed<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<Stored<T>>;

  /**
   * Replaces exactly the object that was read. `object` carries the `uid` and the `resourceVersion` of that read.
   *
   * @throws {ConflictError} It was written, or deleted and created again, since.
   * @throws {NotFoundError} It is gone, as the server says with `status` and with some resources.
   */
  replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>>;

  /** Patches. @throws {ConflictError} The patch carries a version that is not the stored one. @throws {NotFoundError} */
  patch<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    patch: Patch,
    options: WriteOptions,
  ): Promise<Stored<T>>;

  /** Deletes exactly the object that was read. @throws {ConflictError} @throws {NotFoundError} */
  delete<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    preconditions: DeletePreconditions,
    options: CallOptions,
  ): Promise<void>;

  /**
   * Posts to a subresource of one object. The answer has the form of `bodyResource`.
   *
   * ```ts
   * import { type KubeApi, SERVICE_ACCOUNTS, TOKEN_REQUESTS } from "@holdfast/holdfast/kube";
   *
   * async function tokenOf(api: KubeApi, name: string, signal: AbortSignal): Promise<string | undefined> {
   *   const body = { metadata: {}, spec: { audiences: ["bloodraven-deploy"], expirationSeconds: 600 } };
   *   const account = { name, namespace: "app" };
   *   const answer = await api.createSubresource(SERVICE_ACCOUNTS, account, "token", TOKEN_REQUESTS, body, { signal });
   *   return answer.status?.token;
   * }
   * ```
   */
  createSubresource<T extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    subresource: Subresource,
    bodyResource: Resource<T>,
    body: T,
    options: CallOptions,
  ): Promise<T>;

  /** Asks for the server's version: the cheapest sign of life. */
  version(options: CallOptions): Promise<ServerVersion>;
}
