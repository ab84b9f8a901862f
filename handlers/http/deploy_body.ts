/**
 * The bodies that the deployment API reads: deploy-api 1.3, 2.2 and 2.3.
 *
 * @module
 */

import { z } from "zod";
import { isDnsSubdomain } from "../../lib/auth/dns_names.ts";
import { parseJson, readLimited } from "./limited_body.ts";

/** The most bytes that a body may have. */
export const MAX_BODY_BYTES = 4096;
/** The most bytes that an operation id may have. */
export const MAX_OPERATION_BYTES = 128;

/** What reading a body comes to. */
export type Body<T> =
  | { readonly type: "ok"; readonly value: T }
  /** `value` has what could be read all the same, for the log line. */
  | { readonly type: "invalid_request"; readonly value: Partial<T> }
  | { readonly type: "request_too_large" };

// A member that is `null` counts as left out, as in the reference's decoder.
const optional = <T extends z.ZodType>(schema: T) => schema.nullish();

/** The schema of a grant's body: deploy-api 2.2. What it lets through is judged further. */
export const grantSchema = z.strictObject({
  kind: optional(z.string()),
  operationId: optional(z.string()),
  instance: optional(z.string()),
  ttlSeconds: optional(z.number().int()),
});

/** A grant's body, checked. */
export interface GrantBody {
  readonly kind: "migration" | "failover-hold";
  readonly operationId: string;
  readonly instance: string;
  readonly ttlSeconds: number | undefined;
}

/** The schema of a renewal's body: deploy-api 2.3. */
export const renewSchema = z.strictObject({
  token: optional(z.string()),
  ttlSeconds: optional(z.number().int()),
}).nullable();

/** A renewal's body, checked. */
export interface RenewBody {
  readonly token: string;
  readonly ttlSeconds: number | undefined;
}

/** True for a kind of lease that the API knows. */
export function isLeaseKind(kind: unknown): kind is GrantBody["kind"] {
  return kind === "migration" || kind === "failover-hold";
}

/**
 * True for an operation id that a path can carry: 1 to 128 bytes, no slash, no control character, not `.` or `..`.
 * The reference grants the others too, and then nobody can renew or release them (difference 5).
 */
export function isOperationId(text: string): boolean {
  const bytes = new TextEncoder().encode(text).length;
  return bytes >= 1 && bytes <= MAX_OPERATION_BYTES && !/[/\p{Cc}]/u.test(text) &&
    text !== "." && text !== ".." && text.isWellFormed();
}

/** Reads a grant's body. */
export async function readGrantBody(request: Request): Promise<Body<GrantBody>> {
  const text = await readLimited(request, MAX_BODY_BYTES);
  if (text === null) return { type: "request_too_large" };
  const parsed = grantSchema.safeParse(parseJson(text));
  if (!parsed.success) return { type: "invalid_request", value: {} };
  const { kind, operationId, instance, ttlSeconds } = parsed.data;
  const value = {
    operationId: operationId ?? "",
    instance: instance ?? "",
    ttlSeconds: ttlSeconds ?? undefined,
  };
  return isLeaseKind(kind) && isOperationId(value.operationId) && isDnsSubdomain(value.instance)
    ? { type: "ok", value: { kind, ...value } }
    : { type: "invalid_request", value };
}

/** Reads a renewal's body. */
export async function readRenewBody(request: Request): Promise<Body<RenewBody>> {
  const text = await readLimited(request, MAX_BODY_BYTES);
  if (text === null) return { type: "request_too_large" };
  const parsed = renewSchema.safeParse(parseJson(text));
  if (!parsed.success) return { type: "invalid_request", value: {} };
  return {
    type: "ok",
    value: {
      token: parsed.data?.token ?? "",
      ttlSeconds: parsed.data?.ttlSeconds ?? undefined,
    },
  };
}
