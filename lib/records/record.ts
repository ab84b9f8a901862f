/**
 * The record of a deployment lease: what the annotation of its Lease object says. deploy-api 6.2.
 *
 * The annotation is the truth; labels and `spec` of the Lease are projections of it, for lists and for people.
 *
 * @module
 */

import { z } from "zod";
import type { LeaseKind } from "./names.ts";
import { isSameHash, sha256Hex } from "./sha256.ts";

export type { LeaseKind };

/** The states of deploy-api 6.4. All but `active` are terminal for the grant that wrote the record. */
export type LeaseState = "active" | "expired" | "released" | "revoked";

/** Why a lease was taken from its holder. */
export type RevocationReason = "topology_changed" | "operator_revoked";

/**
 * One lease of one operation. A record that was parsed also carries the members that this version does not know: change
 * it by spreading it, and they survive.
 */
export interface LeaseRecord {
  readonly kind: LeaseKind;
  readonly operationId: string;
  /** The name of the MysqlDatabase for which the lease was asked. */
  readonly instance: string;
  /** RFC 3339, up to nine fraction digits. Read it with {@linkcode expiresAtMs}. */
  readonly expiresAt: string;
  /** The effective generation under which the lease was granted. */
  readonly topologyGeneration: number;
  /** The namespace of the caller's service account. */
  readonly namespace: string;
  /** The name of the caller's service account. */
  readonly serviceAccount: string;
  /** {@linkcode hashToken} of the token. The token itself is stored nowhere. */
  readonly tokenHash: string;
  /** When this holder was first granted the lease: a re-grant keeps it. RFC 3339. */
  readonly createdAt: string;
  readonly state: LeaseState;
  /** Present when `state` is `revoked`. */
  readonly reason?: RevocationReason;
}

/** Who holds a lease: all four must be equal (deploy-api 7, "same holder"). */
export interface Holder {
  readonly operationId: string;
  /** The name of the MysqlDatabase. */
  readonly instance: string;
  /** The namespace of the caller's service account. */
  readonly namespace: string;
  /** The name of the caller's service account. */
  readonly serviceAccount: string;
}

/** A stored record does not have its form. The answer is 503 `unavailable` (deploy-api 6.3). */
export class RecordError extends Error {
  override readonly name = "RecordError";
  /** Where the record differs, as paths of member names; empty when it is no JSON at all. Values are left out. */
  readonly paths: readonly string[];

  constructor(paths: readonly string[], options?: ErrorOptions) {
    super(
      `Cannot read the deployment record as its form differs at ${
        paths.join(", ") || "the top level"
      }`,
      options,
    );
    this.paths = paths;
  }
}

// The form that Go reads and writes. An offset other than Z comes from a reference operator in another time zone. Temporal
// alone would take more (leap seconds, calendar names), so the form is checked first.
const RFC_3339 =
  /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

const instantText = z.string().refine((text) => {
  if (!RFC_3339.test(text)) return false;
  try {
    Temporal.Instant.from(text);
    return true;
  } catch {
    return false; // A day that the month does not have.
  }
});

const recordSchema = z.looseObject({
  kind: z.enum(["migration", "failover-hold"]),
  operationId: z.string(),
  instance: z.string(),
  expiresAt: instantText,
  topologyGeneration: z.number().int().nonnegative(),
  namespace: z.string(),
  serviceAccount: z.string(),
  tokenHash: z.string().regex(/^[0-9a-f]{64}$/),
  createdAt: instantText,
  state: z.enum(["active", "expired", "released", "revoked"]),
  reason: z.enum(["topology_changed", "operator_revoked"]).optional(),
});

/**
 * Reads the annotation of a Lease.
 *
 * @throws {RecordError} It is no JSON, or a member is missing or has another form. An unknown state or reason is such a
 * case: what it would allow is not known, so nothing is allowed.
 */
export function parseRecord(annotation: string): LeaseRecord {
  let value: unknown;
  try {
    value = JSON.parse(annotation);
  } catch (cause) {
    throw new RecordError([], { cause });
  }
  const result = recordSchema.safeParse(value);
  if (result.success) return result.data;
  throw new RecordError(result.error.issues.map((issue) => issue.path.map(String).join(".")), {
    cause: result.error,
  });
}

/**
 * Writes a record as the annotation's text: the members of the contract in its order, then those that this version does
 * not know. `reason` is left out unless the record is revoked.
 */
export function encodeRecord(record: LeaseRecord): string {
  const {
    kind,
    operationId,
    instance,
    expiresAt,
    topologyGeneration,
    namespace,
    serviceAccount,
    tokenHash,
    createdAt,
    state,
    reason,
    ...unknownMembers
  } = record;
  return JSON.stringify({
    kind,
    operationId,
    instance,
    expiresAt,
    topologyGeneration,
    namespace,
    serviceAccount,
    tokenHash,
    createdAt,
    state,
    reason: state === "revoked" ? reason : undefined,
    ...unknownMembers,
  });
}

/** True when the record belongs to exactly this holder: operation, instance, and both parts of the caller's identity. */
export function sameHolder(record: LeaseRecord, holder: Holder): boolean {
  return record.operationId === holder.operationId &&
    record.instance === holder.instance &&
    record.namespace === holder.namespace &&
    record.serviceAccount === holder.serviceAccount;
}

/**
 * The last instant at which the record counts, in whole milliseconds since 1970. Nanoseconds are rounded up, so that a
 * record never ends early.
 *
 * @throws {RangeError} `expiresAt` is no RFC 3339 time. A parsed record never is that.
 */
export function expiresAtMs(record: Pick<LeaseRecord, "expiresAt">): number {
  return Temporal.Instant.from(record.expiresAt)
    .round({ smallestUnit: "millisecond", roundingMode: "ceil" }).epochMilliseconds;
}

/**
 * Orders two records by their expiry, to the nanosecond, and records of the same expiry by their operation (deploy-api
 * 2.1). For `Array.prototype.sort`.
 */
export function byExpiry(
  a: Pick<LeaseRecord, "expiresAt" | "operationId">,
  b: Pick<LeaseRecord, "expiresAt" | "operationId">,
): number {
  const order = Temporal.Instant.compare(a.expiresAt, b.expiresAt);
  if (order !== 0) return order;
  if (a.operationId === b.operationId) return 0;
  return a.operationId < b.operationId ? -1 : 1;
}

/**
 * Writes an instant as RFC 3339 in UTC, with as many fraction digits as it needs and nine at most (deploy-api 2.6). A part
 * of a nanosecond is rounded up, so that `expiresAtMs` gives back at least `ms`.
 *
 * @param ms Milliseconds since 1970; a fraction is allowed. Years 0 to 9999.
 * @throws {RangeError} `ms` is no number of these years.
 */
export function formatTime(ms: number): string {
  const whole = Math.floor(ms);
  if (!(whole >= FIRST_MS && whole <= LAST_MS)) {
    throw new RangeError(
      `Cannot format the time as 'ms' must lie in the years 0 to 9999: current value is ${ms}`,
    );
  }
  const nanoseconds = BigInt(whole) * 1_000_000n + BigInt(Math.ceil((ms - whole) * 1_000_000));
  return new Temporal.Instant(nanoseconds).toString();
}

const FIRST_MS = Date.parse("0000-01-01T00:00:00Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59Z");

/** The form in which a token is stored: 64 lower-case hexadecimal digits. */
export function hashToken(token: string): string {
  return sha256Hex(token);
}

/** True when the record was granted with this token, by hashes that are compared to the end. */
export function tokenMatches(record: Pick<LeaseRecord, "tokenHash">, token: string): boolean {
  return isSameHash(hashToken(token), record.tokenHash);
}
