/**
 * What a look at a group answers, for tests of whoever reads it.
 *
 * @module
 */

import type { GroupView } from "../../lib/client/answers.ts";

/** A stable group without leases. */
export const healthyView: GroupView = {
  group: "orders",
  namespace: "database",
  activeSite: "iad",
  topologyGeneration: 7,
  health: {
    ready: true,
    degradedReason: "",
    replicationRunning: true,
    replicationLagSeconds: 0,
    recoveryPending: false,
  },
  operations: {
    plannedFailover: { phase: "", reason: "" },
    updatePhase: "",
    restoreInPlace: "",
    dragonflyUpgrade: "",
  },
  stable: true,
  unstableReason: "",
  leases: [],
};
