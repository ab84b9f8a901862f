/**
 * From the body of a write to an object of a kind: `apiVersion` and `kind`, types, members that the kind does not have.
 *
 * @module
 */

import { badRequest, invalid, invalidValue } from "./api_error.ts";
import { isObject, type Json, type JsonObject, objectAt, stringAt } from "./json.ts";
import { apiVersionOf, type Kind } from "./kinds.ts";
import { decode, type Decoded, WireError, withoutEmpty } from "./wire_types.ts";

/** What happens to members that the kind does not have: they are always dropped, and perhaps told of or refused. */
export type FieldValidation = "Ignore" | "Warn" | "Strict";

/** An object, and what its sender is warned of. */
export interface DecodedObject {
  readonly object: JsonObject;
  readonly warnings: readonly string[];
}

/** @throws {ApiError} 400 for what cannot be read as the kind; 422 for a custom kind of another name. */
export function decodeObject(
  kind: Kind,
  body: Json,
  fieldValidation: FieldValidation,
): DecodedObject {
  if (!isObject(body)) {
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind.kind}): couldn't get version/kind; json parse error`,
    );
  }
  checkIdentity(kind, body);
  const { value, unknown } = typed(kind, body);
  if (unknown.length > 0 && fieldValidation === "Strict") {
    const fields = unknown.map((path) => `unknown field "${path}"`).join(", ");
    throw unreadable(kind, kind.version, `strict decoding error: ${fields}`);
  }
  const object: JsonObject = {
    ...(isObject(value) ? value : {}),
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: withoutEmpty(objectAt(value, "metadata")),
  };
  return {
    object,
    warnings: fieldValidation === "Ignore" ? [] : unknown.map((path) => `unknown field "${path}"`),
  };
}

function typed(kind: Kind, body: JsonObject): Decoded {
  let decoded: Decoded;
  try {
    decoded = decode(body, kind.wire);
  } catch (error) {
    if (error instanceof WireError) throw unreadable(kind, kind.version, error.message);
    throw error;
  }
  if (kind.custom === null || !isObject(decoded.value)) return decoded;
  const pruned = kind.custom.prune(decoded.value);
  return { value: pruned.value, unknown: [...decoded.unknown, ...pruned.unknown] };
}

function checkIdentity(kind: Kind, body: JsonObject): void {
  const apiVersion = stringAt(body, "apiVersion");
  const name = stringAt(body, "kind");
  const wanted = apiVersionOf(kind);
  if (kind.custom !== null) {
    if (name === "") {
      throw badRequest(
        `the object provided is unrecognized (must be of type ${kind.kind}): Object 'Kind' is missing`,
      );
    }
    if (apiVersion !== wanted) {
      throw badRequest(
        `the API version in the data (${apiVersion}) does not match the expected API version (${wanted})`,
      );
    }
    if (name !== kind.kind) {
      const metadataName = stringAt(objectAt(body, "metadata"), "name");
      throw invalid(name, kind.group, metadataName, [
        invalidValue("kind", name, `must be ${kind.kind}`),
      ]);
    }
    return;
  }
  const given = apiVersion || wanted;
  if ((name || kind.kind) === kind.kind && given === wanted) return;
  throw badRequest(
    `${name || kind.kind} in version "${
      given.split("/").at(-1)
    }" cannot be handled as a ${kind.kind}: no kind ` +
      `"${name || kind.kind}" is registered for version "${given}"`,
  );
}

function unreadable(kind: Kind, version: string, why: string) {
  return badRequest(
    `${kind.kind} in version "${version}" cannot be handled as a ${kind.kind}: ${why}`,
  );
}
