/**
 * How the generated objects are addressed in a cluster.
 *
 * @module
 */

import type { Resource } from "../kube/api.ts";
import { kubeObject, resource } from "../kube/resources.ts";

/** Kinds with their plurals. Of these in the second list none is of a namespace. */
const NAMESPACED: Readonly<Record<string, string>> = {
  ServiceAccount: "serviceaccounts",
  ConfigMap: "configmaps",
  Service: "services",
  Deployment: "deployments",
  NetworkPolicy: "networkpolicies",
  PodDisruptionBudget: "poddisruptionbudgets",
  Role: "roles",
  RoleBinding: "rolebindings",
  Certificate: "certificates",
  ServiceMonitor: "servicemonitors",
  PodMonitor: "podmonitors",
};

const CLUSTER_WIDE: Readonly<Record<string, string>> = {
  ClusterRole: "clusterroles",
  ClusterRoleBinding: "clusterrolebindings",
  CustomResourceDefinition: "customresourcedefinitions",
};

/**
 * The resource of a kind that is generated here. Answers are kept as they are: nothing but their metadata is looked at.
 *
 * @throws {RangeError} Nothing of this kind is generated.
 */
export function resourceOf(apiVersion: string, kind: string): Resource {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const namespaced = Object.hasOwn(NAMESPACED, kind);
  const plural = namespaced
    ? NAMESPACED[kind]
    : Object.hasOwn(CLUSTER_WIDE, kind)
    ? CLUSTER_WIDE[kind]
    : undefined;
  if (plural === undefined) {
    throw new RangeError(`Cannot find the resource of ${apiVersion} ${kind}: it is not known here`);
  }
  return resource({ group, version, plural, kind, namespaced }, kubeObject);
}
