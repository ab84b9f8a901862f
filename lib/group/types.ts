/**
 * The custom resources of the operator, as far as this project looks at them: deploy-api 15.5.
 *
 * The schemas are loose. Unknown members are kept, absent ones are fine (Go leaves out what is empty), and enumerations
 * are open strings, since an operator may be newer than we are. A member of another *type* is an error, so that nothing is
 * decided from a status that cannot be read.
 *
 * @module
 */

import { z } from "zod";
import type { Resource } from "../kube/api.ts";
import { kubeObject, resource } from "../kube/resources.ts";
import { GROUP_KIND } from "../records/names.ts";

/** Annotation on a group: revoke all its leases. Any value counts, also an empty one (deploy-api 7.8). */
export const REVOKE_ANNOTATION = "bloodraven.shipstream.io/revoke-deployment-leases";
/** Annotation on a group: asks for a planned failover (deploy-api 8.1). */
export const PLANNED_FAILOVER_ANNOTATION = "bloodraven.shipstream.io/planned-failover";
/** Annotation of ours on a group: a fresh random value, written only to give the group a new version. */
export const GATE_TOUCH_ANNOTATION = "bloodraven.shipstream.io/deployment-gate-touch";

/**
 * The largest generation that is read from a status. The gate counts on from it, and the proofs of its table hold from
 * here on; near 2^53 a number would stand still while it is counted.
 */
export const MAX_GENERATION: number = 2 ** 51;

const text = z.string().nullish();
const flag = z.boolean().nullish();
const phase = z.looseObject({ phase: text }).nullish();

const groupSchema = kubeObject.extend({
  spec: z.looseObject({
    sites: z.array(z.looseObject({ name: z.string(), role: text })).nullish(),
    initFromBackup: z.looseObject({}).nullish(),
    plannedFailover: z.looseObject({ maxLagWait: text, drainTimeout: text, onCooldown: text })
      .nullish(),
    failoverCooldown: text,
  }).nullish(),
  status: z.looseObject({
    activeSite: text,
    topologyGeneration: z.number().int().nonnegative().max(MAX_GENERATION).nullish(),
    sites: z.array(z.looseObject({
      name: z.string(),
      state: text,
      lastSeen: text,
      replicating: flag,
      secondsBehindSource: z.number().nullish(),
      recoveryState: text,
      sourceHost: text,
      sourceConvergenceState: text,
      sourceConvergenceReason: text,
      gtidExecuted: text,
      divergentGtid: text,
      divergentTransactionCount: z.number().nullish(),
    })).nullish(),
    conditions: z.array(z.looseObject({ type: z.string(), status: z.string(), reason: text }))
      .nullish(),
    plannedFailover: z.looseObject({
      phase: text,
      reason: text,
      message: text,
      target: text,
      sourcePrimary: text,
      startTime: text,
      completionTime: text,
      retryAfter: text,
      maxLagWait: text,
      drainTimeout: text,
    }).nullish(),
    updatePhase: text,
    restore: phase,
    restoreInPlace: z.looseObject({ phase: text, message: text }).nullish(),
    dragonfly: z.looseObject({ phase: text, upgrade: phase }).nullish(),
    lastFailover: text,
    lastFailoverTarget: text,
    promotionGtidExecuted: text,
  }).nullish(),
});

/** Label on what belongs to a group: pods, backups, Secrets. Its value is the name of the group. */
export const FAILOVER_GROUP_LABEL = "shipstream.io/failover-group";

/** A database group with one active site, as its operator describes it. */
export type MysqlFailoverGroup = z.infer<typeof groupSchema>;

/** The groups: what leases are about. */
export const MYSQL_FAILOVER_GROUPS: Resource<MysqlFailoverGroup> = resource({
  group: "shipstream.io",
  version: "v1alpha1",
  plural: "mysqlfailovergroups",
  kind: GROUP_KIND,
  namespaced: true,
}, groupSchema);

const databaseSchema = kubeObject.extend({
  spec: z.looseObject({
    groupRef: z.looseObject({ name: text }).nullish(),
    deploymentClients: z.array(z.looseObject({ namespace: text, serviceAccount: text })).nullish(),
  }).nullish(),
});

/** A database of a group. It names the service accounts that may coordinate deployments for it. */
export type MysqlDatabase = z.infer<typeof databaseSchema>;

/** The databases: who may ask. */
export const MYSQL_DATABASES: Resource<MysqlDatabase> = resource({
  group: "shipstream.io",
  version: "v1alpha1",
  plural: "mysqldatabases",
  kind: "MysqlDatabase",
  namespaced: true,
}, databaseSchema);
