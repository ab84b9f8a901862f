/**
 * Get and list: consistent reads, pages, and the forms in which objects are answered.
 *
 * @module
 */

import { ApiError, badRequest, expired, invalid, notFound } from "./api_error.ts";
import { isObject, type JsonObject, parseJson, stringAt, without } from "./json.ts";
import { apiVersionOf, type Kind, kindKey } from "./kinds.ts";
import { selectionOf } from "./selectors.ts";
import { keyOf, objectKey, type Store } from "./store.ts";
import { fromBase64Url, toBase64Url } from "./tokens.ts";

/** A page of a list. */
export interface Page {
  readonly items: readonly JsonObject[];
  readonly resourceVersion: string;
  /** Asks for the next page; empty on the last one. */
  readonly continueToken: string;
  /** Objects on later pages; `null` when it is not told. */
  readonly remaining: number | null;
}

/** Reads one object. @throws {ApiError} 404 */
export function getObject(store: Store, kind: Kind, namespace: string, name: string): JsonObject {
  const object = store.get(kindKey(kind), objectKey(namespace, name));
  if (object === null) throw notFound(kind, name);
  return object;
}

/** Where a list goes on. */
interface Position {
  readonly revision: number;
  readonly after: string;
}

/** Reads a list. @throws {ApiError} 400, 410, 422, or 504 for a version that is not reached yet. */
export function listObjects(
  store: Store,
  kind: Kind,
  namespace: string,
  query: URLSearchParams,
): Page {
  const matches = selectionOf(query, kind);
  const limit = integerIn(query, "limit") ?? 0;
  const position = startOf(store, query);
  const all = store.listAt(kindKey(kind), namespace, position.revision);
  if (all === null) {
    throw expired(
      query.get("continue")
        ? "The provided continue parameter is too old to display a consistent list result"
        : "The resourceVersion for the provided list is too old.",
    );
  }
  const rest = all.filter((object) => keyOf(object) > position.after && matches(object));
  const items = limit > 0 ? rest.slice(0, limit) : rest;
  const last = items.at(-1);
  const isLast = last === undefined || items.length === rest.length;
  const isSelected = query.get("labelSelector") || query.get("fieldSelector");
  return {
    items,
    resourceVersion: String(position.revision),
    continueToken: isLast ? "" : continueToken(position.revision, keyOf(last)),
    remaining: isLast || isSelected ? null : rest.length - items.length,
  };
}

function startOf(store: Store, query: URLSearchParams): Position {
  const version = query.get("resourceVersion") ?? "";
  const match = query.get("resourceVersionMatch") ?? "";
  const token = query.get("continue") ?? "";
  if (token !== "") {
    if (version !== "" && version !== "0") {
      throw badRequest("specifying resource version is not allowed when using continue");
    }
    return positionIn(token);
  }
  if (match !== "" && version === "") {
    const message =
      "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
    throw invalid("ListOptions", "meta.k8s.io", "", [
      { reason: "FieldValueForbidden", message, field: "resourceVersionMatch" },
    ]);
  }
  if (version !== "" && !/^\d+$/.test(version)) {
    throw badRequest(
      `invalid resource version: resourceVersion: Invalid value: "${version}": strconv.ParseUint: parsing "${version}": ` +
        "invalid syntax",
    );
  }
  const wanted = Number(version);
  if (wanted > store.revision) throw tooLarge(wanted, store.revision);
  return { revision: match === "Exact" ? wanted : store.revision, after: "" };
}

function tooLarge(wanted: number, current: number): ApiError {
  const text = `Timeout: Too large resource version: ${wanted}, current: ${current}`;
  const message = "Too large resource version";
  return new ApiError(504, "Timeout", text, {
    causes: [{ reason: "ResourceVersionTooLarge", message, field: "" }],
    retryAfterSeconds: 1,
  });
}

function continueToken(revision: number, after: string): string {
  const position = { v: "meta.k8s.io/v1", rv: revision, start: after };
  return toBase64Url(new TextEncoder().encode(JSON.stringify(position)));
}

function positionIn(token: string): Position {
  try {
    const position = parseJson(new TextDecoder().decode(fromBase64Url(token)));
    if (isObject(position) && typeof position.rv === "number") {
      return { revision: position.rv, after: stringAt(position, "start") };
    }
  } catch {
    // Told below, together with a token of another form.
  }
  throw badRequest("invalid continue token: continue key is not valid");
}

/** An integer of the query, or `null`. @throws {ApiError} 400 */
export function integerIn(query: URLSearchParams, key: string): number | null {
  const text = query.get(key);
  if (text === null || text === "") return null;
  if (!/^-?\d+$/.test(text)) {
    throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
  }
  return Number(text);
}

/** A page as the API writes it. Items of built-in kinds do not name their kind; those of custom kinds do. */
export function toList(kind: Kind, page: Page): JsonObject {
  const isCustom = kind.custom !== null;
  return {
    kind: kind.listKind,
    apiVersion: apiVersionOf(kind),
    metadata: {
      resourceVersion: page.resourceVersion,
      ...(page.continueToken !== "" || isCustom ? { continue: page.continueToken } : {}),
      ...(page.remaining === null ? {} : { remainingItemCount: page.remaining }),
    },
    items: page.items.map((item) => isCustom ? item : without(item, "apiVersion", "kind")),
  };
}
