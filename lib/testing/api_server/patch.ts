/**
 * Patches: RFC 7386 (merge) and RFC 6902 (JSON patch), and as much of the strategic form as equals a merge.
 *
 * @module
 */

import jsonPatch from "fast-json-patch";
import { ApiError, badRequest, unsupportedMediaType } from "./api_error.ts";
import { isArray, isObject, type Json, type JsonObject, parseJson } from "./json.ts";

const MERGE = "application/merge-patch+json";
const JSON_PATCH = "application/json-patch+json";
const STRATEGIC = "application/strategic-merge-patch+json";

/**
 * Makes the function that applies a patch.
 *
 * @param custom True for custom kinds, for which there is no strategic form.
 * @throws {ApiError} 415 for another media type.
 */
export function patcher(
  mediaType: string,
  custom: boolean,
): (object: JsonObject, patchText: string) => JsonObject {
  if (mediaType === JSON_PATCH) return applyJsonPatch;
  if (mediaType === MERGE) return applyMerge;
  if (mediaType === STRATEGIC && !custom) return applyStrategic;
  throw custom && mediaType === STRATEGIC
    ? unsupportedMediaType([JSON_PATCH, MERGE])
    : new ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
}

/** RFC 7386. */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result: Record<string, Json> = {};
  for (const [key, value] of Object.entries(isObject(target) ? target : {})) {
    if (value !== undefined) result[key] = value;
  }
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || value === undefined) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

function applyMerge(object: JsonObject, patchText: string): JsonObject {
  const result = mergePatch(object, readPatchObject(patchText));
  return isObject(result) ? result : {};
}

function readPatchObject(patchText: string): JsonObject {
  const patch = readPatch(patchText);
  if (!isObject(patch)) {
    const what = isArray(patch) ? "array" : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${what} into Go value of type map[string]interface {}`,
    );
  }
  return patch;
}

/** Lists and directives are what sets the strategic form apart. They need the Go types, so they are refused. */
function applyStrategic(object: JsonObject, patchText: string): JsonObject {
  const patch = readPatchObject(patchText);
  if (hasListOrDirective(patch)) {
    throw new ApiError(
      415,
      "UnsupportedMediaType",
      "a strategic merge patch with lists or directives is not supported by this in-memory server; use a merge patch",
    );
  }
  const result = mergePatch(object, patch);
  return isObject(result) ? result : {};
}

function hasListOrDirective(patch: Json | undefined): boolean {
  if (isArray(patch)) return true;
  return isObject(patch) &&
    Object.entries(patch).some(([key, value]) => key.startsWith("$") || hasListOrDirective(value));
}

function applyJsonPatch(object: JsonObject, patchText: string): JsonObject {
  const operations = readPatch(patchText);
  if (!isArray(operations)) {
    throw badRequest(
      "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    );
  }
  try {
    const { newDocument } = jsonPatch.applyPatch<unknown>(
      object,
      operations.map(toOperation),
      true,
      false,
    );
    if (isObject(newDocument)) return newDocument;
  } catch {
    // One text for all: the server does not say which operation failed.
  }
  throw new ApiError(
    422,
    "Invalid",
    "the server rejected our request due to an error in our request",
    {},
  );
}

type Operation = Parameters<typeof jsonPatch.applyPatch>[1][number];

/** The library checks the operations again, with the document at hand. */
function toOperation(value: Json): Operation {
  if (!isObject(value)) throw new TypeError("an operation is an object");
  const { op, path, from, value: operand } = value;
  if (typeof path !== "string") throw new TypeError("an operation has a path");
  switch (op) {
    case "remove":
      return { op, path };
    case "move":
    case "copy":
      if (typeof from !== "string") throw new TypeError("the operation needs a from");
      return { op, path, from };
    case "add":
    case "replace":
    case "test":
      return { op, path, value: operand };
    default:
      throw new TypeError("the operation is not known");
  }
}

function readPatch(patchText: string): Json {
  try {
    return parseJson(patchText);
  } catch {
    throw badRequest("error decoding patch: unexpected end of JSON input");
  }
}
