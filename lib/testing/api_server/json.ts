/**
 * JSON values as the API server handles them: outside data that is looked at before it is used.
 *
 * @module
 */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** True for an object; false for arrays and for all else. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** True for an array. (`Array.isArray` loses the element type of a readonly array.) */
export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** The member as an object; an empty one when it is missing or of another form. */
export function objectAt(value: Json | undefined, key: string): JsonObject {
  const member = isObject(value) ? value[key] : undefined;
  return isObject(member) ? member : {};
}

/** The member as a string; empty when it is missing or of another form. */
export function stringAt(value: Json | undefined, key: string): string {
  const member = isObject(value) ? value[key] : undefined;
  return typeof member === "string" ? member : "";
}

/** The member as an array; empty when it is missing or of another form. */
export function arrayAt(value: Json | undefined, key: string): readonly Json[] {
  const member = isObject(value) ? value[key] : undefined;
  return isArray(member) ? member : [];
}

/** The members that are strings. */
export function strings(values: readonly Json[]): string[] {
  return values.filter((value) => typeof value === "string");
}

/** What a simple path of member names leads to, for example `.spec.groupRef.name`. */
export function valueAt(value: Json | undefined, path: string): Json | undefined {
  let current: Json | undefined = value;
  for (const key of path.split(".").filter((part) => part !== "")) {
    current = isObject(current) ? current[key] : undefined;
  }
  return current;
}

/** True when both are the same JSON. The order of members does not count. */
export function equal(left: Json | undefined, right: Json | undefined): boolean {
  if (left === right) return true;
  if (isArray(left) && isArray(right)) {
    return left.length === right.length && left.every((item, index) => equal(item, right[index]));
  }
  if (!isObject(left) || !isObject(right)) return false;
  const keys = presentKeys(left);
  return keys.length === presentKeys(right).length &&
    keys.every((key) => right[key] !== undefined && equal(left[key], right[key]));
}

/** The value without members that are `undefined`, frozen all through, so that nobody can change what is stored. */
export function frozenCopy<T extends Json>(value: T): T;
export function frozenCopy(value: Json): Json {
  if (isArray(value)) return Object.freeze(value.map((item) => frozenCopy(item)));
  if (!isObject(value)) return value;
  const copy: Record<string, Json> = {};
  for (const key of presentKeys(value)) copy[key] = frozenCopy(value[key] ?? null);
  return Object.freeze(copy);
}

/** The object without these members. */
export function without(value: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));
}

/** Reads JSON text as a value. @throws {SyntaxError} */
export function parseJson(text: string): Json {
  const value: Json = JSON.parse(text);
  return value;
}

function presentKeys(value: JsonObject): string[] {
  return Object.keys(value).filter((key) => value[key] !== undefined);
}
