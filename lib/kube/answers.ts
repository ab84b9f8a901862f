/**
 * What an answer that is not a success means: from an HTTP status and a Kubernetes `Status` to one of the errors of
 * `errors.ts`. Pure.
 *
 * @module
 */

import { z } from "zod";
import { decodeJson } from "./decode.ts";
import {
  AlreadyExistsError,
  type CallIdentity,
  ConflictError,
  ForbiddenError,
  GoneError,
  InvalidError,
  type KubeError,
  NotFoundError,
  UnauthorizedError,
  UnavailableError,
} from "./errors.ts";

/** An answer that was read whole. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Milliseconds of the `Retry-After` header, or `null`. */
  readonly retryAfterMs: number | null;
}

/** What the caller wanted: the same status means one thing to a reader and another to a writer. */
export interface Intent {
  /** True when the call changes what is stored. */
  readonly writes: boolean;
  /** True for a PUT that is to create: that the object exists is what the caller asks about. */
  readonly createsByName: boolean;
  /**
   * How the write names the version or the uid that it means: not at all, as members of what is sent, or as a `test` of
   * a JSON patch. A refusal of these says that another object is stored.
   */
  readonly fence: "none" | "members" | "test";
}

const statusSchema = z.looseObject({
  reason: z.string().catch(""),
  code: z.number().int().optional().catch(undefined),
  details: z.looseObject({
    causes: z.array(z.looseObject({ field: z.string().catch("") })).nullish().catch([]),
    retryAfterSeconds: z.number().nonnegative().nullish().catch(null),
  }).nullish().catch(null),
});

/** The parts of a Kubernetes `Status` that decide. Its message is left out on purpose. */
export interface ServerStatus {
  /** The machine-readable reason, for example `AlreadyExists`; empty when there is none. */
  readonly reason: string;
  /** The HTTP code that the status stands for (in a watch, where the answer itself was 200). */
  readonly code: number | null;
  /** The fields that the server names. */
  readonly fields: readonly string[];
  readonly retryAfterMs: number | null;
}

/** A field path, and not a sentence: a webhook may write any text where a field is expected. */
const FIELD = /^[\w.[\]/-]{1,200}$/;
const MAX_FIELDS = 10;

/** Reads a `Status`; anything else reads as one that says nothing. */
export function readStatus(value: unknown): ServerStatus {
  const parsed = statusSchema.safeParse(value);
  if (!parsed.success) return { reason: "", code: null, fields: [], retryAfterMs: null };
  const { reason, code, details } = parsed.data;
  const seconds = details?.retryAfterSeconds ?? 0;
  return {
    reason,
    code: code ?? null,
    fields: (details?.causes ?? []).map((cause) => cause.field)
      .filter((field) => FIELD.test(field)).slice(0, MAX_FIELDS),
    retryAfterMs: seconds > 0 ? seconds * 1_000 : null,
  };
}

/**
 * Names the error that an answer stands for.
 *
 * @param call The call that was answered.
 * @param intent What the caller wanted.
 * @param answer An answer whose status is not a success.
 */
export function errorOfAnswer(call: CallIdentity, intent: Intent, answer: Answer): KubeError {
  const json = decodeJson(answer.body);
  const status = readStatus(json.ok ? json.value : null);
  return errorOfStatus(call, intent, answer.status, {
    ...status,
    retryAfterMs: answer.retryAfterMs ?? status.retryAfterMs,
  });
}

/** As {@linkcode errorOfAnswer}, for a `Status` that was read before (the ERROR event of a watch). */
export function errorOfStatus(
  call: CallIdentity,
  intent: Intent,
  code: number,
  { reason, fields, retryAfterMs }: ServerStatus,
): KubeError {
  const details = { status: code, retryAfterMs };
  switch (code) {
    case 401:
      return new UnauthorizedError(call, details);
    case 403:
      return new ForbiddenError(call, details);
    case 404:
      return new NotFoundError(call, details);
    case 409:
      return intent.createsByName || reason === "AlreadyExists"
        ? new AlreadyExistsError(call, details)
        : new ConflictError(call, details);
    case 410:
      return new GoneError(call, details);
    case 422:
      if (intent.createsByName && fields.includes("metadata.resourceVersion")) {
        return new AlreadyExistsError(call, details);
      }
      return isFailedFence(intent, fields)
        ? new ConflictError(call, details)
        : new InvalidError(call, fields, details);
    case 429:
      return new UnavailableError(call, details);
  }
  if (code >= 400 && code < 500) return new InvalidError(call, fields, details);
  // A 503 with a time to come back is the API server's own "not now". Without one it may be a proxy's, which also says
  // so when the connection broke after the request was handed on.
  const refused = code === 503 && retryAfterMs !== null;
  return new UnavailableError(call, { ...details, mayHaveLanded: intent.writes && !refused });
}

/** A wrong uid is refused as an immutable field, and a failed `test` of a JSON patch names no field at all. */
function isFailedFence({ fence }: Intent, fields: readonly string[]): boolean {
  if (fence === "test" && fields.length === 0) return true;
  return fence !== "none" && fields.length > 0 && fields.every((field) => field === "metadata.uid");
}

/**
 * Reads a `Retry-After` header: whole seconds, or a date, which is measured against the answer's own `Date`.
 *
 * @returns Milliseconds, 0 or more; `null` when the header is missing or unreadable.
 */
export function readRetryAfter(header: string | null, serverDateMs: number | null): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (/^[0-9]{1,9}$/.test(text)) return Number(text) * 1_000;
  const at = readHttpDate(text);
  return at === null || serverDateMs === null ? null : Math.max(0, at - serverDateMs);
}

const HTTP_DATE = /^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$/;

/** Reads a date as HTTP writes it (RFC 9110, IMF-fixdate): milliseconds since 1970, or `null`. */
export function readHttpDate(text: string | null): number | null {
  if (text === null || !HTTP_DATE.test(text)) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
}
