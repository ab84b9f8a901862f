/**
 * The reasons for which a group grants no lease (deploy-api 5 and 7.1), in plain words.
 *
 * @module
 */

const WORDS: ReadonlyMap<string, string> = new Map([
  // The runtime gate.
  ["DeploymentRevocationPending", "somebody asked to revoke all leases, and that is not done yet"],
  ["TopologyPersistencePending", "the place of the primary is changing, or its status went back"],
  ["TopologyNotObserved", "the operator has not refreshed the status of the group for too long"],
  ["TopologyObservationChanged", "the group changed while it was read"],
  ["unavailable", "an object of the group cannot be read, so the service answers 'unavailable'"],
  // Operations.
  ["PlannedFailover", "a planned failover is under way"],
  ["OrderedUpdate", "an ordered update is under way"],
  ["Restore", "the restore from a backup is not done"],
  ["RestoreInPlace", "a restore in place is under way"],
  ["DragonflyUpgrade", "an upgrade of Dragonfly is under way"],
  ["DragonflyReconciling", "Dragonfly is being set up"],
  ["DragonflyConfiguringReplication", "the replication of Dragonfly is being set up"],
  ["DragonflyDegraded", "Dragonfly is degraded"],
  ["DragonflyPromoting", "Dragonfly is being promoted"],
  // What the operator concludes.
  ["NoPrimary", "no site has a writable primary"],
  ["SplitBrain", "more than one site is writable"],
  ["TotalLoss", "no site can be reached"],
  ["Alert", "the operator raised an alert"],
  ["Degraded", "the group is degraded"],
  ["ReplicationSourceMismatch", "a site replicates from another source than the active site"],
  ["ReplicationBroken", "the replication is broken"],
  ["ReplicationError", "the replication reports an error"],
  ["RecoveryPending", "a site waits for its recovery"],
  ["RecoveryInProgress", "a site is recovering"],
  ["RecoveryBlocked", "the recovery of a site is blocked"],
  ["DivergentTransactions", "a site has transactions that the primary lacks"],
  ["Bootstrapping", "the group is being set up"],
  ["Cloning", "a site is being cloned"],
  ["WaitingForRestart", "a site waits for its restart"],
  ["SetupReplication", "the replication is being set up"],
  ["NotReady", "the operator does not report the group as ready"],
  // What the operator sees of each site.
  ["SiteNotObserved", "a site of the group was not observed yet"],
  ["SiteNotReady", "a site is not ready to take over"],
  ["SourceConvergencePending", "a site does not follow the active site yet"],
  ["SourceConvergenceBlocked", "a site cannot be made to follow the active site"],
  ["ReplicationNotRunning", "a site does not replicate"],
]);

/** A reason in plain words. The list of reasons is open: one that is not known is told as it is. */
export function inPlainWords(reason: string): string {
  return WORDS.get(reason) ?? `the operator reports ${reason}`;
}
