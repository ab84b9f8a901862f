/**
 * The API server: one call in, one answer out. It knows nothing of sockets, tokens in headers, or faults.
 *
 * @module
 */

import type { Clock } from "../../runtime/clock.ts";
import type { Entropy } from "../../runtime/entropy.ts";
import type { WatchFaults } from "../faults.ts";
import { answerAccessReview } from "./access_reviews.ts";
import {
  badRequest,
  invalid,
  methodNotAllowed,
  unknownResource,
  unsupportedMediaType,
} from "./api_error.ts";
import type { FieldValidation } from "./decode_object.ts";
import { answerPath } from "./discovery.ts";
import { isObject, type Json, type JsonObject, objectAt, parseJson, stringAt } from "./json.ts";
import { type Kind, kindKey, type KindRegistry } from "./kinds.ts";
import { patcher } from "./patch.ts";
import { getObject, listObjects, toList } from "./reads.ts";
import type { ResourceRoute, Route } from "./routes.ts";
import type { Store } from "./store.ts";
import { toTable, wantsTable } from "./tables.ts";
import type { Tokens } from "./tokens.ts";
import { forbiddenResource, type Rbac, type User } from "./users.ts";
import { openWatch, type WatchStream } from "./watches.ts";
import type { WriteTarget } from "./write_checks.ts";
import { Writer, type WriteResult } from "./writes.ts";

/** One call. */
export interface ServerCall {
  readonly route: Route;
  readonly query: URLSearchParams;
  readonly user: User;
  /** The `Accept` header; empty when there is none. */
  readonly accept: string;
  /** The `Content-Type` without its parameters; empty when there is none. */
  readonly mediaType: string;
  /** The body as text; empty when there is none. */
  readonly body: string;
  readonly signal: AbortSignal;
  readonly watchFaults: WatchFaults;
}

/** An answer. */
export type ServerAnswer =
  | {
    readonly type: "json";
    readonly status: number;
    readonly body: JsonObject;
    readonly warnings: readonly string[];
  }
  | { readonly type: "text"; readonly status: number; readonly body: string }
  | { readonly type: "watch"; readonly stream: WatchStream };

/** What the server is made of. */
export interface ApiServerOptions {
  readonly store: Store;
  readonly kinds: KindRegistry;
  readonly tokens: Tokens;
  readonly rbac: Rbac;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly now: () => number;
  readonly bookmarkIntervalMs: number;
  readonly enforcesRbac: () => boolean;
  readonly createsNamespaces: () => boolean;
}

/** Serves calls. */
export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #writer: Writer;
  readonly #watches = new Set<WatchStream>();

  constructor(options: ApiServerOptions) {
    this.#options = options;
    this.#writer = new Writer({
      store: options.store,
      entropy: options.entropy,
      now: options.now,
      createNamespaces: options.createsNamespaces,
    });
  }

  /** Writes without a user: for seeds. */
  get writer(): Writer {
    return this.#writer;
  }

  /** Sends a bookmark to every watch that asked for them. */
  sendBookmarks(): void {
    for (const watch of this.#watches) watch.bookmark();
  }

  /** Serves a call. Nothing waits in it, so that each call is one step of the store. @throws {ApiError} */
  serve(call: ServerCall): ServerAnswer {
    const { route, user } = call;
    if (this.#options.enforcesRbac()) this.#options.rbac.authorize(user, route);
    if (route.type === "path") return this.#servePath(route.path, route.verb);
    const { kinds } = this.#options;
    const isServed = kinds.all().some((kind) =>
      kind.group === route.group && kind.version === route.version
    );
    if (!isServed) return notFoundPage();
    const kind = kinds.find(route.group, route.version, route.plural);
    if (kind === null) throw unknownResource();
    if (route.subresource !== "" && !kind.subresources.includes(route.subresource)) {
      throw unknownResource();
    }
    return this.#serveKind(kind, route, call);
  }

  #servePath(path: string, verb: string): ServerAnswer {
    const answer = verb === "get" ? answerPath(path, this.#options.kinds.all()) : null;
    if (answer === null) return notFoundPage();
    if (typeof answer === "string") return { type: "text", status: 200, body: answer };
    return { type: "json", status: 200, body: answer, warnings: [] };
  }

  #serveKind(kind: Kind, route: ResourceRoute, call: ServerCall): ServerAnswer {
    const isAllowed = route.subresource === ""
      ? kind.verbs.includes(route.verb)
      : (route.subresource === "token" ? ["create"] : ["get", "patch", "update"]).includes(
        route.verb,
      );
    const isCollection = route.verb === "list" || route.verb === "watch";
    const isReadAcross = isCollection && kind.namespaced;
    const lacksNamespace = kind.namespaced && route.namespace === "" && !isReadAcross;
    const createsNamed = route.verb === "create" && route.name !== "" && route.subresource === "";
    if (!isAllowed || lacksNamespace || createsNamed) throw methodNotAllowed();
    switch (route.verb) {
      case "get":
        return this.#present(kind, call, this.#get(kind, route));
      case "list":
        return this.#list(kind, route, call);
      case "watch":
        return this.#watch(kind, route, call);
      case "create":
        return this.#create(kind, route, call);
      default:
        return this.#change(kind, route, call);
    }
  }

  #get(kind: Kind, { namespace, name }: ResourceRoute): JsonObject {
    return getObject(this.#options.store, kind, kind.namespaced ? namespace : "", name);
  }

  #list(kind: Kind, route: ResourceRoute, call: ServerCall): ServerAnswer {
    const page = listObjects(this.#options.store, kind, route.namespace, call.query);
    const body = wantsTable(call.accept)
      ? toTable(kind, page.items, page.resourceVersion, this.#options.now())
      : toList(kind, page);
    return { type: "json", status: 200, body, warnings: [] };
  }

  #watch(kind: Kind, route: ResourceRoute, call: ServerCall): ServerAnswer {
    const { store, clock, entropy, bookmarkIntervalMs, now } = this.#options;
    const asTable = wantsTable(call.accept);
    const stream = openWatch(kind, route.namespace, call.query, {
      store,
      clock,
      entropy,
      bookmarkIntervalMs,
      signal: call.signal,
      faults: call.watchFaults,
      present: (object) => asTable ? toTable(kind, [object], versionOf(object), now()) : object,
      open: this.#watches,
    });
    return { type: "watch", stream };
  }

  #create(kind: Kind, route: ResourceRoute, call: ServerCall): ServerAnswer {
    const body = readBody(call, kind);
    const review = this.#review(kind, route, call, body);
    if (review !== null) return { type: "json", status: 201, body: review, warnings: [] };
    return this.#answer(kind, call, this.#writer.create(targetOf(kind, route, call), body));
  }

  /** What is answered and not stored: reviews, and tokens. */
  #review(kind: Kind, route: ResourceRoute, call: ServerCall, body: Json): JsonObject | null {
    const { tokens, rbac, enforcesRbac } = this.#options;
    if (!isObject(body)) return null;
    if (route.subresource === "token") return tokens.request(this.#get(kind, route), body);
    switch (kindKey(kind)) {
      case "authentication.k8s.io/tokenreviews":
        if (stringAt(objectAt(body, "spec"), "token") === "") {
          throw badRequest("token is required for TokenReview in authentication");
        }
        return tokens.review(body);
      case "authorization.k8s.io/selfsubjectaccessreviews":
      case "authorization.k8s.io/subjectaccessreviews":
      case "authorization.k8s.io/localsubjectaccessreviews": {
        const { namespace } = route;
        const question = { kind: kind.kind, body, namespace, caller: call.user };
        return answerAccessReview(question, rbac, enforcesRbac());
      }
      default:
        return null;
    }
  }

  #change(kind: Kind, route: ResourceRoute, call: ServerCall): ServerAnswer {
    const target = targetOf(kind, route, call);
    switch (route.verb) {
      case "update":
        return this.#answer(
          kind,
          call,
          this.#writer.update(
            target,
            readBody(call, kind),
            () => this.#authorizeCreate(route, call.user),
          ),
        );
      case "patch": {
        const apply = patcher(call.mediaType, kind.custom !== null);
        return this.#answer(
          kind,
          call,
          this.#writer.patch(target, (stored) => apply(stored, call.body)),
        );
      }
      default: {
        const options = call.body === "" ? {} : readBody(call, kind);
        return this.#answer(
          kind,
          call,
          this.#writer.delete(target, isObject(options) ? options : {}),
        );
      }
    }
  }

  /** A PUT that creates needs the verb `create` as well, on the name. */
  #authorizeCreate(route: ResourceRoute, user: User): void {
    if (!this.#options.enforcesRbac()) return;
    const attempt = { ...route, verb: "create" };
    if (this.#options.rbac.reasonFor(user, attempt) === null) {
      throw forbiddenResource(user, attempt);
    }
  }

  #answer(kind: Kind, call: ServerCall, { status, object, warnings }: WriteResult): ServerAnswer {
    const answer = this.#present(kind, call, object);
    return answer.type === "json" ? { ...answer, status, warnings } : answer;
  }

  #present(kind: Kind, { accept }: ServerCall, object: JsonObject): ServerAnswer {
    const isStatus = object.kind === "Status";
    const body = wantsTable(accept) && !isStatus
      ? toTable(kind, [object], versionOf(object), this.#options.now())
      : object;
    return { type: "json", status: 200, body, warnings: [] };
  }
}

function versionOf(object: JsonObject): string {
  return stringAt(objectAt(object, "metadata"), "resourceVersion");
}

function notFoundPage(): ServerAnswer {
  return { type: "text", status: 404, body: "404 page not found\n" };
}

function readBody({ mediaType, body }: ServerCall, kind: Kind): Json {
  if (mediaType !== "" && mediaType !== "application/json") {
    throw unsupportedMediaType(["application/json"]);
  }
  try {
    return parseJson(body);
  } catch {
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind.kind}): couldn't get version/kind; json parse error: ` +
        "unexpected end of JSON input",
    );
  }
}

/** The names of the options of each write, as errors about them say. */
const OPTIONS_KIND: Readonly<Record<string, string>> = {
  create: "CreateOptions",
  update: "UpdateOptions",
  patch: "PatchOptions",
};

function targetOf(kind: Kind, route: ResourceRoute, { query }: ServerCall): WriteTarget {
  const optionsKind = OPTIONS_KIND[route.verb] ?? "DeleteOptions";
  const refuse = (field: string, value: Json, allowed: string) => {
    const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${allowed}`;
    return invalid(optionsKind, "meta.k8s.io", "", [
      { reason: "FieldValueNotSupported", message, field },
    ]);
  };
  const dryRun = query.getAll("dryRun").filter((value) => value !== "");
  if (dryRun.some((value) => value !== "All")) throw refuse("dryRun", dryRun, '"All"');
  const validation = query.get("fieldValidation") ?? "";
  if (!isFieldValidation(validation)) {
    throw refuse("fieldValidation", validation, '"", "Ignore", "Strict", "Warn"');
  }
  return {
    kind,
    namespace: kind.namespaced ? route.namespace : "",
    name: route.name,
    subresource: route.subresource,
    dryRun: dryRun.length > 0,
    fieldValidation: validation === "" ? "Warn" : validation,
  };
}

function isFieldValidation(text: string): text is FieldValidation | "" {
  return ["", "Ignore", "Strict", "Warn"].includes(text);
}
