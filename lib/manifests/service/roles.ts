/**
 * What the service must be allowed in its cluster: a role for each part that is switched on, and no verb that the part does
 * not use (difference 18). On request, the one broad rule set of the reference instead (deploy-api 15.3).
 *
 * Databases, groups and their Leases are in any namespace, so what is about them is in ClusterRoles. The election, the
 * label of the leader and the Events about the pod are of the service's own namespace, so they are in a Role.
 *
 * @module
 */

import { type PolicyRule, type RbacNeeds, rbacRules } from "../rbac.ts";

/** Which parts of the service are switched on. */
export interface ServiceNeeds {
  /** `/deploy/v1` is served, with all that the leader does for it. */
  readonly deployApi: boolean;
  /** The annotation that asks for a planned failover is served (`planned_operations.enabled`). */
  readonly plannedOperations: boolean;
  /**
   * Where `/keyring/escrow` stores keyrings: the namespaces of the groups, `"everywhere"` for any, or `null` where it is
   * not served.
   */
  readonly keyringEscrow: readonly string[] | "everywhere" | null;
  /** The auxiliary views of groups and backups are served. */
  readonly auxiliary: boolean;
  /** The page that shows groups and their leases is served (`auxiliary.status_page`). */
  readonly statusPage: boolean;
  /** What it needs in its own namespace as any application on the plugin does: election, label, Events. */
  readonly own: RbacNeeds;
}

/** The rules of one role, before it is bound. */
export interface ServiceRole {
  /** What is added to the name of the service; empty for the role that has its name alone. */
  readonly suffix: string;
  /** Where it holds: `"cluster"`, `"own"` for the namespace of the service, or the name of another namespace. */
  readonly scope: "cluster" | "own" | { readonly namespace: string };
  readonly rules: readonly PolicyRule[];
}

const GROUPS = "mysqlfailovergroups";

function shipstream(resource: string, ...verbs: readonly string[]): PolicyRule {
  return { apiGroups: ["shipstream.io"], resources: [resource], verbs };
}

/** Leases with every verb but `deletecollection`: one rule, the same in the reference (deploy-api 15.3). */
const LEASES_RULE: PolicyRule = {
  apiGroups: ["coordination.k8s.io"],
  resources: ["leases"],
  verbs: ["create", "delete", "get", "list", "patch", "update", "watch"],
};

const TOKEN_REVIEWS_RULE: PolicyRule = {
  apiGroups: ["authentication.k8s.io"],
  resources: ["tokenreviews"],
  verbs: ["create"],
};

/** The deployment API: who calls, what they may do, where the group is, its leases, and the Events about it. */
const DEPLOY_API_RULES: readonly PolicyRule[] = [
  TOKEN_REVIEWS_RULE,
  shipstream("mysqldatabases", "get", "list"),
  shipstream(GROUPS, "get", "list", "patch", "watch"),
  LEASES_RULE,
  { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
];

/** Planned operations: what came of them is in the group's status. */
const PLANNED_OPERATIONS_RULES: readonly PolicyRule[] = [shipstream(`${GROUPS}/status`, "patch")];

/** The keyring escrow, as far as it is about Secrets: the token of a site is read, and versions come and go. */
const KEYRING_SECRETS_RULE: PolicyRule = {
  apiGroups: [""],
  resources: ["secrets"],
  verbs: ["create", "delete", "get", "list"],
};

/** The keyring escrow reads the group that a keyring is for. */
const KEYRING_GROUPS_RULE = shipstream(GROUPS, "get");

/** The auxiliary views: how groups are, and which backups there are. */
const AUXILIARY_RULES: readonly PolicyRule[] = [
  shipstream(GROUPS, "list", "watch"),
  shipstream("mysqlbackups", "list"),
];

/** The page beside them: who holds leases. */
const STATUS_PAGE_RULES: readonly PolicyRule[] = [{ ...LEASES_RULE, verbs: ["list", "watch"] }];

/**
 * The roles of the service, each with a rule or more.
 *
 * ```ts
 * const roles = serviceRoles({
 *   deployApi: true,
 *   plannedOperations: false,
 *   keyringEscrow: null,
 *   auxiliary: true,
 *   statusPage: false,
 *   own: { leaseName: "holdfast.shipstream.io", labelLeader: true, events: true },
 * });
 * ```
 */
export function serviceRoles(needs: ServiceNeeds): readonly ServiceRole[] {
  const { deployApi, plannedOperations, keyringEscrow, auxiliary, statusPage, own } = needs;
  return present(
    { suffix: "", scope: "cluster", rules: deployApi ? DEPLOY_API_RULES : [] },
    {
      suffix: "planned-operations",
      scope: "cluster",
      rules: plannedOperations ? PLANNED_OPERATIONS_RULES : [],
    },
    ...keyringRoles(keyringEscrow),
    { suffix: "auxiliary", scope: "cluster", rules: auxiliary ? AUXILIARY_RULES : [] },
    { suffix: "status-page", scope: "cluster", rules: statusPage ? STATUS_PAGE_RULES : [] },
    { suffix: "", scope: "own", rules: rbacRules(own) },
  );
}

function present(...roles: readonly ServiceRole[]): readonly ServiceRole[] {
  return roles.filter(({ rules }) => rules.length > 0);
}

function keyringRoles(escrow: ServiceNeeds["keyringEscrow"]): readonly ServiceRole[] {
  const suffix = "keyring-escrow";
  if (escrow === null) return [];
  if (escrow === "everywhere") {
    return [{ suffix, scope: "cluster", rules: [KEYRING_GROUPS_RULE, KEYRING_SECRETS_RULE] }];
  }
  return escrow.map((namespace) => ({
    suffix,
    scope: { namespace },
    rules: [KEYRING_GROUPS_RULE, KEYRING_SECRETS_RULE],
  }));
}

/**
 * The rule set of the reference (deploy-api 15.3) as one ClusterRole, for those who must compare or keep it: it allows much
 * that the service never does. Its election is covered by the one rule on Leases.
 *
 * What is beside it is what the contract leaves to "the rest of the operator" and this service does too: the status of
 * backups, the Secrets of keyrings where the escrow is on, and the pod's label where the leader is labelled.
 *
 * @param needs The parts that are switched on.
 */
export function referenceRoles(needs: ServiceNeeds): readonly ServiceRole[] {
  const { auxiliary, keyringEscrow, own: { configMaps, labelLeader } } = needs;
  const rules: readonly PolicyRule[] = [
    TOKEN_REVIEWS_RULE,
    LEASES_RULE,
    shipstream("mysqldatabases", "get", "list", "patch", "update", "watch"),
    shipstream(GROUPS, "create", "delete", "get", "list", "patch", "update", "watch"),
    shipstream(`${GROUPS}/status`, "get", "patch", "update"),
    { apiGroups: ["", "events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
    ...(auxiliary ? [shipstream("mysqlbackups", "list")] : []),
    ...(keyringEscrow === null ? [] : [KEYRING_SECRETS_RULE]),
  ];
  return [
    { suffix: "", scope: "cluster", rules },
    ...present({ suffix: "", scope: "own", rules: rbacRules({ configMaps, labelLeader }) }),
  ];
}
