/**
 * Reviews that tell what somebody may do: the caller (SelfSubjectAccessReview), anybody (SubjectAccessReview), and anybody
 * in one namespace (LocalSubjectAccessReview). They are answered and not stored. The rules are those of kube-apiserver 1.36.
 *
 * @module
 */

import { type Cause, invalid, invalidValue } from "./api_error.ts";
import { arrayAt, isObject, type JsonObject, objectAt, stringAt, strings } from "./json.ts";
import type { Rbac, User } from "./users.ts";

/** Who asks, and where. */
export interface AccessQuestion {
  /** The kind that was posted. */
  readonly kind: string;
  readonly body: JsonObject;
  /** The namespace of the URL; empty outside one. */
  readonly namespace: string;
  readonly caller: User;
}

/** Answers a review. @param enforced False where everything is allowed. @throws {ApiError} 422 */
export function answerAccessReview(
  { kind, body, namespace, caller }: AccessQuestion,
  rbac: Rbac,
  enforced: boolean,
): JsonObject {
  const spec = objectAt(body, "spec");
  const isLocal = kind === "LocalSubjectAccessReview";
  const isSelf = kind === "SelfSubjectAccessReview";
  const causes = faultsOf(spec, isSelf, isLocal ? namespace : null);
  if (causes.length > 0) throw invalid("", "authorization.k8s.io", "", causes);
  const user = isSelf ? caller : {
    username: stringAt(spec, "user"),
    uid: stringAt(spec, "uid"),
    groups: strings(arrayAt(spec, "groups")),
  };
  const reason = enforced ? reasonFor(spec, user, rbac) : "";
  return {
    kind,
    apiVersion: "authorization.k8s.io/v1",
    metadata: isLocal ? { namespace } : {},
    spec,
    status: { allowed: reason !== null, ...(reason ? { reason } : {}) },
  };
}

function reasonFor(spec: JsonObject, user: User, rbac: Rbac): string | null {
  const path = spec.nonResourceAttributes;
  if (isObject(path)) {
    return rbac.allowsPath(user, stringAt(path, "verb"), stringAt(path, "path")) ? "" : null;
  }
  const attributes = objectAt(spec, "resourceAttributes");
  return rbac.reasonFor(user, {
    type: "resource",
    verb: stringAt(attributes, "verb"),
    group: stringAt(attributes, "group"),
    plural: stringAt(attributes, "resource"),
    namespace: stringAt(attributes, "namespace"),
    subresource: stringAt(attributes, "subresource"),
    name: stringAt(attributes, "name"),
  });
}

function faultsOf(spec: JsonObject, isSelf: boolean, namespace: string | null): Cause[] {
  const { resourceAttributes: resource, nonResourceAttributes: path } = spec;
  const faults: Cause[] = [];
  const fault = (field: string, value: string | JsonObject | null, why: string) =>
    void faults.push(invalidValue(`spec.${field}`, value, why));
  if (namespace !== null && isObject(path)) {
    fault("nonResourceAttributes", path, "disallowed on this kind of request");
  } else if (isObject(resource) && isObject(path)) {
    fault(
      "nonResourceAttributes",
      path,
      "cannot be specified in combination with resourceAttributes",
    );
  } else if (!isObject(resource) && !isObject(path)) {
    const why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    fault("resourceAttributes", null, why);
  } else if (
    namespace !== null && stringAt(objectAt(spec, "resourceAttributes"), "namespace") !== namespace
  ) {
    const given = stringAt(objectAt(spec, "resourceAttributes"), "namespace");
    fault("resourceAttributes.namespace", given, "must match metadata.namespace");
  }
  if (!isSelf && stringAt(spec, "user") === "" && arrayAt(spec, "groups").length === 0) {
    fault("user", "", "at least one of user or group must be specified");
  }
  return faults;
}
