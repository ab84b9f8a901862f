/**
 * What can go wrong in a call to the Kubernetes API, as types that a caller catches.
 *
 * No message holds text of the server, a URL, or a credential: a message may reach a log. What a decision needs is in
 * the fields.
 *
 * @module
 */

import { type ConnectionFault, FAULT_TEXTS } from "./connection_faults.ts";

/** The stable name of a class of errors. Health pages show it, and nothing else of an error. */
export type KubeErrorClass =
  | "already_exists"
  | "conflict"
  | "decode"
  | "forbidden"
  | "gone"
  | "invalid"
  | "not_found"
  | "timeout"
  | "unauthorized"
  | "unavailable";

/** Which call failed. */
export interface CallIdentity {
  /** The RBAC verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`. */
  readonly verb: string;
  /** The plural with its API group, for example `leases.coordination.k8s.io`; with a subresource, `x/status`. */
  readonly resource: string;
  /** `namespace/name`, `name`, `namespace/`, or empty for all namespaces: what the call was about. */
  readonly target: string;
}

/** What is known of a failed call beside its class. */
export interface KubeErrorDetails {
  /** The HTTP status, or `null` when no answer came. */
  readonly status?: number | null;
  /** Milliseconds after which the server wishes to be asked again (`Retry-After`), or `null`. */
  readonly retryAfterMs?: number | null;
  /**
   * True when a write may have been stored although the call failed: no answer came, or one that says nothing about it
   * (5xx, but for a 503 with `Retry-After`), or one that cannot be read. Read before you write again.
   */
  readonly mayHaveLanded?: boolean;
  /** The original fault, for a debugger. It never goes to a log or an answer. */
  readonly cause?: unknown;
}

/** The base of all errors of this room. */
export class KubeError extends Error {
  override readonly name: string = "KubeError";
  /** The class of the error, by which code decides. */
  readonly kind: KubeErrorClass;
  /** The call that failed. */
  readonly call: CallIdentity;
  /** The HTTP status, or `null` when no answer came. */
  readonly status: number | null;
  /** Milliseconds after which the server wishes to be asked again, or `null`. */
  readonly retryAfterMs: number | null;
  /** True when a write may have been stored although the call failed. */
  readonly mayHaveLanded: boolean;

  constructor(
    kind: KubeErrorClass,
    call: CallIdentity,
    wish: string,
    details: KubeErrorDetails = {},
  ) {
    const what = [call.verb, call.resource, call.target].filter((part) => part !== "").join(" ");
    super(`Cannot ${what}: ${wish}`, { cause: details.cause });
    this.kind = kind;
    this.call = call;
    this.status = details.status ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.mayHaveLanded = details.mayHaveLanded ?? false;
  }
}

/** 404: the object, or the kind of object, does not exist. */
export class NotFoundError extends KubeError {
  override readonly name = "NotFoundError";
  constructor(call: CallIdentity, details: KubeErrorDetails = {}) {
    super("not_found", call, "it does not exist", { status: 404, ...details });
  }
}

/** 409, or a failed precondition: somebody else wrote the object since it was read. */
export class ConflictError extends KubeError {
  override readonly name = "ConflictError";
  constructor(call: CallIdentity, details: KubeErrorDetails = {}) {
    super("conflict", call, "it was written since it was read; read it again", {
      status: 409,
      ...details,
    });
  }
}

/** 409 `AlreadyExists`, or 422 about `resourceVersion` for a PUT that creates. */
export class AlreadyExistsError extends KubeError {
  override readonly name = "AlreadyExistsError";
  constructor(call: CallIdentity, details: KubeErrorDetails = {}) {
    super("already_exists", call, "it exists already", { status: 409, ...details });
  }
}

/** 403: the Role of this program lacks a rule. The message says which. */
export class ForbiddenError extends KubeError {
  override readonly name = "ForbiddenError";
  constructor(call: CallIdentity, details: KubeErrorDetails = {}) {
    super(
      "forbidden",
      call,
      `the Role does not allow it; add the verb "${call.verb}" on "${call.resource}" to it`,
      { status: 403, ...details },
    );
  }
}

/** 401: the API server does not accept this program's credentials. */
export class UnauthorizedError extends KubeError {
  override readonly name = "UnauthorizedError";
  constructor(call: CallIdentity, details: KubeErrorDetails = {}) {
    super("unauthorized", call, "the API server does not accept the credentials", {
      status: 401,
      ...details,
    });
  }
}

/** No call was made, since the credentials could not be had: a file was not there, or a plug-in failed. */
export class CredentialsError extends KubeError {
  override readonly name = "CredentialsError";
  constructor(call: CallIdentity, details: KubeErrorDetails = {}) {
    super("unauthorized", call, "the credentials for it cannot be obtained", details);
  }
}

/** 410: the version that a list or a watch asked for is too old; list again. */
export class GoneError extends KubeError {
  override readonly name = "GoneError";
  constructor(call: CallIdentity, details: KubeErrorDetails = {}) {
    super("gone", call, "the requested version is too old; list again", {
      status: 410,
      ...details,
    });
  }
}

/** 400, 413, 415 or 422: the API server refuses what was sent. */
export class InvalidError extends KubeError {
  override readonly name = "InvalidError";
  /** The fields that the server names (`spec.leaseDurationSeconds`), when it names any. Values are left out. */
  readonly fields: readonly string[];
  constructor(call: CallIdentity, fields: readonly string[], details: KubeErrorDetails = {}) {
    super(
      "invalid",
      call,
      fields.length > 0
        ? `the API server refuses the value of ${fields.join(", ")}`
        : "the API server refuses what was sent",
      details,
    );
    this.fields = fields;
  }
}

/** The connection failed, or the server answered 429 or 5xx. */
export class UnavailableError extends KubeError {
  override readonly name = "UnavailableError";
  /** Why no answer came, or `null` when one did. */
  readonly fault: ConnectionFault | null;
  constructor(
    call: CallIdentity,
    details: KubeErrorDetails & { readonly fault?: ConnectionFault } = {},
  ) {
    const wish = details.fault === undefined
      ? "the API server did not serve the call; try again"
      : FAULT_TEXTS[details.fault];
    super("unavailable", call, wish, details);
    this.fault = details.fault ?? null;
  }
}

/** The time of the call was over before its answer was read whole. */
export class KubeTimeoutError extends KubeError {
  override readonly name = "KubeTimeoutError";
  constructor(call: CallIdentity, limitMs: number, details: KubeErrorDetails = {}) {
    super("timeout", call, `no answer within ${limitMs} ms`, details);
  }
}

/** The server's answer is not of the expected form. */
export class DecodeError extends KubeError {
  override readonly name = "DecodeError";
  /** Where the answer differs, as paths of member names. Values are left out. */
  readonly paths: readonly string[];
  constructor(call: CallIdentity, paths: readonly string[], details: KubeErrorDetails = {}) {
    super(
      "decode",
      call,
      `its answer has another form at ${paths.join(", ") || "the top level"}`,
      details,
    );
    this.paths = paths;
  }
}
