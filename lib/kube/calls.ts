/**
 * What is sent for each call of the interface. Pure.
 *
 * Here stands what makes a write safe: which object it means, and how the server's refusal of it is to be read.
 *
 * @module
 */

import type { Intent } from "./answers.ts";
import type {
  DeletePreconditions,
  KubeObject,
  ListOptions,
  ObjectName,
  Patch,
  Resource,
  Selection,
  Stored,
  Subresource,
  WriteOptions,
} from "./api.ts";
import { typeOf } from "./decode.ts";
import type { CallIdentity } from "./errors.ts";
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

/** One call, ready to be sent. */
export interface Call {
  readonly identity: CallIdentity;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, behind the path of the base URL. */
  readonly path: string;
  readonly body?: string;
  /** @default {"application/json"} */
  readonly contentType?: string;
  readonly intent: Intent;
}

/** How a write is meant, beside what is sent: the options of every write. */
type WriteWish = Pick<WriteOptions, "subresource" | "dryRun">;

/** The intent of a call that changes nothing. */
export const READS: Intent = { writes: false, createsByName: false, fence: "none" };

const CREATES: Intent = { writes: true, createsByName: false, fence: "none" };
const CREATES_NAMED: Intent = { writes: true, createsByName: true, fence: "none" };
const WRITES_FENCED: Intent = { writes: true, createsByName: false, fence: "members" };

/** The one group whose kinds are created by a PUT, and are never written over by one that carries no version. */
const CREATES_BY_PUT = "coordination.k8s.io";

const PAGE_SIZE = "500";

/** What of a list shapes its call. */
export type ListWish = Selection & Pick<ListOptions, "cached">;

/** Reads one object. */
export function getCall(resource: Resource, name: ObjectName): Call {
  return {
    identity: identify("get", resource, name),
    method: "GET",
    path: objectPath(resource, name),
    intent: READS,
  };
}

/**
 * Lists one page.
 *
 * @param wish What is selected, and whether the cache is good enough.
 * @param next What the page before said about this one; empty for the first.
 */
export function pageCall(resource: Resource, wish: ListWish, next: string): Call {
  return listing("list", resource, wish, {
    limit: PAGE_SIZE,
    continue: next || undefined,
    resourceVersion: anyVersion(wish),
  });
}

/** Lists all at once. */
export function wholeListCall(resource: Resource, wish: ListWish): Call {
  return listing("list", resource, wish, { resourceVersion: anyVersion(wish) });
}

/** Version 0 means any version, so that the server's cache is good enough. */
function anyVersion({ cached = false }: ListWish): string | undefined {
  return cached ? "0" : undefined;
}

/** Lists one object, for the sake of the version of the store. */
export function currentVersionCall(resource: Resource, selection: Selection): Call {
  return listing("list", resource, selection, { limit: "1" });
}

/** Starts a watch of what follows `version`. */
export function watchCall(resource: Resource, selection: Selection, version: string): Call {
  return listing("watch", resource, selection, {
    watch: "true",
    allowWatchBookmarks: "true",
    resourceVersion: version,
  });
}

/** Creates with POST. */
export function createCall(resource: Resource, object: KubeObject, wish: WriteWish): Call {
  const { name = object.metadata.generateName ?? "", namespace } = object.metadata;
  const path = collectionPath(resource, requiredNamespace(resource, namespace));
  return {
    identity: identify("create", resource, { name, namespace }),
    method: "POST",
    path: withQuery(path, writeQuery(wish)),
    body: encode(resource, object),
    intent: CREATES,
  };
}

/**
 * Creates with PUT by name.
 *
 * @throws {TypeError} The object was read, or its kind is not created so.
 */
export function createNamedCall(resource: Resource, object: KubeObject, wish: WriteWish): Call {
  const { name = "", namespace, uid, resourceVersion } = object.metadata;
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
  return {
    ...writing("create", resource, { name, namespace }, wish),
    method: "PUT",
    body: encode(resource, object),
    intent: CREATES_NAMED,
  };
}

/**
 * Replaces the object that was read.
 *
 * @throws {TypeError} It lacks its uid or its version.
 */
export function replaceCall(
  resource: Resource,
  object: Stored<KubeObject>,
  wish: WriteWish,
): Call {
  requireIdentity("replace", resource, object.metadata);
  return {
    ...writing("update", resource, object.metadata, wish),
    method: "PUT",
    body: encode(resource, object),
    intent: WRITES_FENCED,
  };
}

/** Patches one object. */
export function patchCall(
  resource: Resource,
  name: ObjectName,
  patch: Patch,
  wish: WriteWish,
): Call {
  return {
    ...writing("patch", resource, name, wish),
    method: "PATCH",
    body: JSON.stringify(patch.body),
    contentType: `application/${patch.type === "merge" ? "merge-patch" : "json-patch"}+json`,
    intent: { ...WRITES_FENCED, fence: fenceOf(patch) },
  };
}

/**
 * Deletes the object that was read.
 *
 * @throws {TypeError} A precondition is missing.
 */
export function deleteCall(
  resource: Resource,
  name: ObjectName,
  { uid, resourceVersion }: DeletePreconditions,
): Call {
  const preconditions = { uid, resourceVersion };
  requireIdentity("delete", resource, preconditions);
  return {
    identity: identify("delete", resource, name),
    method: "DELETE",
    path: objectPath(resource, name),
    body: JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", preconditions }),
    intent: WRITES_FENCED,
  };
}

/** Posts to a subresource of one object. */
export function createSubresourceCall(
  resource: Resource,
  name: ObjectName,
  subresource: Subresource,
  bodyResource: Resource,
  body: KubeObject,
): Call {
  return {
    ...writing("create", resource, name, { subresource }),
    method: "POST",
    body: encode(bodyResource, body),
    intent: CREATES,
  };
}

/** Asks for the server's version. */
export function versionCall(): Call {
  return {
    identity: { verb: "get", resource: "version", target: "" },
    method: "GET",
    path: "/version",
    intent: READS,
  };
}

/** What all writes to one object by its name have in common. */
function writing(
  verb: string,
  resource: Resource,
  name: ObjectName,
  wish: WriteWish,
): Pick<Call, "identity" | "path"> {
  const { subresource } = wish;
  return {
    identity: identify(verb, resource, name, subresource),
    path: withQuery(objectPath(resource, name, subresource), writeQuery(wish)),
  };
}

function listing(verb: string, resource: Resource, selection: Selection, query: Query): Call {
  const { namespace } = selection;
  return {
    identity: {
      verb,
      resource: resourceLabel(resource),
      target: namespace === undefined ? "" : targetLabel(namespace, ""),
    },
    method: "GET",
    path: withQuery(collectionPath(resource, namespace), {
      ...selectionQuery(selection),
      ...query,
    }),
    intent: READS,
  };
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

function writeQuery({ dryRun }: WriteWish): Query {
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
