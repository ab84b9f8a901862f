/**
 * A cluster behind HTTP: the {@linkcode KubeApi} of production, and of tests against the server of `lib/testing`.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { Intent } from "./answers.ts";
import type {
  AnswerObserver,
  CallOptions,
  DeletePreconditions,
  KubeApi,
  KubeObject,
  ListOptions,
  ObjectList,
  ObjectName,
  Patch,
  Resource,
  Selection,
  ServerVersion,
  Stored,
  Subresource,
  UndecodableObject,
  Watch,
  WatchOptions,
  WriteOptions,
} from "./api.ts";
import type { Credentials } from "./credentials.ts";
import {
  type Decoded,
  decodeJson,
  decodeObject,
  decodePage,
  decodeStored,
  decodeVersion,
  nameUndecodable,
  type RawPage,
  typeOf,
} from "./decode.ts";
import { type CallIdentity, DecodeError, GoneError } from "./errors.ts";
import { type Call, type CallReport, Exchange, READS, type SendRequest } from "./exchange.ts";
import {
  collectionPath,
  objectPath,
  type Query,
  requiredNamespace,
  resourceLabel,
  selectionQuery,
  targetLabel,
  withQuery,
} from "./paths.ts";
import { RunningWatch } from "./watch.ts";
import { readWatchLine } from "./watch_lines.ts";

/** What an {@linkcode HttpApi} is made of. */
export interface HttpApiParts {
  /** Where the API server is, for example `https://10.0.0.1:443`. A path before `/api` is kept. */
  readonly baseUrl: string;
  /** Sends the requests: of a {@linkcode Connection}, or of a server in this process. */
  readonly fetch: SendRequest;
  /** Who this program is. */
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** The namespace of the credentials. */
  readonly defaultNamespace: string;
  /** Milliseconds for a call that sets no `timeoutMs`, and for the start of a watch. @default {10000} */
  readonly defaultTimeoutMs?: number;
  /** Sees every answer once: errors and the starts of watches too. It must not throw. */
  readonly observer?: AnswerObserver;
  /** Counts every request once, when it has ended. It must not throw. */
  readonly onCall?: (report: CallReport) => void;
  /** How this program calls itself to the API server, for its audit log. @default {"holdfast"} */
  readonly userAgent?: string;
}

const PAGE_SIZE = "500";
const DEFAULT_TIMEOUT_MS = 10_000;

/** The one group whose kinds are created by a PUT, and are never written over by one that carries no version. */
const CREATES_BY_PUT = "coordination.k8s.io";
const DEFAULT_IDLE_TIMEOUT_MS = 90_000;

/** Calls an API server over HTTP. */
export class HttpApi implements KubeApi {
  readonly defaultNamespace: string;
  readonly #exchange: Exchange;
  readonly #clock: Clock;
  readonly #entropy: Entropy;

  constructor(parts: HttpApiParts) {
    this.defaultNamespace = parts.defaultNamespace;
    this.#clock = parts.clock;
    this.#entropy = parts.entropy;
    this.#exchange = new Exchange({
      baseUrl: new URL(parts.baseUrl).href.replace(/\/+$/, ""),
      fetch: parts.fetch,
      credentials: parts.credentials,
      clock: parts.clock,
      userAgent: parts.userAgent ?? "holdfast",
      defaultTimeoutMs: parts.defaultTimeoutMs ?? DEFAULT_TIMEOUT_MS,
      observer: parts.observer ?? (() => {}),
      onCall: parts.onCall ?? (() => {}),
    });
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    const call: Call = {
      identity: identify("get", resource, name),
      method: "GET",
      path: objectPath(resource, name),
      intent: READS,
    };
    return readStored(call, resource, await this.#exchange.send(call, options));
  }

  async list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions,
  ): Promise<ObjectList<T>> {
    const first = listCall(resource, options, { limit: PAGE_SIZE });
    const pages = await this.#exchange.within(first.identity, options, async (send) => {
      const read: RawPage[] = [];
      for (let call = first;;) {
        try {
          const page = readPage(call, await send(call));
          read.push(page);
          if (page.next === "") return read;
          call = listCall(resource, options, { limit: PAGE_SIZE, continue: page.next });
        } catch (error) {
          if (!(error instanceof GoneError) || call === first) throw error;
          // The server dropped the state that the pages are of. A list without pages cannot lose it.
          const whole = listCall(resource, options, {});
          return [readPage(whole, await send(whole))];
        }
      }
    });
    return collect(resource, pages);
  }

  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): Watch<T> {
    const { signal, idleTimeoutMs = DEFAULT_IDLE_TIMEOUT_MS } = options;
    const selection: Selection = options;
    const watchCall = (version: string): Call => ({
      ...listCall(resource, selection, {
        watch: "true",
        allowWatchBookmarks: "true",
        resourceVersion: version,
      }),
      identity: identifyAll("watch", resource, selection),
    });
    const { identity } = watchCall("");
    return new RunningWatch<T>({
      call: identity,
      list: (signal) => this.list(resource, { ...selection, signal, timeoutMs: undefined }),
      currentVersion: async (signal) => {
        const call = listCall(resource, selection, { limit: "1" });
        return readPage(call, await this.#exchange.send(call, { signal })).resourceVersion;
      },
      open: (version, signal) => this.#exchange.open(watchCall(version), signal),
      read: (line) => readWatchLine(resource, identity, line),
    }, { clock: this.#clock, entropy: this.#entropy, signal, idleTimeoutMs });
  }

  async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<T> {
    const { name = object.metadata.generateName ?? "", namespace } = object.metadata;
    const call: Call = {
      identity: identify("create", resource, { name, namespace }),
      method: "POST",
      path: withQuery(
        collectionPath(resource, requiredNamespace(resource, namespace)),
        writeQuery(options),
      ),
      body: encode(resource, object),
      intent: { writes: true, createsByName: false, fence: "none" },
    };
    const body = await this.#exchange.send(call, options);
    return decodedOr(call, decodeText(body, (value) => decodeObject(resource, value)));
  }

  async createNamed<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    const { name, namespace, uid, resourceVersion } = object.metadata;
    if (uid !== undefined || resourceVersion !== undefined) {
      throw new TypeError(
        `Cannot create ${resource.plural} as 'metadata.uid' and 'metadata.resourceVersion' must be left out: an object that was read has them`,
      );
    }
    if (resource.group !== CREATES_BY_PUT) {
      throw new TypeError(
        `Cannot create ${resource.plural} by name as the server takes such a PUT for an update: use create()`,
      );
    }
    return await this.#write("create", "PUT", resource, { name: name ?? "", namespace }, options, {
      body: encode(resource, object),
      intent: { writes: true, createsByName: true, fence: "none" },
    });
  }

  async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    requireIdentity("replace", resource, object.metadata);
    return await this.#write("update", "PUT", resource, object.metadata, options, {
      body: encode(resource, object),
      intent: { writes: true, createsByName: false, fence: "members" },
    });
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    patch: Patch,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return await this.#write("patch", "PATCH", resource, name, options, {
      body: JSON.stringify(patch.body),
      contentType: `application/${patch.type === "merge" ? "merge-patch" : "json-patch"}+json`,
      intent: { writes: true, createsByName: false, fence: fenceOf(patch) },
    });
  }

  async delete<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    preconditions: DeletePreconditions,
    options: CallOptions,
  ): Promise<void> {
    requireIdentity("delete", resource, preconditions);
    const { uid, resourceVersion } = preconditions;
    await this.#exchange.send({
      identity: identify("delete", resource, name),
      method: "DELETE",
      path: objectPath(resource, name),
      body: JSON.stringify({
        apiVersion: "v1",
        kind: "DeleteOptions",
        preconditions: { uid, resourceVersion },
      }),
      intent: { writes: true, createsByName: false, fence: "members" },
    }, options);
  }

  async createSubresource<T extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    subresource: Subresource,
    bodyResource: Resource<T>,
    body: T,
    options: CallOptions,
  ): Promise<T> {
    const call: Call = {
      identity: identify("create", resource, name, subresource),
      method: "POST",
      path: objectPath(resource, name, subresource),
      body: encode(bodyResource, body),
      intent: { writes: true, createsByName: false, fence: "none" },
    };
    const text = await this.#exchange.send(call, options);
    return decodedOr(call, decodeText(text, (value) => decodeObject(bodyResource, value)));
  }

  async version(options: CallOptions): Promise<ServerVersion> {
    const call: Call = {
      identity: { verb: "get", resource: "version", target: "" },
      method: "GET",
      path: "/version",
      intent: READS,
    };
    return decodedOr(call, decodeVersion(await this.#exchange.send(call, options)));
  }

  /** Writes one object that has a name, and reads what was stored. */
  async #write<T extends KubeObject>(
    verb: string,
    method: "PUT" | "PATCH",
    resource: Resource<T>,
    name: ObjectName,
    options: WriteOptions,
    rest: Pick<Call, "body" | "contentType" | "intent">,
  ): Promise<Stored<T>> {
    const { subresource } = options;
    const call: Call = {
      identity: identify(verb, resource, name, subresource),
      method,
      path: withQuery(objectPath(resource, name, subresource), writeQuery(options)),
      ...rest,
    };
    return readStored(call, resource, await this.#exchange.send(call, options));
  }
}

function identify(
  verb: string,
  resource: Resource,
  { name, namespace }: ObjectName,
  subresource?: Subresource,
): CallIdentity {
  const target = targetLabel(namespace, name);
  return { verb, resource: resourceLabel(resource, subresource), target };
}

function identifyAll(verb: string, resource: Resource, { namespace }: Selection): CallIdentity {
  return {
    verb,
    resource: resourceLabel(resource),
    target: namespace === undefined ? "" : targetLabel(namespace, ""),
  };
}

function listCall(resource: Resource, selection: Selection, query: Query): Call {
  return {
    identity: identifyAll("list", resource, selection),
    method: "GET",
    path: withQuery(collectionPath(resource, selection.namespace), {
      ...selectionQuery(selection),
      ...query,
    }),
    intent: READS,
  };
}

function writeQuery({ dryRun }: WriteOptions): Query {
  return { dryRun: dryRun ? "All" : undefined };
}

function encode(resource: Resource, object: KubeObject): string {
  return JSON.stringify({ ...object, ...typeOf(resource) });
}

function requireIdentity(
  action: string,
  resource: Resource,
  { uid, resourceVersion }: { readonly uid?: string; readonly resourceVersion?: string },
): void {
  for (const [member, value] of Object.entries({ uid, resourceVersion })) {
    if (!value) {
      throw new TypeError(
        `Cannot ${action} ${resource.plural} as '${member}' must be that of the object that was read: current value is ${
          value === undefined ? "undefined" : "empty"
        }`,
      );
    }
  }
}

/** How a patch names the object that it means. */
function fenceOf(patch: Patch): Intent["fence"] {
  if (patch.type === "merge") return "metadata" in patch.body ? "members" : "none";
  const fences = ["/metadata/resourceVersion", "/metadata/uid"];
  const tests = patch.body.some(({ op, path }) =>
    op === "test" && typeof path === "string" && fences.includes(path)
  );
  return tests ? "test" : "none";
}

function readStored<T extends KubeObject>(
  call: Call,
  resource: Resource<T>,
  text: string,
): Stored<T> {
  return decodedOr(call, decodeText(text, (value) => decodeStored(resource, value)));
}

function readPage(call: Call, text: string): RawPage {
  return decodedOr(call, decodePage(text));
}

function decodeText<T>(text: string, decode: (value: unknown) => Decoded<T>): Decoded<T> {
  const json = decodeJson(text);
  return json.ok ? decode(json.value) : json;
}

/** The decoded value of a successful answer. A write that was answered so has landed, whatever the answer looks like. */
function decodedOr<T>({ identity, intent }: Call, decoded: Decoded<T>): T {
  if (decoded.ok) return decoded.value;
  throw new DecodeError(identity, decoded.paths, { mayHaveLanded: intent.writes });
}

/** Sorts the items of a list into those of their kind's form and the others. */
function collect<T extends KubeObject>(
  resource: Resource<T>,
  pages: readonly RawPage[],
): ObjectList<T> {
  const items: Stored<T>[] = [];
  const undecodable: UndecodableObject[] = [];
  for (const item of pages.flatMap((page) => page.items)) {
    const decoded = decodeStored(resource, item);
    if (decoded.ok) items.push(decoded.value);
    else undecodable.push(nameUndecodable(item, decoded.paths));
  }
  return { items, resourceVersion: pages.at(-1)?.resourceVersion ?? "", undecodable };
}
