/**
 * What single kinds require and fill in, beyond what holds for all.
 *
 * @module
 */

import { type Cause, invalidValue, requiredValue } from "./api_error.ts";
import { crdFaults, establishedCrd } from "./crds.ts";
import {
  arrayAt,
  equal,
  isObject,
  type Json,
  type JsonObject,
  objectAt,
  stringAt,
} from "./json.ts";
import type { Kind } from "./kinds.ts";

/** The names of the built-in kinds with rules of their own. */
type RuledKind =
  | "configmaps"
  | "customresourcedefinitions"
  | "leases"
  | "namespaces"
  | "rolebindings"
  | "roles";

const RULED: Readonly<Record<string, RuledKind>> = {
  "/configmaps": "configmaps",
  "/namespaces": "namespaces",
  "apiextensions.k8s.io/customresourcedefinitions": "customresourcedefinitions",
  "coordination.k8s.io/leases": "leases",
  "rbac.authorization.k8s.io/clusterrolebindings": "rolebindings",
  "rbac.authorization.k8s.io/clusterroles": "roles",
  "rbac.authorization.k8s.io/rolebindings": "rolebindings",
  "rbac.authorization.k8s.io/roles": "roles",
};

function ruledKind(kind: Kind): RuledKind | undefined {
  return RULED[`${kind.group}/${kind.plural}`];
}

/** The object with what the server adds before it judges it. */
export function filledIn(
  kind: Kind,
  object: JsonObject,
  stored: JsonObject | null,
  now: string,
): JsonObject {
  switch (ruledKind(kind)) {
    case "namespaces":
      return filledNamespace(object, stored);
    case "customresourcedefinitions":
      // A broken one is left as it is, for the faults to name what was sent.
      return crdFaults(object).length > 0 ? object : establishedCrd(object, now);
    case "rolebindings":
      return filledBinding(object);
    default:
      return object;
  }
}

function filledNamespace(object: JsonObject, stored: JsonObject | null): JsonObject {
  const metadata = objectAt(object, "metadata");
  const labels = {
    ...objectAt(metadata, "labels"),
    "kubernetes.io/metadata.name": stringAt(metadata, "name"),
  };
  const spec = stored === null ? { finalizers: ["kubernetes"] } : stored.spec;
  const status = stored === null ? { phase: "Active" } : stored.status;
  return { ...object, metadata: { ...metadata, labels }, spec, status };
}

function filledBinding(object: JsonObject): JsonObject {
  const group = "rbac.authorization.k8s.io";
  const subjects = arrayAt(object, "subjects").map((subject): Json => {
    const isAccount = stringAt(subject, "kind") === "ServiceAccount";
    return isObject(subject) && !isAccount ? { apiGroup: group, ...subject } : subject;
  });
  const roleRef = { apiGroup: group, ...objectAt(object, "roleRef") };
  return { ...object, ...(subjects.length > 0 ? { subjects } : {}), roleRef };
}

/** What is wrong with an object of a built-in kind. */
export function kindFaults(kind: Kind, object: JsonObject, stored: JsonObject | null): Cause[] {
  switch (ruledKind(kind)) {
    case "leases":
      return leaseFaults(objectAt(object, "spec"));
    case "configmaps":
      return ["data", "binaryData"].flatMap((member) =>
        Object.keys(objectAt(object, member)).filter((key) => !/^[-._a-zA-Z0-9]+$/.test(key)).map((
          key,
        ) => invalidValue(`${member}[${key}]`, key, CONFIG_KEY_FAULT))
      );
    case "namespaces": {
      const name = stringAt(objectAt(object, "metadata"), "name");
      return name.includes(".")
        ? [invalidValue("metadata.name", name, "must not contain dots")]
        : [];
    }
    case "customresourcedefinitions":
      return crdFaults(object);
    case "roles":
      return arrayAt(object, "rules").flatMap((rule, index) =>
        arrayAt(rule, "verbs").length > 0
          ? []
          : [requiredValue(`rules[${index}].verbs`, "verbs must contain at least one value")]
      );
    case "rolebindings":
      return bindingFaults(object, stored);
    default:
      return [];
  }
}

const CONFIG_KEY_FAULT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or " +
  "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

function leaseFaults(spec: JsonObject): Cause[] {
  const causes: Cause[] = [];
  const duration = spec.leaseDurationSeconds;
  const transitions = spec.leaseTransitions;
  if (typeof duration === "number" && duration <= 0) {
    causes.push(invalidValue("spec.leaseDurationSeconds", duration, "must be greater than 0"));
  }
  if (typeof transitions === "number" && transitions < 0) {
    causes.push(
      invalidValue("spec.leaseTransitions", transitions, "must be greater than or equal to 0"),
    );
  }
  return causes;
}

function bindingFaults(object: JsonObject, stored: JsonObject | null): Cause[] {
  const roleRef = objectAt(object, "roleRef");
  if (stringAt(roleRef, "name") === "") return [requiredValue("roleRef.name")];
  return stored !== null && !equal(roleRef, objectAt(stored, "roleRef"))
    ? [invalidValue("roleRef", roleRef, "cannot change roleRef")]
    : [];
}
