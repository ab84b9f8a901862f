/**
 * What a write has to satisfy before it is one: its address, its version and its preconditions.
 *
 * @module
 */

import { ApiError, badRequest, conflict, invalid, invalidValue } from "./api_error.ts";
import type { FieldValidation } from "./decode_object.ts";
import { type JsonObject, objectAt, stringAt } from "./json.ts";
import type { Kind } from "./kinds.ts";
import { objectKey } from "./store.ts";

/** What a write is about. */
export interface WriteTarget {
  readonly kind: Kind;
  readonly namespace: string;
  /** Empty for a POST. */
  readonly name: string;
  /** `status`, or empty. */
  readonly subresource: string;
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
}

/** The key of the object that a write names. */
export function keyIn(target: WriteTarget): string {
  return objectKey(target.namespace, target.name);
}

/** The object in the namespace of the URL. @throws {ApiError} 400, when it names another. */
export function placed(target: WriteTarget, object: JsonObject): JsonObject {
  const metadata = objectAt(object, "metadata");
  const namespace = stringAt(metadata, "namespace");
  if (!target.kind.namespaced) return object;
  if (namespace !== "" && namespace !== target.namespace) {
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  }
  return { ...object, metadata: { ...metadata, namespace: target.namespace } };
}

/** @throws {ApiError} 400, when the object has no name or another than the URL. */
export function checkName(target: WriteTarget, object: JsonObject): void {
  const name = stringAt(objectAt(object, "metadata"), "name");
  if (name === "") {
    throw badRequest(
      `the name of the object (${target.name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (name !== target.name) {
    throw badRequest(
      `the name of the object (${name}) does not match the name on the URL (${target.name})`,
    );
  }
}

/** 409, for a write that names the uid of another object, or of one that is gone. */
export function uidConflict(target: WriteTarget, uid: string, storedUid: string): ApiError {
  const { kind, name } = target;
  const key = `/registry/${kind.custom ? `${kind.group}/` : ""}${kind.plural}/${keyIn(target)}`;
  return conflict(
    kind.plural,
    kind.group,
    name,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ` +
      `UID in precondition: ${uid}, UID in object meta: ${storedUid}`,
  );
}

/** @throws {ApiError} 409 for a version that is not the stored one, 422 for none where one is needed, 500 for no number. */
export function checkVersion(target: WriteTarget, stored: JsonObject, incoming: JsonObject): void {
  const { kind, name } = target;
  const version = stringAt(objectAt(incoming, "metadata"), "resourceVersion");
  if (version !== "" && !/^\d+$/.test(version)) {
    throw new ApiError(500, "", `strconv.ParseUint: parsing "${version}": invalid syntax`);
  }
  if (version === "" || version === "0") {
    if (kind.unconditionalUpdate) return;
    throw invalid(kind.plural, kind.group, name, [
      invalidValue("metadata.resourceVersion", 0, "must be specified for an update"),
    ]);
  }
  if (version !== stringAt(objectAt(stored, "metadata"), "resourceVersion")) {
    throw conflict(
      kind.plural,
      kind.group,
      name,
      "the object has been modified; please apply your changes to the latest version and try again",
    );
  }
}

/** Judges a DELETE: the uid before the version, as on the server. @throws {ApiError} 409 */
export function checkPreconditions(
  target: WriteTarget,
  stored: JsonObject,
  preconditions: JsonObject,
): void {
  const { kind, name } = target;
  const metadata = objectAt(stored, "metadata");
  const uid = stringAt(preconditions, "uid");
  const version = stringAt(preconditions, "resourceVersion");
  const storedUid = stringAt(metadata, "uid");
  const storedVersion = stringAt(metadata, "resourceVersion");
  if (uid !== "" && uid !== storedUid) {
    throw conflict(
      kind.kind,
      kind.group,
      name,
      `the UID in the precondition (${uid}) does not match the UID in record (${storedUid}). The object might have ` +
        "been deleted and then recreated",
    );
  }
  if (version !== "" && version !== storedVersion) {
    throw conflict(
      kind.kind,
      kind.group,
      name,
      `the ResourceVersion in the precondition (${version}) does not match the ResourceVersion in record ` +
        `(${storedVersion}). The object might have been modified`,
    );
  }
}
