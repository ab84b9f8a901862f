/**
 * The kinds that the server serves, and in what each differs. The differences are those of the registries of
 * kube-apiserver 1.36.
 *
 * @module
 */

import type { CustomSchema } from "./custom_schema.ts";
import { LEASE_SPEC, wireObject, type WireType } from "./wire_types.ts";

/** One column of what `kubectl get` prints. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly priority: number;
}

/** A kind of object. */
export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly verbs: readonly string[];
  readonly subresources: readonly string[];
  /** What the JSON decoder knows of it. */
  readonly wire: WireType;
  /** The schemas of a custom kind; `null` for built-in kinds. */
  readonly custom: CustomSchema | null;
  /** A PUT of an object that is not there creates it. */
  readonly createOnUpdate: boolean;
  /** A PUT without a version is allowed. */
  readonly unconditionalUpdate: boolean;
  /** DELETE answers the object instead of a `Status`. */
  readonly deleteAnswersObject: boolean;
  /** `status` is written through its own URL only. */
  readonly statusIsolated: boolean;
  /** Fields beside name and namespace that a field selector can name; `null` when the kind has no list of its own. */
  readonly selectableFields: readonly string[] | null;
  readonly columns: readonly PrinterColumn[];
}

/** The verbs of a kind whose objects are stored. */
export const ALL_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"];

/** The key of a kind in the store. */
export function kindKey(kind: Pick<Kind, "group" | "plural">): string {
  return `${kind.group}/${kind.plural}`;
}

/** `coordination.k8s.io/v1`, or `v1`. */
export function apiVersionOf(kind: Pick<Kind, "group" | "version">): string {
  return kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
}

type Traits = Partial<Omit<Kind, "group" | "version" | "plural" | "kind" | "wire">> & {
  readonly members?: Readonly<Record<string, WireType>>;
};

function builtIn(group: string, plural: string, kind: string, traits: Traits = {}): Kind {
  const { members, ...rest } = traits;
  return {
    group,
    version: "v1",
    plural,
    kind,
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    namespaced: true,
    shortNames: [],
    verbs: ALL_VERBS,
    subresources: [],
    wire: wireObject(kind, members ?? null),
    custom: null,
    createOnUpdate: false,
    unconditionalUpdate: true,
    deleteAnswersObject: false,
    statusIsolated: false,
    selectableFields: null,
    columns: [],
    ...rest,
  };
}

const RBAC = "rbac.authorization.k8s.io";

const POLICY_RULES: WireType = {
  list: {
    name: "PolicyRule",
    struct: {
      verbs: { list: "string" },
      apiGroups: { list: "string" },
      resources: { list: "string" },
      resourceNames: { list: "string" },
      nonResourceURLs: { list: "string" },
    },
  },
};

const BINDING: Readonly<Record<string, WireType>> = {
  subjects: {
    list: {
      name: "Subject",
      struct: { kind: "string", apiGroup: "string", name: "string", namespace: "string" },
    },
  },
  roleRef: {
    name: "RoleRef",
    struct: { apiGroup: "string", kind: "string", name: "string" },
  },
};

const EVENT_FIELDS = [
  "involvedObject.kind",
  "involvedObject.name",
  "involvedObject.namespace",
  "involvedObject.uid",
  "reason",
  "type",
];

/** Kinds that are served from the start. */
export const BUILT_IN_KINDS: readonly Kind[] = [
  builtIn("", "namespaces", "Namespace", {
    namespaced: false,
    shortNames: ["ns"],
    subresources: ["status"],
    deleteAnswersObject: true,
    selectableFields: ["status.phase"],
    columns: [column("Status", ".status.phase")],
  }),
  builtIn("", "configmaps", "ConfigMap", {
    shortNames: ["cm"],
    members: { data: { map: "string" }, binaryData: { map: "string" }, immutable: "bool" },
  }),
  builtIn("", "secrets", "Secret", {
    members: {
      data: { map: "string" },
      stringData: { map: "string" },
      immutable: "bool",
      type: "string",
    },
    selectableFields: ["type"],
  }),
  builtIn("", "serviceaccounts", "ServiceAccount", {
    shortNames: ["sa"],
    subresources: ["token"],
    deleteAnswersObject: true,
  }),
  builtIn("", "services", "Service", {
    shortNames: ["svc"],
    subresources: ["status"],
    createOnUpdate: true,
    deleteAnswersObject: true,
    statusIsolated: true,
  }),
  builtIn("", "pods", "Pod", {
    shortNames: ["po"],
    subresources: ["status"],
    deleteAnswersObject: true,
    statusIsolated: true,
    selectableFields: ["spec.nodeName", "spec.serviceAccountName", "status.phase"],
    columns: [column("Status", ".status.phase")],
  }),
  builtIn("", "events", "Event", {
    shortNames: ["ev"],
    createOnUpdate: true,
    selectableFields: EVENT_FIELDS,
    columns: [column("Type", ".type"), column("Reason", ".reason"), column("Message", ".message")],
  }),
  builtIn("events.k8s.io", "events", "Event", {
    shortNames: ["ev"],
    createOnUpdate: true,
    selectableFields: ["reason", "type", "regarding.kind", "regarding.name", "regarding.namespace"],
    columns: [column("Type", ".type"), column("Reason", ".reason"), column("Note", ".note")],
  }),
  builtIn("coordination.k8s.io", "leases", "Lease", {
    createOnUpdate: true,
    unconditionalUpdate: false,
    members: { spec: LEASE_SPEC },
    columns: [column("Holder", ".spec.holderIdentity")],
  }),
  builtIn("apps", "deployments", "Deployment", {
    shortNames: ["deploy"],
    subresources: ["status"],
    statusIsolated: true,
  }),
  builtIn("policy", "poddisruptionbudgets", "PodDisruptionBudget", {
    shortNames: ["pdb"],
    subresources: ["status"],
    statusIsolated: true,
    unconditionalUpdate: false,
  }),
  builtIn("networking.k8s.io", "networkpolicies", "NetworkPolicy", { shortNames: ["netpol"] }),
  builtIn(RBAC, "roles", "Role", { createOnUpdate: true, members: { rules: POLICY_RULES } }),
  builtIn(RBAC, "clusterroles", "ClusterRole", {
    namespaced: false,
    createOnUpdate: true,
    members: { rules: POLICY_RULES, aggregationRule: "any" },
  }),
  builtIn(RBAC, "rolebindings", "RoleBinding", { createOnUpdate: true, members: BINDING }),
  builtIn(RBAC, "clusterrolebindings", "ClusterRoleBinding", {
    namespaced: false,
    createOnUpdate: true,
    members: BINDING,
  }),
  builtIn("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", {
    namespaced: false,
    shortNames: ["crd", "crds"],
    subresources: ["status"],
    unconditionalUpdate: false,
    statusIsolated: true,
  }),
  builtIn("authentication.k8s.io", "tokenreviews", "TokenReview", {
    namespaced: false,
    verbs: ["create"],
  }),
  builtIn("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", {
    namespaced: false,
    verbs: ["create"],
  }),
  builtIn("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", {
    namespaced: false,
    verbs: ["create"],
  }),
  builtIn("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", {
    verbs: ["create"],
  }),
];

function column(name: string, jsonPath: string): PrinterColumn {
  return { name, type: "string", jsonPath, priority: 0 };
}

/** The kinds that are served now: the built-in ones, and those of the CRDs that are stored. */
export class KindRegistry {
  readonly #custom = new Map<string, Kind[]>();

  /** All kinds. */
  all(): Kind[] {
    return [...BUILT_IN_KINDS, ...[...this.#custom.values()].flat()];
  }

  /** The kind at a URL, or `null`. */
  find(group: string, version: string, plural: string): Kind | null {
    return this.all().find((kind) =>
      kind.group === group && kind.version === version && kind.plural === plural
    ) ?? null;
  }

  /** The kind that an object names, or `null`. */
  findByObject(apiVersion: string, kindName: string): Kind | null {
    return this.all().find((kind) => apiVersionOf(kind) === apiVersion && kind.kind === kindName) ??
      null;
  }

  /** Serves the versions of a CRD, in place of those that it had. */
  serve(crdName: string, kinds: readonly Kind[]): void {
    this.#custom.set(crdName, [...kinds]);
  }

  /** Forgets every custom kind. */
  clear(): void {
    this.#custom.clear();
  }
}
