/**
 * The Go types of built-in kinds, as far as their JSON decoder can be told from outside: which members exist, and which
 * values they refuse with 400.
 *
 * @module
 */

import { isArray, isObject, type Json, type JsonObject } from "./json.ts";

/** The type of a value on the wire. `any` is taken as it is. */
export type WireType =
  | "any"
  | "string"
  | "int32"
  | "int64"
  | "bool"
  | "time"
  | "microTime"
  | { readonly list: WireType }
  | { readonly map: WireType }
  | {
    readonly struct: Readonly<Record<string, WireType>>;
    /** The name of the Go struct, which error texts carry. */
    readonly name: string;
    /** True for a type of which only a part is described here: other members are kept. */
    readonly open?: boolean;
  };

/** A value that its type refuses. */
export class WireError extends Error {
  override readonly name = "WireError";
}

/** What was decoded, and the paths of members that its type does not have: they are dropped. */
export interface Decoded {
  readonly value: Json;
  readonly unknown: readonly string[];
}

const OWNER_REFERENCE: WireType = {
  name: "OwnerReference",
  struct: {
    apiVersion: "string",
    kind: "string",
    name: "string",
    uid: "string",
    controller: "bool",
    blockOwnerDeletion: "bool",
  },
};

/** `metadata` of every kind, custom ones included. */
export const OBJECT_META: WireType = {
  name: "ObjectMeta",
  struct: {
    name: "string",
    generateName: "string",
    namespace: "string",
    selfLink: "string",
    uid: "string",
    resourceVersion: "string",
    generation: "int64",
    creationTimestamp: "time",
    deletionTimestamp: "time",
    deletionGracePeriodSeconds: "int64",
    labels: { map: "string" },
    annotations: { map: "string" },
    ownerReferences: { list: OWNER_REFERENCE },
    finalizers: { list: "string" },
    managedFields: { list: "any" },
  },
};

/** The spec of a Lease. */
export const LEASE_SPEC: WireType = {
  name: "LeaseSpec",
  struct: {
    holderIdentity: "string",
    leaseDurationSeconds: "int32",
    acquireTime: "microTime",
    renewTime: "microTime",
    leaseTransitions: "int32",
    strategy: "string",
    preferredHolder: "string",
  },
};

/**
 * The type of a whole object, from the members that it has beside its metadata.
 *
 * @param members `null` for a kind whose members are not described: they are kept as they are.
 */
export function wireObject(
  name: string,
  members: Readonly<Record<string, WireType>> | null,
): WireType {
  return {
    name,
    struct: { apiVersion: "string", kind: "string", metadata: OBJECT_META, ...members },
    ...(members === null ? { open: true } : {}),
  };
}

/**
 * Decodes a value as Go's JSON decoder does: `null` is "not there", members that the type does not have are dropped,
 * times are normalised, and a wrong type is refused.
 *
 * @throws {WireError}
 */
export function decode(value: Json, type: WireType): Decoded {
  const unknown: string[] = [];
  return { value: decodeAt(value, type, "", "", unknown), unknown };
}

/** `path` is that of the JSON; `goPath` names the struct and the path in it, as error texts do. */
function decodeAt(
  value: Json,
  type: WireType,
  path: string,
  goPath: string,
  unknown: string[],
): Json {
  if (type === "any") return value;
  if (typeof type === "string") return decodeScalar(value, type, goPath);
  if ("list" in type) {
    if (!isArray(value)) throw mismatch(value, goPath, `[]${goName(type.list)}`);
    return value.map((item, index) =>
      decodeAt(item, type.list, `${path}[${index}]`, goPath, unknown)
    );
  }
  if (!isObject(value)) {
    throw mismatch(value, goPath, "map" in type ? "map[string]string" : `v1.${type.name}`);
  }
  const result: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value)) {
    const memberPath = path === "" ? key : `${path}.${key}`;
    const memberType = "map" in type
      ? type.map
      : type.struct[key] ?? (type.open ? "any" : undefined);
    if (memberType === undefined) unknown.push(memberPath);
    else if (member !== null && member !== undefined) {
      const memberGoPath = "map" in type ? goPath : `${structOf(goPath, type.name)}.${key}`;
      result[key] = decodeAt(member, memberType, memberPath, memberGoPath, unknown);
    }
  }
  return result;
}

/** Go names the innermost struct and the whole path: `LeaseSpec.spec.leaseTransitions`. */
function structOf(goPath: string, name: string): string {
  const path = goPath.split(".").slice(1).join(".");
  return path === "" ? name : `${name}.${path}`;
}

function decodeScalar(value: Json, type: WireType & string, goPath: string): Json {
  switch (type) {
    case "int32":
    case "int64":
      if (typeof value !== "number") throw mismatch(value, goPath, type);
      if (!Number.isInteger(value) || (type === "int32" && (value | 0) !== value)) {
        throw new WireError(
          `json: cannot unmarshal number ${value} into Go struct field ${goPath} of type ${type}`,
        );
      }
      return value;
    case "bool":
      if (typeof value !== "boolean") throw mismatch(value, goPath, "bool");
      return value;
    default:
      if (typeof value !== "string") {
        throw mismatch(value, goPath, type === "string" ? "string" : "Time");
      }
      if (type === "string") return value;
      return type === "time" ? secondsTime(value) : microTime(value);
  }
}

function goName(type: WireType): string {
  return typeof type === "string" ? type : "struct" in type ? `v1.${type.name}` : "list";
}

function mismatch(value: Json, goPath: string, goType: string): WireError {
  const what = isArray(value) ? "array" : isObject(value) ? "object" : typeof value;
  const name = what === "boolean" ? "bool" : what;
  return new WireError(
    `json: cannot unmarshal ${name} into Go struct field ${goPath} of type ${goType}`,
  );
}

const MICRO_TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{6})(Z|[+-]\d\d:\d\d)$/;
const SECONDS_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** Exactly six fraction digits, or it is refused; another zone becomes UTC. */
function microTime(text: string): string {
  const parts = MICRO_TIME.exec(text);
  const instant = parts === null ? NaN : Date.parse(`${parts[1]}${parts[3]}`);
  if (parts === null || Number.isNaN(instant)) {
    throw new WireError(`parsing time "${text}" as "2006-01-02T15:04:05.000000Z07:00"`);
  }
  return `${new Date(instant).toISOString().slice(0, 19)}.${parts[2]}Z`;
}

/** RFC 3339; a fraction is cut off. */
function secondsTime(text: string): string {
  const instant = SECONDS_TIME.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(instant)) {
    throw new WireError(`parsing time "${text}" as "2006-01-02T15:04:05Z07:00"`);
  }
  return timestamp(instant);
}

/** An instant as metadata shows it: whole seconds. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Metadata without its empty members, as the server writes it. */
export function withoutEmpty(metadata: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(metadata).filter(([, value]) =>
      value !== "" && value !== null && value !== undefined && value !== 0 &&
      !(isArray(value) && value.length === 0) &&
      !(isObject(value) && Object.keys(value).length === 0)
    ),
  );
}
