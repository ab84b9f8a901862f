/**
 * Where a call goes: the paths of the Kubernetes API. Pure.
 *
 * @module
 */

import type { ObjectName, Resource, Selection, Subresource } from "./api.ts";

/**
 * The path of a kind of object, in one namespace or in none.
 *
 * @param resource The kind.
 * @param namespace One namespace; all of them (or a kind without namespaces) when it is left out.
 * @throws {TypeError} A name is empty or cannot be a part of a path, or the kind has no namespaces.
 */
export function collectionPath(resource: Resource, namespace: string | undefined): string {
  const root = resource.group === ""
    ? `/api/${segment(resource, "version", resource.version)}`
    : `/apis/${segment(resource, "group", resource.group)}/${
      segment(resource, "version", resource.version)
    }`;
  const plural = segment(resource, "plural", resource.plural);
  if (namespace === undefined) return `${root}/${plural}`;
  if (!resource.namespaced) {
    throw new TypeError(
      `Cannot address ${resource.plural} as the kind has no namespaces: 'namespace' must be left out`,
    );
  }
  return `${root}/namespaces/${segment(resource, "namespace", namespace)}/${plural}`;
}

/**
 * The path of one object, or of a part of it.
 *
 * @throws {TypeError} The name, or the namespace of a namespaced kind, is missing or cannot be a part of a path.
 */
export function objectPath(
  resource: Resource,
  { name, namespace }: ObjectName,
  subresource?: Subresource,
): string {
  const collection = collectionPath(resource, requiredNamespace(resource, namespace));
  const path = `${collection}/${segment(resource, "name", name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/**
 * The namespace of a call that needs one.
 *
 * @throws {TypeError} The kind is namespaced and `namespace` is left out: a silent default would reach another object.
 */
export function requiredNamespace(
  resource: Resource,
  namespace: string | undefined,
): string | undefined {
  if (resource.namespaced && namespace === undefined) {
    throw new TypeError(
      `Cannot address an object of ${resource.plural} as 'namespace' must be set: it is left out`,
    );
  }
  return namespace;
}

/** The plural with its API group, as a Role names it; with a subresource, `x/status`. */
export function resourceLabel(resource: Resource, subresource?: Subresource): string {
  const label = resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
  return subresource === undefined ? label : `${label}/${subresource}`;
}

/** What a call is about, for an error: `namespace/name`, `name`, or `namespace/`. */
export function targetLabel(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** The parameters of a URL. Members that are undefined are left out. */
export type Query = Readonly<Record<string, string | undefined>>;

/** Writes `query` behind `path`. */
export function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(key, value);
  }
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}

/** The parameters that select objects. An empty selector selects all, as when it is left out. */
export function selectionQuery(selection: Selection): Query {
  return {
    labelSelector: selection.labelSelector || undefined,
    fieldSelector: selection.fieldSelector || undefined,
  };
}

/** A text as one part of a path. A dot segment is refused, since a URL would be shortened by it. */
function segment(resource: Resource, what: string, value: string): string {
  if (value === "" || value === "." || value === ".." || value.includes("/")) {
    throw new TypeError(
      `Cannot address ${resource.plural} as '${what}' must be a name: current value is "${value}"`,
    );
  }
  return encodeURIComponent(value);
}
