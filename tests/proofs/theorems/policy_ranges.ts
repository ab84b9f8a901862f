/**
 * Which arguments of the rules of election are in range: for each exported function of `lib/election/policy.ts` the
 * predicate of the same name. The prover shows for these that no step leaves the safe integers, and that the rules call
 * one another with such arguments only. Every number is a safe integer anyway.
 *
 * @module
 */

import {
  type Belief,
  type Claim,
  type HolderView,
  type LeaseView,
  MAX_LEASE_MS,
  type Observation,
  type Timing,
  type VanishedHolder,
} from "../../../lib/election/policy.ts";
import { isOffset, isTime } from "./logic.ts";

export function remainder(_dividend: number, divisor: number): boolean {
  return divisor >= 1;
}

export function quotient(_dividend: number, divisor: number): boolean {
  return divisor >= 1;
}

export function timingProblem(_timing: Timing): boolean {
  return true;
}

export function timingValid(_timing: Timing): boolean {
  return true;
}

export function jittered(baseMs: number, random: number): boolean {
  return baseMs >= 0 && baseMs <= MAX_LEASE_MS && random >= 0;
}

export function isMine(_record: HolderView, _claim: Claim): boolean {
  return true;
}

export function decide(_lease: LeaseView): boolean {
  return true;
}

export function vanishedHolderMayBelieve(_vanished: VanishedHolder): boolean {
  return true;
}

export function effectiveDurationMs(_recordSeconds: number, _fallbackMs: number): boolean {
  return true;
}

export function nextTransitions(_mine: boolean, _current: number): boolean {
  return true;
}

export function observedAtMs(
  _earlier: Observation,
  _changed: boolean,
  _nowMs: number,
): boolean {
  return true;
}

export function observedAgeMs(nowMs: number, changedAtMs: number): boolean {
  return nowMs >= 0 && changedAtMs >= 0;
}

/** A deadline of one hour at most: it is below a valid lease. */
export function believes(belief: Belief, renewMs: number, _nowMs: number): boolean {
  return isTime(belief.sentMs) && renewMs >= 0 && renewMs <= MAX_LEASE_MS;
}

export function clockJumped(offsetBeforeMs: number, offsetNowMs: number): boolean {
  return isOffset(offsetBeforeMs) && isOffset(offsetNowMs);
}

export function requestTimeoutMs(_renewMs: number): boolean {
  return true;
}

export function taskStopTimeoutMs(leaseMs: number, renewMs: number): boolean {
  return leaseMs >= 0 && leaseMs <= MAX_LEASE_MS && renewMs >= 0 && renewMs <= MAX_LEASE_MS;
}
