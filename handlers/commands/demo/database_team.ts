/**
 * Those who run the databases: what they do with `kubectl`, and what it shows them.
 *
 * @module
 */

import {
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
  PLANNED_FAILOVER_ANNOTATION,
} from "../../../lib/group/types.ts";
import type { KubeApi } from "../../../lib/kube/api.ts";
import { LEASES } from "../../../lib/kube/resources.ts";
import { DEPLOYMENT_STATE_LABEL } from "../../../lib/records/names.ts";
import { type Clock, sleep } from "../../../lib/runtime/clock.ts";
import { GROUP } from "./cast.ts";

/** Milliseconds between two looks at the group. */
const LOOK_MS = 25;

/** How long the team looks for something to happen. */
const PATIENCE_MS = 10_000;

/** The team, in the story's group. Every call rejects as the client of the cluster does. */
export interface DatabaseTeam {
  /** The state that a Lease of the group shows by its label: `active`, `released`, `revoked`, `expired`. */
  leaseState(leaseName: string): Promise<string | undefined>;
  /** Asks for a planned failover, as `kubectl annotate` does. @param value A site. */
  askForFailover(value: string): Promise<void>;
  /** Looks at the group until it is as wanted, or patience ends. @returns The group as it was seen last. */
  watchGroup(wanted: (group: MysqlFailoverGroup) => boolean): Promise<MysqlFailoverGroup>;
}

/** What the team works with. */
export interface DatabaseTeamParts {
  /** The administrator's client. */
  readonly api: KubeApi;
  readonly clock: Clock;
  /** Ends all calls. */
  readonly signal: AbortSignal;
}

/** Makes the team. */
export function databaseTeam({ api, clock, signal }: DatabaseTeamParts): DatabaseTeam {
  return {
    async leaseState(name) {
      const lease = await api.get(LEASES, { namespace: GROUP.namespace, name }, { signal });
      return lease.metadata.labels?.[DEPLOYMENT_STATE_LABEL];
    },
    async askForFailover(value) {
      const body = { metadata: { annotations: { [PLANNED_FAILOVER_ANNOTATION]: value } } };
      await api.patch(MYSQL_FAILOVER_GROUPS, GROUP, { type: "merge", body }, { signal });
    },
    async watchGroup(wanted) {
      const endMs = clock.monotonic() + PATIENCE_MS;
      for (;;) {
        const group = await api.get(MYSQL_FAILOVER_GROUPS, GROUP, { signal });
        if (wanted(group) || clock.monotonic() >= endMs) return group;
        await sleep(clock, LOOK_MS, signal);
      }
    },
  };
}
