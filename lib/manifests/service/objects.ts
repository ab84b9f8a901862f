/**
 * The objects of the service that are no workload: its account, its roles, and their bindings.
 *
 * @module
 */

import type { PolicyRule } from "../rbac.ts";
import type { ServiceRole } from "./roles.ts";
import type { ServiceValues } from "./values.ts";

/** An object of the API, as it is written down. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    /** Left out for what is of the whole cluster. */
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [member: string]: unknown;
}

/** What all objects of one installation have in common. */
export interface Installation {
  /** The name of its Deployment and service account, and the first part of all other names. */
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

const RBAC = "rbac.authorization.k8s.io";

/** The service account. Pods ask for its token themselves. */
export function serviceAccount(
  { namespace, labels }: Installation,
  values: ServiceValues,
): Manifest {
  const { annotations } = values.serviceAccount;
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: {
      name: accountName(values),
      namespace,
      labels,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    automountServiceAccountToken: false,
  };
}

/** The name of the service account. */
export function accountName({ serviceAccount, name }: ServiceValues): string {
  return serviceAccount.name === "" ? name : serviceAccount.name;
}

/** Each role with its binding to a service account of the installation's namespace. */
export function roleObjects(
  installation: Installation,
  account: string,
  roles: readonly ServiceRole[],
): readonly Manifest[] {
  return roles.flatMap((role) => roleAndBinding(installation, account, role));
}

function roleAndBinding(
  { name: installed, namespace: own, labels }: Installation,
  account: string,
  { suffix, scope, rules }: ServiceRole,
): readonly Manifest[] {
  const namespace = scope === "cluster" ? undefined : scope === "own" ? own : scope.namespace;
  const kind = namespace === undefined ? "ClusterRole" : "Role";
  const name = suffix === "" ? installed : `${installed}-${suffix}`;
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), labels };
  return [
    { apiVersion: `${RBAC}/v1`, kind, metadata, rules: rules.map(copyOf) },
    {
      apiVersion: `${RBAC}/v1`,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: RBAC, kind, name },
      subjects: [{ kind: "ServiceAccount", name: account, namespace: own }],
    },
  ];
}

/** Rules are shared constants: an object that is written down has its own. */
function copyOf({ apiGroups, resources, resourceNames, verbs }: PolicyRule): PolicyRule {
  return {
    apiGroups: [...apiGroups],
    resources: [...resources],
    ...(resourceNames === undefined ? {} : { resourceNames: [...resourceNames] }),
    verbs: [...verbs],
  };
}
