/**
 * A cluster behind HTTP: the {@linkcode KubeApi} of production, and of tests against the server of `lib/testing`.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
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
  ServerVersion,
  Stored,
  Subresource,
  UndecodableObject,
  Watch,
  WatchOptions,
  WriteOptions,
} from "./api.ts";
import {
  type Call,
  createCall,
  createNamedCall,
  createSubresourceCall,
  currentVersionCall,
  deleteCall,
  getCall,
  pageCall,
  patchCall,
  replaceCall,
  versionCall,
  watchCall,
  wholeListCall,
} from "./calls.ts";
import { CallSlots, MAX_CONCURRENT_CALLS } from "./call_slots.ts";
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
} from "./decode.ts";
import { DecodeError, GoneError } from "./errors.ts";
import { type CallReport, Exchange, type SendRequest } from "./exchange.ts";
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
  /**
   * How many calls may be under way at once, beside watches. More wait for their turn, within their time limit.
   *
   * @default {64}
   */
  readonly maxConcurrentCalls?: number;
  /** Sees every answer once: errors and the starts of watches too. It must not throw. */
  readonly observer?: AnswerObserver;
  /** Counts every request once, when it has ended. It must not throw. */
  readonly onCall?: (report: CallReport) => void;
  /** How this program calls itself to the API server, for its audit log. @default {"holdfast"} */
  readonly userAgent?: string;
}

const DEFAULT_TIMEOUT_MS = 10_000;
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
      slots: new CallSlots(parts.maxConcurrentCalls ?? MAX_CONCURRENT_CALLS),
      observer: parts.observer ?? (() => {}),
      onCall: parts.onCall ?? (() => {}),
    });
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    return await this.#sendStored(resource, getCall(resource, name), options);
  }

  async list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions,
  ): Promise<ObjectList<T>> {
    const first = pageCall(resource, options, "");
    const pages = await this.#exchange.within(first.identity, options, async (send) => {
      const read: RawPage[] = [];
      for (let call = first;;) {
        try {
          const page = readPage(call, await send(call));
          read.push(page);
          if (page.next === "") return read;
          call = pageCall(resource, options, page.next);
        } catch (error) {
          if (!(error instanceof GoneError) || call === first) throw error;
          // The server dropped the state that the pages are of. A list without pages cannot lose it.
          const whole = wholeListCall(resource, options);
          return [readPage(whole, await send(whole))];
        }
      }
    });
    return collect(resource, pages);
  }

  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): Watch<T> {
    const { signal, idleTimeoutMs = DEFAULT_IDLE_TIMEOUT_MS } = options;
    const { namespace, labelSelector, fieldSelector } = options;
    const selection = { namespace, labelSelector, fieldSelector };
    const { identity } = watchCall(resource, selection, "");
    return new RunningWatch<T>({
      call: identity,
      list: (signal) => this.list(resource, { ...selection, signal }),
      currentVersion: async (signal) => {
        const call = currentVersionCall(resource, selection);
        return readPage(call, await this.#exchange.send(call, { signal })).resourceVersion;
      },
      open: (version, signal) =>
        this.#exchange.open(watchCall(resource, selection, version), signal),
      read: (line) => readWatchLine(resource, identity, line),
    }, { clock: this.#clock, entropy: this.#entropy, signal, idleTimeoutMs });
  }

  async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<T> {
    return await this.#sendObject(resource, createCall(resource, object, options), options);
  }

  async createNamed<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return await this.#sendStored(resource, createNamedCall(resource, object, options), options);
  }

  async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return await this.#sendStored(resource, replaceCall(resource, object, options), options);
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    patch: Patch,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return await this.#sendStored(resource, patchCall(resource, name, patch, options), options);
  }

  async delete<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    preconditions: DeletePreconditions,
    options: CallOptions,
  ): Promise<void> {
    await this.#exchange.send(deleteCall(resource, name, preconditions), options);
  }

  async createSubresource<T extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    subresource: Subresource,
    bodyResource: Resource<T>,
    body: T,
    options: CallOptions,
  ): Promise<T> {
    const call = createSubresourceCall(resource, name, subresource, bodyResource, body);
    return await this.#sendObject(bodyResource, call, options);
  }

  async version(options: CallOptions): Promise<ServerVersion> {
    const call = versionCall();
    return decodedOr(call, decodeVersion(await this.#exchange.send(call, options)));
  }

  /** Sends a call that is answered with an object that the server has stored. */
  async #sendStored<T extends KubeObject>(
    resource: Resource<T>,
    call: Call,
    options: CallOptions,
  ): Promise<Stored<T>> {
    const text = await this.#exchange.send(call, options);
    return decodedOr(call, decodeText(text, (value) => decodeStored(resource, value)));
  }

  /** Sends a call that is answered with an object, stored or not. */
  async #sendObject<T extends KubeObject>(
    resource: Resource<T>,
    call: Call,
    options: CallOptions,
  ): Promise<T> {
    const text = await this.#exchange.send(call, options);
    return decodedOr(call, decodeText(text, (value) => decodeObject(resource, value)));
  }
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
