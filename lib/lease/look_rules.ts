/**
 * What the look after a stored grant or renewal comes to: pure functions, as those of `rules.ts`.
 *
 * @module
 */

import { type Admission, blockedReason } from "../group/allowance.ts";
import type { LeaseInstant } from "../lease_time/lease_time.ts";
import {
  type Holder,
  type LeaseRecord,
  type RevocationReason,
  sameHolder,
} from "../records/record.ts";
import { type Refusal, standing } from "./rules.ts";

/** What the look after a stored grant or renewal sees. */
export interface LookSnapshot {
  readonly admission: Admission;
  /** For a hold: the mutex as it is now; `null` when it is gone. Left out for the rest. */
  readonly mutex?: LeaseRecord | null;
  readonly time: LeaseInstant;
}

/** What the look comes to. */
export type LookVerdict =
  /** The answer is 201 or 200. */
  | { readonly type: "stands" }
  /** What we saw of the group is older than what we stored: look again. */
  | { readonly type: "again" }
  /** The lease is lost: write it `revoked`, answer 409. */
  | { readonly type: "revoke"; readonly reason: RevocationReason; readonly generation: number }
  /** A grant may not stand: take it back, then refuse. */
  | { readonly type: "retract"; readonly refusal: Refusal }
  /** A renewal was stored and is not confirmed: 423, and the client keeps its older deadline. */
  | { readonly type: "unconfirmed"; readonly reason: string };

/** Judges the look after a write: deploy-api 7.2 steps 10 and 11, 7.3 step 8, state protocol 2.2. */
export function judgeLook(
  look: LookSnapshot,
  record: LeaseRecord,
  request: "grant" | "renew",
  holder: Holder,
): LookVerdict {
  const { admission } = look;
  if (admission.revocationRequested) {
    return { type: "revoke", reason: "operator_revoked", generation: admission.generation };
  }
  if (record.topologyGeneration < admission.generation) {
    return { type: "revoke", reason: "topology_changed", generation: admission.generation };
  }
  if (record.topologyGeneration > admission.generation) return { type: "again" };
  if (request === "renew") {
    const reason = blockedReason(admission);
    return reason === "" ? { type: "stands" } : { type: "unconfirmed", reason };
  }
  const reason = admission.unstable || blockedReason(admission);
  if (reason !== "") return { type: "retract", refusal: { type: "unstable", reason } };
  return look.mutex === undefined ? { type: "stands" } : judgeMutex(look, look.mutex, holder);
}

/** A hold stands only while the mutex is its own holder's: state protocol 2.2, hold grant, step 3. */
function judgeMutex(look: LookSnapshot, mutex: LeaseRecord | null, holder: Holder): LookVerdict {
  const found = mutex && standing(mutex, look.admission, look.time);
  if (found?.type === "ahead") return { type: "again" };
  if (found?.type === "revoked" && mutex && sameHolder(mutex, holder)) {
    return { type: "revoke", reason: found.reason, generation: look.admission.generation };
  }
  if (mutex && found?.type === "active" && sameHolder(mutex, holder)) return { type: "stands" };
  return { type: "retract", refusal: { type: "forbidden" } };
}

/**
 * The record that takes a grant back: a new one becomes `released`; a re-grant gives its holder the old record again, so
 * that the old token works (state protocol 2.3).
 */
export function retracted(written: LeaseRecord, replaced: LeaseRecord | null): LeaseRecord {
  return replaced ?? { ...written, state: "released" };
}
