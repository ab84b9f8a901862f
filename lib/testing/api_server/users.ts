/**
 * Who calls: what a token says, and what the stored roles allow (Kubernetes concept "Using RBAC Authorization").
 *
 * @module
 */

import { forbidden, qualified } from "./api_error.ts";
import { ApiError } from "./api_error.ts";
import { arrayAt, type Json, type JsonObject, objectAt, stringAt, strings } from "./json.ts";
import type { ResourceRoute, Route } from "./routes.ts";
import { objectKey, type Store } from "./store.ts";

/** A user, as authentication found it. */
export interface User {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

/** Who sent no token over the network. */
export const ANONYMOUS: User = {
  username: "system:anonymous",
  uid: "",
  groups: ["system:unauthenticated"],
};

/** What authorization judges. */
export type Attempt = Omit<ResourceRoute, "version" | "name" | "judgedName"> & {
  readonly name: string;
};

/** Paths that anybody may read. */
const PUBLIC_PATHS = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/** Kinds that every authenticated user may create: they only ask about the user. */
const SELF_REVIEWS = ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"];

/** The attempt that a call is. */
export function attemptOf(route: ResourceRoute): Attempt {
  const { type, verb, group, plural, namespace, subresource, judgedName } = route;
  return { type, verb, group, plural, namespace, subresource, name: judgedName };
}

/** Judges by the Roles, ClusterRoles and bindings in a store. */
export class Rbac {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** @throws {ApiError} 403, when no rule allows the call. */
  authorize(user: User, route: Route): void {
    if (route.type === "path") {
      if (!this.allowsPath(user, route.verb, route.path)) throw forbiddenPath(user, route);
      return;
    }
    const attempt = attemptOf(route);
    if (this.reasonFor(user, attempt) === null) throw forbiddenResource(user, attempt);
  }

  /** Why an attempt is allowed, or `null` when it is not. */
  reasonFor(user: User, attempt: Attempt): string | null {
    if (user.groups.includes("system:masters")) return "";
    if (isSelfReview(attempt) && user.groups.includes("system:authenticated")) return "";
    for (const { binding, namespace, kind } of this.#bindings(attempt.namespace)) {
      const subject = arrayAt(binding, "subjects").find((one) =>
        isSubject(user, one, stringAt(objectAt(binding, "metadata"), "namespace"))
      );
      if (subject === undefined) continue;
      const roleRef = objectAt(binding, "roleRef");
      if (this.#rules(roleRef, namespace).some((rule) => allows(rule, attempt))) {
        const name = stringAt(objectAt(binding, "metadata"), "name");
        return `RBAC: allowed by ${kind} "${name}" of ${stringAt(roleRef, "kind")} ` +
          `"${stringAt(roleRef, "name")}" to ${stringAt(subject, "kind")} "${
            stringAt(subject, "name")
          }"`;
      }
    }
    return null;
  }

  /** Whether a path that is no kind may be asked for. @param verb The method in lower case. */
  allowsPath(user: User, verb: string, path: string): boolean {
    if (user.groups.includes("system:masters")) return true;
    const isDiscovery = path === "/" || /^\/(api|apis|openapi)(\/|$)/.test(path);
    if (verb === "get" && PUBLIC_PATHS.includes(path)) return true;
    if (verb === "get" && isDiscovery && user.groups.includes("system:authenticated")) return true;
    return this.#bindings("").some(({ binding }) =>
      arrayAt(binding, "subjects").some((one) => isSubject(user, one, "")) &&
      this.#rules(objectAt(binding, "roleRef"), "").some((rule) =>
        has(rule, "verbs", verb) &&
        strings(arrayAt(rule, "nonResourceURLs")).some((pattern) =>
          pattern === path || (pattern.endsWith("*") && path.startsWith(pattern.slice(0, -1)))
        )
      )
    );
  }

  #bindings(namespace: string) {
    const cluster = this.#store.list("rbac.authorization.k8s.io/clusterrolebindings", "")
      .map((binding) => ({ binding, namespace: "", kind: "ClusterRoleBinding" }));
    if (namespace === "") return cluster;
    const local = this.#store.list("rbac.authorization.k8s.io/rolebindings", namespace)
      .map((binding) => ({ binding, namespace, kind: "RoleBinding" }));
    return [...cluster, ...local];
  }

  #rules(roleRef: JsonObject, namespace: string): readonly Json[] {
    const isCluster = stringAt(roleRef, "kind") === "ClusterRole";
    const kindKey = `rbac.authorization.k8s.io/${isCluster ? "clusterroles" : "roles"}`;
    const key = objectKey(isCluster ? "" : namespace, stringAt(roleRef, "name"));
    return arrayAt(this.#store.get(kindKey, key) ?? {}, "rules");
  }
}

function isSelfReview(attempt: Attempt): boolean {
  return attempt.verb === "create" && SELF_REVIEWS.includes(attempt.plural);
}

function isSubject(user: User, subject: Json, bindingNamespace: string): boolean {
  const name = stringAt(subject, "name");
  switch (stringAt(subject, "kind")) {
    case "User":
      return user.username === name;
    case "Group":
      return user.groups.includes(name);
    case "ServiceAccount": {
      const namespace = stringAt(subject, "namespace") || bindingNamespace;
      return user.username === `system:serviceaccount:${namespace}:${name}`;
    }
    default:
      return false;
  }
}

function allows(rule: Json, attempt: Attempt): boolean {
  const { verb, group, plural, subresource, name } = attempt;
  const names = strings(arrayAt(rule, "resourceNames"));
  const resource = subresource === "" ? plural : `${plural}/${subresource}`;
  const resources = strings(arrayAt(rule, "resources"));
  return has(rule, "verbs", verb) && has(rule, "apiGroups", group) &&
    (resources.includes("*") || resources.includes(resource) ||
      (subresource !== "" && resources.includes(`*/${subresource}`))) &&
    (names.length === 0 || names.includes(name));
}

function has(rule: Json, member: string, wanted: string): boolean {
  const values = strings(arrayAt(rule, member));
  return values.includes("*") || values.includes(wanted);
}

/** 403 as RBAC says it. */
export function forbiddenResource(user: User, attempt: Attempt): ApiError {
  const { verb, group, plural, subresource, namespace, name } = attempt;
  const resource = subresource === "" ? plural : `${plural}/${subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace "${namespace}"`;
  return forbidden(
    { plural, group },
    name,
    `User "${user.username}" cannot ${verb} resource "${resource}" in API group "${group}" ${where}`,
  );
}

function forbiddenPath(user: User, route: { readonly verb: string; readonly path: string }) {
  const text = `forbidden: User "${user.username}" cannot ${route.verb} path "${route.path}"`;
  return new ApiError(403, "Forbidden", text, {});
}

/** `leases.coordination.k8s.io/status`: how calls are named in the log and in fault rules. */
export function resourceName(route: Route): string {
  if (route.type === "path") return route.path;
  const name = qualified(route.plural, route.group);
  return route.subresource === "" ? name : `${name}/${route.subresource}`;
}
