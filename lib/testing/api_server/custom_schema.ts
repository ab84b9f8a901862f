/**
 * The schema of a custom kind (Kubernetes concept "structural schema"): what it drops, fills in and refuses.
 *
 * Of `x-kubernetes-validations` one rule is understood, `self == oldSelf` (a field that cannot change); other rules are
 * not checked.
 *
 * @module
 */

import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { RecentlyUsed } from "../../runtime/recently_used.ts";
import { type Cause, invalidValue, requiredValue } from "./api_error.ts";
import {
  arrayAt,
  equal,
  isArray,
  isObject,
  type Json,
  type JsonObject,
  objectAt,
  stringAt,
  strings,
} from "./json.ts";
import type { Decoded } from "./wire_types.ts";

const INT32_MAX = 2 ** 31 - 1;

/** Causes after which the server does not run the rules of `x-kubernetes-validations`. */
const BLOCKING = [
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
];

/** So many compiled schemas are kept; what was compiled longest ago goes first. */
const KEPT_SCHEMAS = 64;
const kept = new RecentlyUsed<CustomSchema>(KEPT_SCHEMAS);

/**
 * Compiles a schema, or gives the one that was compiled from the same text. The clusters of one process mostly have the same
 * definitions, and compiling is most of what a new cluster costs.
 *
 * @throws {Error} When the schema itself is not valid.
 */
export function compileSchema(schema: JsonObject): CustomSchema {
  const text = JSON.stringify(schema);
  const known = kept.get(text);
  if (known !== undefined) return known;
  const compiled = new CustomSchema(schema);
  kept.set(text, compiled);
  return compiled;
}

/** A compiled schema. Get one with {@linkcode compileSchema}. */
export class CustomSchema {
  readonly #schema: JsonObject;
  readonly #validate: ValidateFunction;
  readonly #hasRules: boolean;

  /** @throws {Error} When the schema itself is not valid. */
  constructor(schema: JsonObject) {
    this.#schema = schema;
    this.#hasRules = JSON.stringify(schema).includes('"x-kubernetes-validations"');
    const ajv = new Ajv({
      allErrors: true,
      // Errors then carry the value, which the texts name.
      verbose: true,
      strict: false,
      logger: false,
      // Patterns are written for Go, which has no unicode mode with its stricter escapes.
      unicodeRegExp: false,
      formats: {
        "date-time": /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/,
        date: /^\d{4}-\d\d-\d\d$/,
        int32: { type: "number", validate: (value: number) => Math.abs(value) <= INT32_MAX },
        int64: { type: "number", validate: (value: number) => Number.isFinite(value) },
      },
    });
    this.#validate = ajv.compile(toJsonSchema(schema));
  }

  /** Drops what the schema does not have, and fills in defaults. Types are left to {@linkcode CustomSchema.faults}. */
  prune(object: JsonObject): Decoded {
    const unknown: string[] = [];
    const properties = { ...objectAt(this.#schema, "properties") };
    for (const key of ["apiVersion", "kind", "metadata"]) properties[key] = KEEP;
    const value = pruneAt(object, { ...this.#schema, properties }, "", unknown);
    return { value, unknown };
  }

  /** What is wrong with an object; beside the stored one, when there is one. */
  faults(object: JsonObject, stored: JsonObject | null): Cause[] {
    this.#validate(object);
    const causes = firstPerText(this.#validate.errors ?? []).flatMap((error) => toCause(error));
    causes.push(...duplicates(object, this.#schema, ""));
    if (!this.#hasRules) return causes;
    if (causes.some((cause) => BLOCKING.includes(cause.reason))) {
      causes.push(invalidValue(
        "<nil>",
        null,
        "some validation rules were not checked because the object was invalid; correct the existing errors to " +
          "complete validation",
      ));
    } else if (stored !== null) causes.push(...changed(object, stored, this.#schema, ""));
    return causes;
  }
}

const KEEP: JsonObject = { "x-kubernetes-preserve-unknown-fields": true };

function pruneAt(value: Json, schema: JsonObject, path: string, unknown: string[]): Json {
  if (isArray(value)) {
    const items = schema.items;
    return isObject(items)
      ? value.map((item, index) => pruneAt(item, items, `${path}[${index}]`, unknown))
      : value;
  }
  if (!isObject(value)) return value;
  const properties = objectAt(schema, "properties");
  const additional = schema.additionalProperties;
  const keepsUnknown = schema["x-kubernetes-preserve-unknown-fields"] === true ||
    additional === true;
  const result: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value)) {
    const memberPath = path === "" ? key : `${path}.${key}`;
    const memberSchema = properties[key] ?? (isObject(additional) ? additional : undefined);
    if (member === undefined) continue;
    if (!isObject(memberSchema)) {
      if (keepsUnknown) result[key] = member;
      else unknown.push(memberPath);
    } else if (member !== null || memberSchema.nullable === true || memberSchema === KEEP) {
      result[key] = pruneAt(member, memberSchema, memberPath, unknown);
    }
  }
  for (const [key, memberSchema] of Object.entries(properties)) {
    const fallback = isObject(memberSchema) ? memberSchema.default : undefined;
    if (fallback !== undefined && result[key] === undefined) result[key] = fallback;
  }
  return result;
}

/** The schema as ajv reads it: OpenAPI 3.0 and Kubernetes differ from JSON Schema in a few keywords. */
function toJsonSchema(schema: Json): JsonObject {
  if (!isObject(schema)) return {};
  const result: Record<string, Json> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || key.startsWith("x-kubernetes-") || key === "default") continue;
    if (key === "properties") {
      result[key] = Object.fromEntries(
        Object.entries(isObject(value) ? value : {}).map((
          [name, member],
        ) => [name, toJsonSchema(member ?? {})]),
      );
    } else if (["items", "additionalProperties", "not"].includes(key) && isObject(value)) {
      result[key] = toJsonSchema(value);
    } else if (["allOf", "anyOf", "oneOf"].includes(key) && isArray(value)) {
      result[key] = value.map((part) => toJsonSchema(part));
    } else if (key === "exclusiveMinimum" && value === true) {
      result[key] = schema.minimum ?? null;
    } else if (key === "exclusiveMaximum" && value === true) {
      result[key] = schema.maximum ?? null;
    } else if (!(key.startsWith("exclusive") && value === false)) {
      result[key] = value;
    }
  }
  if (schema["x-kubernetes-int-or-string"] === true) result.type = ["integer", "string"];
  return result;
}

/** Of the rules of one text the server tells the first that is broken. */
function firstPerText(errors: readonly ErrorObject[]): ErrorObject[] {
  const isOfText = (error: ErrorObject) =>
    ["maxLength", "minLength", "pattern"].includes(error.keyword);
  return errors.filter((error, index) =>
    !isOfText(error) ||
    !errors.slice(0, index).some((earlier) =>
      isOfText(earlier) && earlier.instancePath === error.instancePath
    )
  );
}

/** A fault as the API server words it. */
function toCause(error: ErrorObject): Cause[] {
  const field = fieldPath(error.instancePath);
  const params: Json = error.params;
  const value: unknown = error.data;
  const inBody = (why: string) => [invalidValue(field, value, `${field} in body ${why}`)];
  const limit = valueOf(params, "limit");
  switch (error.keyword) {
    case "required": {
      const missing = stringAt(params, "missingProperty");
      return [requiredValue(field === "" ? missing : `${field}.${missing}`)];
    }
    case "type": {
      const type = valueOf(params, "type");
      const found = typeName(value);
      const cause = invalidValue(
        field,
        found,
        `${field} in body must be of type ${type}: "${found}"`,
      );
      return [{ ...cause, reason: "FieldValueTypeInvalid" }];
    }
    case "enum": {
      const allowed = arrayAt(params, "allowedValues").map((one) => JSON.stringify(one));
      return [{
        reason: "FieldValueNotSupported",
        message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${
          allowed.join(", ")
        }`,
        field,
      }];
    }
    case "maxLength":
      return [{
        reason: "FieldValueTooLong",
        message: `Too long: may not be more than ${limit} bytes`,
        field,
      }];
    case "maxItems": {
      const count = Array.isArray(value) ? value.length : 0;
      const message = `Too many: ${count}: must have at most ${limit} items`;
      return [{ reason: "FieldValueTooMany", message, field }];
    }
    case "minItems": {
      const count = Array.isArray(value) ? value.length : 0;
      return [invalidValue(field, count, `${field} in body should have at least ${limit} items`)];
    }
    case "minLength":
      return inBody(`should be at least ${limit} chars long`);
    case "minimum":
      return inBody(`should be greater than or equal to ${limit}`);
    case "maximum":
      return inBody(`should be less than or equal to ${limit}`);
    case "pattern":
      return inBody(`should match '${stringAt(params, "pattern")}'`);
    case "format": {
      const format = stringAt(params, "format");
      return format.startsWith("int")
        ? [
          invalidValue(
            "<nil>",
            "",
            `Checked value must be of type integer with format ${format} in ${field}`,
          ),
        ]
        : inBody(`must be of type ${format}: ${JSON.stringify(value)}`);
    }
    default:
      return inBody(`breaks the rule ${error.keyword}`);
  }
}

function valueOf(params: Json, key: string): string {
  const value = isObject(params) ? params[key] : undefined;
  return Array.isArray(value) ? value.join(",") : String(value ?? "");
}

function typeName(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "float64";
  return typeof value;
}

/** `/spec/list/0/ns` as `spec.list[0].ns`. */
function fieldPath(pointer: string): string {
  return pointer.split("/").slice(1).reduce((path, raw) => {
    const key = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(key)) return `${path}[${key}]`;
    return path === "" ? key : `${path}.${key}`;
  }, "");
}

/** The members of sets and of lists with keys that are there twice. */
function duplicates(value: Json, schema: JsonObject, path: string): Cause[] {
  if (isObject(value)) {
    return Object.entries(value).flatMap(([key, member]) => {
      const memberSchema = objectAt(schema, "properties")[key] ?? schema.additionalProperties;
      if (member === undefined || !isObject(memberSchema)) return [];
      return duplicates(member, memberSchema, path === "" ? key : `${path}.${key}`);
    });
  }
  if (!isArray(value)) return [];
  const items = objectAt(schema, "items");
  const listType = stringAt(schema, "x-kubernetes-list-type");
  const keys = strings(arrayAt(schema, "x-kubernetes-list-map-keys"));
  const identities = value.map((item): Json =>
    listType === "map"
      ? Object.fromEntries(keys.map((key) => [key, isObject(item) ? item[key] ?? null : null]))
      : item
  );
  return value.flatMap((item, index) => {
    const identity = identities[index];
    const isKeyed = listType === "map" || listType === "set";
    const repeated = isKeyed &&
      identities.slice(0, index).some((earlier) => equal(earlier, identity));
    const own: Cause[] = repeated
      ? [{
        reason: "FieldValueDuplicate",
        message: `Duplicate value: ${JSON.stringify(identity)}`,
        field: `${path}[${index}]`,
      }]
      : [];
    return [...own, ...duplicates(item, items, `${path}[${index}]`)];
  });
}

/** The fields that cannot change and did. As on the server, a field that was not there before is free. */
function changed(
  value: Json | undefined,
  stored: Json | undefined,
  schema: JsonObject,
  path: string,
): Cause[] {
  if (value === undefined || stored === undefined) return [];
  const causes = arrayAt(schema, "x-kubernetes-validations")
    .filter((rule) => /^\s*self\s*==\s*oldSelf\s*$/.test(stringAt(rule, "rule")))
    .filter(() => !equal(value, stored))
    .map((rule) =>
      invalidValue(path, value, stringAt(rule, "message") || "failed rule: self == oldSelf")
    );
  if (!isObject(value) || !isObject(stored)) return causes;
  const members = Object.entries(objectAt(schema, "properties")).flatMap(([key, memberSchema]) =>
    isObject(memberSchema)
      ? changed(value[key], stored[key], memberSchema, path === "" ? key : `${path}.${key}`)
      : []
  );
  return [...causes, ...members];
}
