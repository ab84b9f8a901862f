/**
 * What the cluster has of what would be applied.
 *
 * @module
 */

import type { KubeApi, KubeObject, Stored } from "../../../lib/kube/api.ts";
import { NotFoundError } from "../../../lib/kube/mod.ts";
import { applyPatch, differences } from "../../../lib/manifests/difference.ts";
import { resourceOf } from "../../../lib/manifests/kinds.ts";
import type { Manifest } from "../../../lib/manifests/service/objects.ts";
import { MANAGER } from "../../../lib/manifests/service/render.ts";
import { INSTANCE_LABEL, MANAGED_BY_LABEL } from "../../../lib/manifests/service/value_rules.ts";
import { CommandFault, FAILED } from "../faults.ts";

/**
 * Refuses definitions of kinds that are there and are not ours: an operator brought them, and knows more of its kinds.
 *
 * @throws {CommandFault} One is there. The message says which.
 */
export async function refuseForeignDefinitions(
  api: KubeApi,
  definitions: readonly Manifest[],
  signal: AbortSignal,
): Promise<void> {
  for (const definition of definitions) {
    const there = await find(api, definition, signal);
    if (there === null || there.metadata.labels?.[MANAGED_BY_LABEL] === MANAGER) continue;
    throw new CommandFault(
      `Cannot write the definition ${definition.metadata.name} as the cluster has one that is not ours: leave --with-crds out, or label it ${MANAGED_BY_LABEL}=${MANAGER} if it may be replaced`,
      FAILED,
    );
  }
}

/**
 * What an apply would change, as lines for a person: `+` for an object that would come, `~` for one that would change with
 * its members below, `-` for one that is ours and no longer rendered, which an apply leaves behind.
 *
 * The API server works out each change in a dry run, so its own defaults make no difference. Nothing is stored.
 */
export async function changesIn(
  api: KubeApi,
  objects: readonly Manifest[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const object of objects) lines.push(...await changeOf(api, object, signal));
  for (const object of await leftBehind(api, objects, signal)) lines.push(`- ${titleOf(object)}`);
  return lines;
}

async function changeOf(
  api: KubeApi,
  object: Manifest,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const live = await find(api, object, signal);
  if (live === null) return [`+ ${titleOf(object)}`];
  const after = await api.patch(
    resourceOf(object.apiVersion, object.kind),
    object.metadata,
    { type: "merge", body: applyPatch(live.metadata.annotations, object) },
    { signal, dryRun: true },
  );
  const changes = differences(live, after);
  if (changes.length === 0) return [];
  return [
    `~ ${titleOf(object)}`,
    ...changes.map(({ path, before, after }) => `    ${path}: ${shown(before)} → ${shown(after)}`),
  ];
}

async function find(
  api: KubeApi,
  { apiVersion, kind, metadata }: Manifest,
  signal: AbortSignal,
): Promise<Stored<KubeObject> | null> {
  try {
    return await api.get(resourceOf(apiVersion, kind), metadata, { signal });
  } catch (error) {
    if (error instanceof NotFoundError) return null;
    throw error;
  }
}

/** Objects of this installation that an earlier version or other values made. */
async function leftBehind(
  api: KubeApi,
  objects: readonly Manifest[],
  signal: AbortSignal,
): Promise<readonly Manifest[]> {
  const kept = new Set(objects.map(titleOf));
  const [first] = objects.filter(({ metadata }) => metadata.namespace !== undefined);
  const instance = first?.metadata.labels?.[INSTANCE_LABEL];
  const namespace = first?.metadata.namespace;
  if (instance === undefined || namespace === undefined) return [];
  const labelSelector = `${MANAGED_BY_LABEL}=${MANAGER},${INSTANCE_LABEL}=${instance}`;
  const found: Manifest[] = [];
  for (const [apiVersion, kind] of PRUNABLE) {
    const resource = resourceOf(apiVersion, kind);
    const place = resource.namespaced ? { namespace } : {};
    try {
      const { items } = await api.list(resource, { ...place, labelSelector, signal });
      found.push(...items.map(({ metadata }) => ({ apiVersion, kind, metadata })));
    } catch (error) {
      // A cluster without an operator for Prometheus or certificates does not know their kinds.
      if (!(error instanceof NotFoundError)) throw error;
    }
  }
  return found.filter((object) => !kept.has(titleOf(object)));
}

const PRUNABLE: readonly (readonly [apiVersion: string, kind: string])[] = [
  ["v1", "ServiceAccount"],
  ["rbac.authorization.k8s.io/v1", "ClusterRole"],
  ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding"],
  ["rbac.authorization.k8s.io/v1", "Role"],
  ["rbac.authorization.k8s.io/v1", "RoleBinding"],
  ["v1", "ConfigMap"],
  ["cert-manager.io/v1", "Certificate"],
  ["v1", "Service"],
  ["networking.k8s.io/v1", "NetworkPolicy"],
  ["policy/v1", "PodDisruptionBudget"],
  ["apps/v1", "Deployment"],
  ["monitoring.coreos.com/v1", "ServiceMonitor"],
  ["monitoring.coreos.com/v1", "PodMonitor"],
];

function titleOf({ kind, metadata: { name, namespace } }: Manifest): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

function shown(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}
