/**
 * The revocation of a whole group: asks for it with the annotation (deploy-api 7.8), and waits until somebody has done it:
 * the leading replica of the service, or the operator.
 *
 * @module
 */

import { GroupNotFoundError } from "../../../lib/group/topology.ts";
import { MYSQL_FAILOVER_GROUPS, REVOKE_ANNOTATION } from "../../../lib/group/types.ts";
import { ConflictError, KubeError } from "../../../lib/kube/errors.ts";
import { sleep, startDeadline } from "../../../lib/runtime/clock.ts";
import { newcomers, progressOf, targetsOf } from "../../../lib/status/revocation.ts";
import type { GroupStatus } from "../../../lib/status/report.ts";
import { CommandFault, FAILED } from "../faults.ts";
import { look, type Place, requestOn, type Sight } from "./sight.ts";
import { countOf, type Teller } from "./teller.ts";

/** The exit code when the request is on the group and nobody has done it yet. */
export const NOT_YET = 3;

/** Milliseconds between two looks whether it is done. */
const LOOK_MS = 250;

/** Milliseconds after which a request that nobody took up is worth a word. A leader takes it up within a second. */
const SILENCE_MS = 5_000;

/** How often a group that others wrote meanwhile is read again. */
const TRIES = 5;

/**
 * Puts the request on the group.
 *
 * @param shown What the user agreed to.
 * @param agree Asks again, for leases that were granted since; it throws when they are not to be revoked.
 * @returns What the user agreed to in the end.
 */
export async function requestRevocation(
  place: Place,
  shown: Sight,
  agree: (now: GroupStatus, since: ReturnType<typeof targetsOf>) => void,
  signal: AbortSignal,
): Promise<GroupStatus> {
  const { system, cluster, name } = place;
  let agreed = shown.status;
  for (let tries = 0; tries < TRIES; tries++) {
    const { group, status } = await look(place, signal);
    if (group.metadata.uid !== shown.group.metadata.uid) {
      throw new CommandFault("Cannot go on as the group was deleted and created again", FAILED);
    }
    const since = newcomers(targetsOf(agreed), targetsOf(status));
    if (since.length > 0) {
      agree(status, since);
      agreed = status;
      continue;
    }
    if (requestOn(group) !== undefined) return agreed;
    const { uid, resourceVersion } = group.metadata;
    // A value of its own: a reference operator that is at it already sees another one, and begins anew.
    const annotations = { [REVOKE_ANNOTATION]: `holdfast-${system.entropy.uuid()}` };
    try {
      await cluster.api.patch(MYSQL_FAILOVER_GROUPS, name, {
        type: "merge",
        body: { metadata: { uid, resourceVersion, annotations } },
      }, { signal });
      return agreed;
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
    }
  }
  throw new CommandFault(
    "Cannot ask for the revocation as the group changes all the time: try again",
    FAILED,
  );
}

/**
 * Waits until the request is gone from the group, and tells of each lease that was revoked.
 *
 * @returns The exit code: 0 done, 1 not done though the request is gone, 3 not done in time.
 */
export async function waitUntilDone(
  place: Place,
  agreed: GroupStatus,
  teller: Teller,
  timeoutMs: number,
  interrupt: AbortSignal,
): Promise<number> {
  const { clock } = place.system;
  using limit = startDeadline(clock, timeoutMs, interrupt);
  const startedMs = clock.monotonic();
  const told: Parameters<Teller["revoked"]>[0][] = [];
  let hinted = false;
  let last = agreed;
  while (!limit.signal.aborted) {
    const sight = await lookPatiently(place, limit.signal);
    if (sight !== null) {
      last = sight.status;
      const progress = progressOf(agreed, sight.status);
      for (const lease of newcomers(told, progress.revoked)) {
        teller.revoked(lease, newcomers(targetsOf(agreed), [lease]).length > 0);
        told.push(lease);
      }
      if (requestOn(sight.group) === undefined) return conclude(teller, progress);
    }
    if (!hinted && told.length === 0 && clock.monotonic() - startedMs >= SILENCE_MS) {
      hinted = true;
      teller.say(`Nobody has begun for ${SILENCE_MS / 1_000} s; waiting on`);
    }
    await sleep(clock, LOOK_MS, limit.signal).catch(() => {});
  }
  giveUp(teller, place, last, interrupt.aborted ? "was stopped" : `lasted ${timeoutMs / 1_000} s`);
  return NOT_YET;
}

/** `null` when no answer came: the next look may get one. */
async function lookPatiently(place: Place, signal: AbortSignal): Promise<Sight | null> {
  try {
    return await look(place, signal);
  } catch (error) {
    if (error instanceof GroupNotFoundError) {
      throw new CommandFault("The group is gone, and its leases go with it", FAILED);
    }
    const passing = error instanceof KubeError &&
      (error.kind === "unavailable" || error.kind === "timeout");
    if (passing || signal.aborted) return null;
    throw error;
  }
}

function conclude(teller: Teller, progress: ReturnType<typeof progressOf>): number {
  const { revoked, endedOtherwise, standing } = progress;
  for (const { kind, operationId } of endedOtherwise) {
    teller.say(`ended by itself before: ${kind} of operation ${operationId}`);
  }
  if (standing.length > 0) {
    teller.warn(
      `Cannot confirm the revocation: the request is gone from the group, and ${
        countOf(standing)
      } of the list still stand. Somebody removed it by hand: run this again`,
    );
    return FAILED;
  }
  teller.say(`Done: ${countOf(revoked)} revoked. The group is open for new operations`);
  return 0;
}

function giveUp(teller: Teller, { name }: Place, { problems }: GroupStatus, why: string): void {
  const { namespace, name: group } = name;
  const command = `kubectl annotate mysqlfailovergroup ${group} -n ${namespace}`;
  teller.warn(`The revocation is not done yet, and the wait ${why}. The request stays on the group:
  until somebody serves it, nothing is granted and nothing is renewed, so the leases end by themselves
  within 120 s. Check that
  - 'holdfast serve' runs, leads (its election Lease has a holder), and has deploy_api.enabled, or the
    operator runs with its own deployment API;
  - it may patch mysqlfailovergroups and update leases in namespace ${namespace} (its log says so).
  To see how it goes on: holdfast status --namespace ${namespace} --group ${group} --watch
  To take the request back: ${command} ${REVOKE_ANNOTATION}-`);
  for (const problem of problems) teller.warn(`This may be in the way: ${problem}`);
}
