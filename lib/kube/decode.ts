/**
 * From the text of an answer to objects with a type. Pure.
 *
 * @module
 */

import { z } from "zod";
import type { KubeObject, Resource, ServerVersion, Stored, UndecodableObject } from "./api.ts";

/** What a text was read as: a value, or the paths at which it differs from the form that was expected. */
export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly paths: readonly string[] };

/** One page of a list, its items not yet looked at. */
export interface RawPage {
  readonly resourceVersion: string;
  /** Names the next page; empty on the last one. */
  readonly next: string;
  readonly items: readonly unknown[];
}

const pageSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().min(1), continue: z.string().optional() }),
  items: z.array(z.unknown()).nullish(),
});

const versionSchema = z.looseObject({
  major: z.string(),
  minor: z.string(),
  gitVersion: z.string(),
});

const someName = z.looseObject({
  metadata: z.looseObject({
    name: z.string().catch(""),
    namespace: z.string().catch(""),
  }),
});

/** Reads text as JSON. */
export function decodeJson(text: string): Decoded<unknown> {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return { ok: false, paths: [] };
  }
}

/** Checks one object against the schema of its kind, and sets the `apiVersion` and `kind` that it lacks in a list. */
export function decodeObject<T extends KubeObject>(
  resource: Resource<T>,
  value: unknown,
): Decoded<T> {
  try {
    return { ok: true, value: { ...typeOf(resource), ...resource.parse(value) } };
  } catch (error) {
    return { ok: false, paths: pathsOf(error) };
  }
}

/** Checks one object and that it is one that the server has stored: with name, uid and version. */
export function decodeStored<T extends KubeObject>(
  resource: Resource<T>,
  value: unknown,
): Decoded<Stored<T>> {
  const decoded = decodeObject(resource, value);
  if (!decoded.ok) return decoded;
  const object = decoded.value;
  return isStored(object)
    ? { ok: true, value: object }
    : { ok: false, paths: missingIdentity(object).map((member) => `metadata.${member}`) };
}

/** Reads one page of a list. */
export function decodePage(text: string): Decoded<RawPage> {
  const json = decodeJson(text);
  if (!json.ok) return json;
  const page = pageSchema.safeParse(json.value);
  if (!page.success) return { ok: false, paths: pathsOf(page.error) };
  const { metadata, items } = page.data;
  return {
    ok: true,
    value: {
      resourceVersion: metadata.resourceVersion,
      next: metadata.continue ?? "",
      items: items ?? [],
    },
  };
}

/** Reads the answer of `GET /version`. */
export function decodeVersion(text: string): Decoded<ServerVersion> {
  const json = decodeJson(text);
  if (!json.ok) return json;
  const version = versionSchema.safeParse(json.value);
  return version.success
    ? { ok: true, value: version.data }
    : { ok: false, paths: pathsOf(version.error) };
}

/** Names an object that has not the form of its kind, as far as it has a name. */
export function nameUndecodable(value: unknown, paths: readonly string[]): UndecodableObject {
  const named = someName.safeParse(value);
  return {
    namespace: named.success ? named.data.metadata.namespace : "",
    name: named.success ? named.data.metadata.name : "",
    paths,
  };
}

/** The `apiVersion` and `kind` of a kind's objects. */
export function typeOf(resource: Resource): { readonly apiVersion: string; readonly kind: string } {
  const apiVersion = resource.group === ""
    ? resource.version
    : `${resource.group}/${resource.version}`;
  return { apiVersion, kind: resource.kind };
}

/** Where a schema found a value of another form. The values stay out, since they may be secret. */
export function pathsOf(error: unknown): readonly string[] {
  if (!(error instanceof z.ZodError)) return [];
  return error.issues.map((issue) => issue.path.map(String).join("."));
}

function isStored<T extends KubeObject>(object: T): object is Stored<T> {
  return missingIdentity(object).length === 0;
}

function missingIdentity(object: KubeObject): string[] {
  const { name, uid, resourceVersion } = object.metadata;
  const members = { name, uid, resourceVersion };
  return Object.entries(members).flatMap(([member, value]) => value ? [] : [member]);
}
