/**
 * `/keyring/escrow` on the TLS listener: deploy-api 13.
 *
 * Every replica serves it, whoever leads. It parses, calls the escrow and encodes; the order of its checks is the
 * contract's, so who calls is asked only after the body was read. What that costs is bounded: 256 KiB for each request, and
 * {@linkcode MAX_AT_ONCE} requests.
 *
 * @module
 */

import { z } from "zod";
import { isDnsSubdomain } from "../../lib/auth/dns_names.ts";
import {
  type KeyringEscrow,
  KeyringStoreError,
  type PushOutcome,
} from "../../lib/escrow/escrow.ts";
import { MAX_KEYRING_BYTES } from "../../lib/escrow/keyring.ts";
import type { EscrowMetrics, EscrowResult } from "../../lib/escrow/metrics.ts";
import type { KeyringSite } from "../../lib/escrow/names.ts";
import { escrowBearer } from "../../lib/escrow/token.ts";
import type { FetchHandler } from "../../lib/host/listener.ts";
import { rawTarget } from "../../lib/host/raw_target.ts";
import type { LogFields } from "../../lib/runtime/log.ts";
import { answer } from "./answers.ts";
import { faultOf } from "./fault.ts";
import { parseJson, readLimited } from "./limited_body.ts";
import { type AuxLogParts, logAuxExchange, remoteOf } from "./middleware/aux_log.ts";
import { startRequest } from "./middleware/deadline.ts";

/** What the escrow's way in is made of. */
export interface EscrowAppParts extends AuxLogParts {
  readonly results: EscrowMetrics;
  /** Milliseconds for the calls of one request, from the end of its body. */
  readonly requestTimeoutMs: number;
  /** `null` while this process has no client of the cluster yet. */
  readonly escrow: () => Pick<KeyringEscrow, "push"> | null;
}

/** How many requests may be under way at once. One is some hundred KiB, and a site sends one now and then. */
export const MAX_AT_ONCE = 32;

/** How this handler is called in metrics and logs: deploy-api 10. */
const HANDLER = "keyring-escrow";

/** An answer before it is encoded. */
interface Answer {
  readonly status: number;
  readonly body: object;
  readonly result: EscrowResult;
}

const refusals: Readonly<Record<Exclude<PushOutcome["type"], "escrowed">, Answer>> = {
  rejected: refusal(403, "escrow token rejected", "rejected"),
  not_base64: refusal(400, "keyring is not valid base64", "invalid"),
  empty: refusal(400, "keyring is empty", "invalid"),
  too_large: refusal(413, "keyring payload too large", "invalid"),
  digest_mismatch: refusal(400, "digest does not match payload", "invalid"),
  group_not_found: refusal(404, "failover group not found", "not_wanted"),
  not_encrypted: refusal(409, "encryption at rest is not enabled for this group", "not_wanted"),
  site_not_found: refusal(404, "site not found in failover group", "not_wanted"),
};

// A member that is `null` counts as left out, as in the reference's decoder. Unknown members are allowed.
const member = z.string().nullish().transform((text) => text ?? "");
const bodySchema = z.object({
  namespace: member,
  group: member,
  site: member,
  keyring: member,
  digest: member,
}).nullable();

/** True for the one path of the escrow; the query has no meaning. */
export function isEscrowTarget(target: string): boolean {
  return target.replace(/\?.*$/s, "") === "/keyring/escrow";
}

/** Builds the handler. It never throws. */
export function createEscrowApp(parts: EscrowAppParts): FetchHandler {
  const { clock, logger, results, requestTimeoutMs, escrow } = parts;
  let underWay = 0;

  return async (request, env) => {
    const started = clock.monotonic();
    const target = rawTarget(env, request);
    underWay++;
    try {
      const { status, body, result } = await serve(request, target.method);
      results.counted(result);
      const durationMs = clock.monotonic() - started;
      const remote = remoteOf(env?.incoming);
      logAuxExchange(parts, { target, remote, handler: HANDLER, status, durationMs });
      return answer(status, body, status === 503 ? { "Retry-After": "1" } : {});
    } finally {
      underWay--;
    }
  };

  async function serve(request: Request, method: string): Promise<Answer> {
    if (method !== "POST") return refusal(405, "POST required", "invalid");
    const target = escrow();
    if (target === null) return refusal(503, "no Kubernetes API client is configured", "failed");
    if (underWay > MAX_AT_ONCE) return refusal(503, "too many requests at once", "failed");
    let text: string | null;
    try {
      text = await readLimited(request, MAX_KEYRING_BYTES);
    } catch {
      return refusal(400, "cannot read request body", "invalid");
    }
    if (text === null) return refusals.too_large;
    const parsed = bodySchema.safeParse(parseJson(text));
    if (!parsed.success) return refusal(400, "malformed JSON body", "invalid");
    const { namespace = "", group = "", site = "", keyring = "", digest = "" } = parsed.data ?? {};
    if ([namespace, group, site, keyring].includes("")) {
      return refusal(400, "namespace, group, site, and keyring are required", "invalid");
    }
    const token = escrowBearer(request.headers.get("Authorization"));
    if (token === null) return refusal(401, "bearer token required", "rejected");
    const of = { namespace, group, site };
    try {
      // A push that outlives its client could come after the one that the client sends next, and be the newest.
      using limit = startRequest(clock, requestTimeoutMs, request.signal);
      const push = { site: of, token, keyring, digest };
      return told(of, await target.push(push, { signal: limit.signal }));
    } catch (error) {
      return failed(of, error);
    }
  }

  function told(site: KeyringSite, outcome: PushOutcome): Answer {
    if (outcome.type === "escrowed") {
      const { version, secret, created } = outcome.stored;
      logger.info("keyring escrowed", { ...named(site), version, secret, created });
      // The keyring's digest is no secret to whoever sent it, but no log needs it.
      const body = { version, digest: outcome.digest, secret };
      return { status: 200, body, result: created ? "stored" : "unchanged" };
    }
    if (outcome.type === "rejected") logger.warn("keyring escrow rejected", named(site));
    if (outcome.type === "digest_mismatch") {
      logger.warn("keyring escrow digest mismatch", named(site));
    }
    return refusals[outcome.type];
  }

  function failed(site: KeyringSite, error: unknown): Answer {
    const storing = error instanceof KeyringStoreError;
    const fields = { ...named(site), ...faultOf(storing ? error.cause : error) };
    if (storing) logger.error("keyring escrow: store failed", fields);
    else logger.error("keyring escrow: internal error", fields);
    return refusal(500, storing ? "could not store keyring" : "internal error", "failed");
  }
}

function refusal(status: number, error: string, result: EscrowResult): Answer {
  return { status, body: { error }, result };
}

/** The names for a log line. What is no name is left out: anybody may send it, and as much of it as fits into a body. */
export function named({ namespace, group, site }: KeyringSite): LogFields {
  const shown = (name: string) => isDnsSubdomain(name) ? name : "";
  return { namespace: shown(namespace), group: shown(group), site: shown(site) };
}
