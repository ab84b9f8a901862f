/**
 * What an application on the plugin must be allowed in its cluster: no more than what is switched on (kubernetes-plugin
 * 13).
 *
 * Every rule that can name its objects does. That takes care on both sides:
 * - A Lease is created with PUT by its name: the API server then asks for `update` and for `create` with that name. A POST
 *   has no name, and a rule for it would allow every Lease of the namespace.
 * - A list or watch with the field selector `metadata.name=x` counts as a request for `x`.
 *
 * Beyond the contract, the election has `list` and `watch` on its one Lease, so that a waiting replica learns of a release
 * at once. A watch begins with a list of what it watches. Neither shows more than `get` does.
 *
 * @module
 */

import { isDnsSubdomain, takesPart } from "../config/rules.ts";
import type { Config } from "../config/schema.ts";
import { demand, demandSubject } from "./demand.ts";
import { appMetadata, type ManifestMetadata } from "./metadata.ts";

/** A rule of a Role, in the API's own words. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** What needs to be allowed. */
export interface RbacNeeds {
  /** The Lease of the election; `null` without one. @default {null} */
  readonly leaseName?: string | null;
  /** The ConfigMaps that are followed. @default {[]} */
  readonly configMaps?: readonly string[];
  /** Events are written. @default {false} */
  readonly events?: boolean;
  /**
   * The leader's pod is labelled. A Role cannot name the pods of a Deployment, so this allows to patch every pod of the
   * namespace.
   *
   * @default {false}
   */
  readonly labelLeader?: boolean;
}

/** Whom it is for. */
export interface RbacSubject {
  /** The name of the application, its service account, its Role and its RoleBinding: a DNS-1035 label. */
  readonly name: string;
  /** A DNS-1123 label. */
  readonly namespace: string;
}

/** `rbac.authorization.k8s.io/v1` Role. */
export interface Role {
  readonly apiVersion: "rbac.authorization.k8s.io/v1";
  readonly kind: "Role";
  readonly metadata: ManifestMetadata;
  readonly rules: readonly PolicyRule[];
}

/** `rbac.authorization.k8s.io/v1` RoleBinding. */
export interface RoleBinding {
  readonly apiVersion: "rbac.authorization.k8s.io/v1";
  readonly kind: "RoleBinding";
  readonly metadata: ManifestMetadata;
  readonly roleRef: { readonly apiGroup: string; readonly kind: "Role"; readonly name: string };
  readonly subjects: readonly {
    readonly kind: "ServiceAccount";
    readonly name: string;
    readonly namespace: string;
  }[];
}

/** The rules; none when nothing is needed. */
export function rbacRules(needs: RbacNeeds): readonly PolicyRule[] {
  const { leaseName = null, configMaps = [], events = false, labelLeader = false } = needs;
  return [
    ...(leaseName === null ? [] : [{
      apiGroups: ["coordination.k8s.io"],
      resources: ["leases"],
      verbs: ["create", "get", "list", "patch", "update", "watch"],
      resourceNames: [leaseName],
    }]),
    // Without a name the rule would be for all of them.
    ...(configMaps.length === 0 ? [] : [{
      apiGroups: [""],
      resources: ["configmaps"],
      verbs: ["list", "watch"],
      resourceNames: [...configMaps],
    }]),
    ...(events
      ? [{ apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] }]
      : []),
    ...(labelLeader ? [{ apiGroups: [""], resources: ["pods"], verbs: ["patch"] }] : []),
  ];
}

/** What an application needs by its configuration; nothing where the plugin is switched off. */
export function rbacNeedsOf(config: Config): RbacNeeds {
  const { enabled, events, leader_election, config_maps } = config.kubernetes;
  if (!enabled) return {};
  const campaigns = takesPart(config);
  return {
    leaseName: campaigns ? leader_election.lease_name : null,
    configMaps: config_maps.watch,
    events,
    labelLeader: campaigns && leader_election.label_leader,
  };
}

/**
 * Makes the Role and its RoleBinding.
 *
 * ```ts
 * const objects = rbacObjects({ name: "web", namespace: "shop" }, { leaseName: "web" });
 * ```
 *
 * @returns Both in the order in which they are to be applied; nothing when there is no rule.
 * @throws {ManifestError} A name is not of its form; the message says which.
 */
export function rbacObjects(
  subject: RbacSubject,
  needs: RbacNeeds,
): readonly [Role, RoleBinding] | readonly [] {
  check(subject, needs);
  const rules = rbacRules(needs);
  if (rules.length === 0) return [];
  const { name, namespace } = subject;
  const apiGroup = "rbac.authorization.k8s.io";
  const metadata = appMetadata(name, namespace);
  return [
    { apiVersion: `${apiGroup}/v1`, kind: "Role", metadata, rules },
    {
      apiVersion: `${apiGroup}/v1`,
      kind: "RoleBinding",
      metadata,
      roleRef: { apiGroup, kind: "Role", name },
      subjects: [{ kind: "ServiceAccount", name, namespace }],
    },
  ];
}

function check({ name, namespace }: RbacSubject, needs: RbacNeeds): void {
  const { leaseName = null, configMaps = [] } = needs;
  demandSubject(WHAT, name, namespace);
  if (leaseName !== null) {
    demand(WHAT, "leaseName", leaseName, isDnsSubdomain(leaseName), "a DNS subdomain");
  }
  for (const map of configMaps) {
    demand(WHAT, "configMaps", map, isDnsSubdomain(map), "DNS subdomains");
  }
}

const WHAT = "a Role";
