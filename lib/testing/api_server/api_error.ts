/**
 * The errors of the API server, in the form in which it answers them: a `Status` object.
 *
 * Texts and reasons are those of kube-apiserver 1.36, for clients decide by some of them.
 *
 * @module
 */

import type { JsonObject } from "./json.ts";
import type { Kind } from "./kinds.ts";

/** One reason why an object is refused. */
export interface Cause {
  /** For example `FieldValueInvalid`. */
  readonly reason: string;
  readonly message: string;
  /** The path of the field, for example `spec.leaseDurationSeconds`. */
  readonly field: string;
}

/** What a `Status` says beside its text. */
export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
}

/** An answer that is a failure. Thrown inside the server, and sent by its edge. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: number;
  readonly reason: string;
  readonly details: StatusDetails | null;

  constructor(code: number, reason: string, message: string, details: StatusDetails | null = null) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  /** The `Status` object. */
  toStatus(): JsonObject {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: this.message,
      ...(this.reason === "" ? {} : { reason: this.reason }),
      ...(this.details === null ? {} : { details: detailsToJson(this.details) }),
      code: this.code,
    };
  }
}

/** `details` without its empty members, as the server writes it. */
export function detailsToJson(details: StatusDetails): JsonObject {
  const { name, group, kind, uid, causes, retryAfterSeconds } = details;
  return {
    ...(name ? { name } : {}),
    ...(group ? { group } : {}),
    ...(kind ? { kind } : {}),
    ...(uid ? { uid } : {}),
    ...(causes ? { causes: causes.map(causeToJson) } : {}),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  };
}

function causeToJson({ reason, message, field }: Cause): JsonObject {
  return { reason, message, ...(field ? { field } : {}) };
}

/** `leases.coordination.k8s.io`, or `configmaps` for the core group: the name of a kind in texts and in RBAC. */
export function qualified(name: string, group: string): string {
  return group === "" ? name : `${name}.${group}`;
}

/** 400. */
export function badRequest(message: string): ApiError {
  return new ApiError(400, "BadRequest", message);
}

/** 404 for one object. */
export function notFound(kind: Pick<Kind, "plural" | "group">, name: string): ApiError {
  return new ApiError(
    404,
    "NotFound",
    `${qualified(kind.plural, kind.group)} "${name}" not found`,
    {
      name,
      group: kind.group,
      kind: kind.plural,
    },
  );
}

/** 404 for a kind that the server does not serve. */
export function unknownResource(): ApiError {
  return new ApiError(404, "NotFound", "the server could not find the requested resource", {});
}

/** 405. */
export function methodNotAllowed(): ApiError {
  return new ApiError(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
    {},
  );
}

/** 409 for a create of what is there. */
export function alreadyExists(kind: Kind, name: string, isBeingDeleted: boolean): ApiError {
  const prefix = isBeingDeleted ? "object is being deleted: " : "";
  const text = `${prefix}${qualified(kind.plural, kind.group)} "${name}" already exists`;
  return new ApiError(409, "AlreadyExists", text, {
    name,
    group: kind.group,
    kind: kind.plural,
  });
}

/** 409 for a write that lost. `what` is the plural for updates and the kind's own name for preconditions of a delete. */
export function conflict(what: string, group: string, name: string, why: string): ApiError {
  const text = `Operation cannot be fulfilled on ${qualified(what, group)} "${name}": ${why}`;
  return new ApiError(409, "Conflict", text, { name, group, kind: what });
}

/** 422 for an object that breaks rules. */
export function invalid(
  what: string,
  group: string,
  name: string,
  causes: readonly Cause[],
): ApiError {
  const texts = causes.map((cause) => `${cause.field}: ${cause.message}`);
  // The server repeats a fault that two of its checks find in `causes`, but not in the text.
  const distinct = [...new Set(texts)];
  const why = distinct.length === 1 ? distinct[0] : `[${distinct.join(", ")}]`;
  return new ApiError(422, "Invalid", `${qualified(what, group)} "${name}" is invalid: ${why}`, {
    name,
    group,
    kind: what,
    causes,
  });
}

/** A cause for a value that is not allowed. */
export function invalidValue(field: string, value: unknown, why: string): Cause {
  return {
    reason: "FieldValueInvalid",
    message: `Invalid value: ${JSON.stringify(value)}: ${why}`,
    field,
  };
}

/** A cause for a field that is missing. */
export function requiredValue(field: string, why = ""): Cause {
  const message = why === "" ? "Required value" : `Required value: ${why}`;
  return { reason: "FieldValueRequired", message, field };
}

/** 403 by authorization: `why` is the sentence after "is forbidden: ". */
export function forbidden(
  kind: Pick<Kind, "plural" | "group">,
  name: string,
  why: string,
  causes?: readonly Cause[],
): ApiError {
  const what = qualified(kind.plural, kind.group) + (name === "" ? "" : ` "${name}"`);
  return new ApiError(403, "Forbidden", `${what} is forbidden: ${why}`, {
    name,
    group: kind.group,
    kind: kind.plural,
    ...(causes ? { causes } : {}),
  });
}

/** 401. */
export function unauthorized(): ApiError {
  return new ApiError(401, "Unauthorized", "Unauthorized");
}

/** 410: a version that the server does not remember any more. */
export function expired(message: string): ApiError {
  return new ApiError(410, "Expired", message);
}

/** 415. */
export function unsupportedMediaType(accepted: readonly string[]): ApiError {
  return new ApiError(
    415,
    "UnsupportedMediaType",
    "the body of the request was in an unknown format - accepted media types include: " +
      accepted.join(", "),
  );
}
