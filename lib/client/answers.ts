/**
 * What the service answers, read with suspicion: deploy-api 1.5 and 2. Members that are not known here are passed over, so
 * that a newer service can say more.
 *
 * @module
 */

import { z } from "zod";

const holder = z.object({ operationId: z.string(), instance: z.string(), expiresAt: z.string() });

/** Who has a lease, and until when: RFC 3339 by the service's clock. */
export type Holder = Readonly<z.infer<typeof holder>>;

const generation = z.number().int().nonnegative();

const leaseView = holder.extend({ kind: z.string(), topologyGeneration: generation });

/** The schema of a look at a group: deploy-api 2.1. */
export const groupViewSchema = z.object({
  group: z.string(),
  namespace: z.string(),
  activeSite: z.string(),
  topologyGeneration: generation,
  health: z.object({
    ready: z.boolean(),
    degradedReason: z.string(),
    replicationRunning: z.boolean(),
    replicationLagSeconds: z.number(),
    recoveryPending: z.boolean(),
  }),
  operations: z.object({
    plannedFailover: z.object({ phase: z.string(), reason: z.string() }),
    updatePhase: z.string(),
    restoreInPlace: z.string(),
    dragonflyUpgrade: z.string(),
  }),
  stable: z.boolean(),
  unstableReason: z.string(),
  leases: z.array(leaseView),
});

/** A look at a group. */
export type GroupView = z.infer<typeof groupViewSchema>;

/** The schema of a grant: deploy-api 2.2. */
export const grantedSchema = z.object({
  token: z.string().min(1),
  expiresAt: z.string(),
  topologyGeneration: generation,
});

/** A grant. */
export type GrantedBody = z.infer<typeof grantedSchema>;

/** The schema of a renewal: deploy-api 2.3. */
export const renewedSchema = z.object({ expiresAt: z.string(), topologyGeneration: generation });

/** A renewal. */
export type RenewedBody = z.infer<typeof renewedSchema>;

/** The schema of an answer without a body: deploy-api 2.4. */
export const emptySchema = z.undefined();

/** What came back. */
export type Answer<T> =
  | {
    readonly type: "success";
    readonly status: number;
    readonly body: T;
    readonly fence: string;
    /** What the service's clock showed, in milliseconds since 1970 and whole seconds; `null` when it did not say. */
    readonly dateMs: number | null;
  }
  | { readonly type: "held"; readonly holder: Holder; readonly retryAfterMs: number }
  | {
    readonly type: "revoked";
    readonly reason: "topology_changed" | "operator_revoked" | "revoked";
  }
  | { readonly type: "unstable"; readonly reason: string; readonly retryAfterMs: number }
  | { readonly type: "not_leader" | "unavailable"; readonly retryAfterMs: number }
  | {
    readonly type:
      | "unauthorized"
      | "forbidden"
      | "token_mismatch"
      | "not_found"
      | "invalid_request";
  }
  /** Not in the contract: a proxy between, or another service. */
  | { readonly type: "unexpected"; readonly status: number }
  /** `code` is the platform's name of the fault, for example `ECONNREFUSED`; empty when it gives none. */
  | { readonly type: "no_answer"; readonly why: "timeout" | "connection"; readonly code: string };

const errorBody = z.object({ error: z.string(), reason: z.string().optional() });

const heldBody = z.object({ holder });

/** An answer as it came over the wire. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/**
 * Reads an answer.
 *
 * A status that ends authority (404 and 409) does so also without a body that explains it: whoever answers it is asked
 * where the lease is, and does not know it.
 *
 * @param successes The statuses that mean success.
 * @param schema What the body of a success must be.
 */
export function readAnswer<T>(
  { status, headers, text }: WireAnswer,
  successes: readonly number[],
  schema: z.ZodType<T>,
): Answer<T> {
  const json = parseJson(text);
  if (successes.includes(status)) {
    const body = schema.safeParse(json);
    if (!body.success) return { type: "unexpected", status };
    const fence = headers.get("X-Lease-Fence") ?? "";
    return { type: "success", status, body: body.data, fence, dateMs: readDate(headers) };
  }
  const said = errorBody.safeParse(json);
  const { error = "", reason = "" } = said.data ?? {};
  const retryAfterMs = readRetryAfter(headers);
  switch (status) {
    case 400:
      return { type: "invalid_request" };
    case 401:
      return { type: "unauthorized" };
    case 403:
      return { type: error === "token_mismatch" ? "token_mismatch" : "forbidden" };
    case 404:
      return { type: "not_found" };
    case 409: {
      const held = heldBody.safeParse(json);
      if (held.success) return { type: "held", holder: held.data.holder, retryAfterMs };
      const known = reason === "topology_changed" || reason === "operator_revoked";
      return { type: "revoked", reason: known ? reason : "revoked" };
    }
    case 423:
      return { type: "unstable", reason: reason === "" ? "Unknown" : reason, retryAfterMs };
    case 503:
      return { type: error === "not_leader" ? "not_leader" : "unavailable", retryAfterMs };
    default:
      return { type: "unexpected", status };
  }
}

/** Seconds as a whole number; a date, which the contract does not use, counts as nothing. */
function readRetryAfter(headers: Headers): number {
  const text = headers.get("Retry-After") ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : 0;
}

function readDate(headers: Headers): number | null {
  const dateMs = Date.parse(headers.get("Date") ?? "");
  return Number.isNaN(dateMs) ? null : dateMs;
}

/**
 * Milliseconds until a holder's lease ends unless it is renewed.
 *
 * @param dateMs What the service's clock showed.
 * @returns `null` when either is not known.
 */
export function endsInMs({ expiresAt }: Holder, dateMs: number | null): number | null {
  const endMs = Date.parse(expiresAt);
  return dateMs === null || Number.isNaN(endMs) ? null : endMs - dateMs;
}

function parseJson(text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return null;
  }
}
