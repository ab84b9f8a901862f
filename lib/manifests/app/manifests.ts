/**
 * All objects that an application on the plugin needs in its cluster: kubernetes-plugin 13.
 *
 * @module
 */

import { appMetadata, type ManifestMetadata, NAME_LABEL } from "../metadata.ts";
import { rbacObjects, type Role, type RoleBinding } from "../rbac.ts";
import { type Deployment, deploymentOf, PORT_NAME } from "./deployment.ts";
import { type App, type AppInput, completeApp } from "./input.ts";

/** `v1` ServiceAccount. */
export interface ServiceAccount {
  readonly apiVersion: "v1";
  readonly kind: "ServiceAccount";
  readonly metadata: ManifestMetadata;
}

/** `v1` Service, as it is made here. */
export type Service = ReturnType<typeof serviceOf>;

/** `policy/v1` PodDisruptionBudget, as it is made here. */
export type PodDisruptionBudget = ReturnType<typeof disruptionBudgetOf>;

/** One of the generated objects. */
export type AppObject =
  | ServiceAccount
  | Role
  | RoleBinding
  | Deployment
  | Service
  | PodDisruptionBudget;

/**
 * Makes the objects, in the order in which they are to be applied: ServiceAccount, Role, RoleBinding, Deployment,
 * Service, PodDisruptionBudget. The Role and its binding are there only when there is a rule, and the
 * PodDisruptionBudget only with two or more replicas. The same input gives the same objects.
 *
 * ```ts
 * import { appManifests, renderYaml } from "@holdfast/holdfast/manifests";
 *
 * const objects = appManifests({
 *   name: "web",
 *   image: "registry.example/web:1",
 *   leaseName: "web",
 *   configMaps: ["web-settings"],
 * });
 * const text = renderYaml(objects);
 * ```
 *
 * @throws {ManifestError} A field is wrong; the error says which.
 */
export function appManifests(input: AppInput): readonly AppObject[] {
  const app = completeApp(input);
  const access = rbacObjects(app, app);
  const account: ServiceAccount = {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: appMetadata(app.name, app.namespace),
  };
  return [
    account,
    ...access,
    deploymentOf(app, access.length > 0),
    serviceOf(app),
    ...(app.replicas >= 2 ? [disruptionBudgetOf(app)] : []),
  ];
}

function serviceOf({ name, namespace }: App) {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: appMetadata(name, namespace),
    spec: {
      selector: { [NAME_LABEL]: name },
      ports: [{ name: PORT_NAME, port: 80, targetPort: PORT_NAME }],
    },
  } as const;
}

function disruptionBudgetOf({ name, namespace }: App) {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: appMetadata(name, namespace),
    spec: { minAvailable: 1, selector: { matchLabels: { [NAME_LABEL]: name } } },
  } as const;
}
