/**
 * Asks the API server what the service account may do. Nothing is tried: a review answers, and changes nothing.
 *
 * @module
 */

import type { KubeApi } from "../kube/api.ts";
import type { PolicyRule } from "../manifests/rbac.ts";
import type { ServiceRole } from "../manifests/service/roles.ts";
import type { Right, RoleFacts, ServicePlace, Sight } from "./cluster_facts.ts";
import {
  ACCESS_REVIEWS,
  LOCAL_ACCESS_REVIEWS,
  SELF_ACCESS_REVIEWS,
  SELF_REVIEWS,
} from "./kinds.ts";
import { see, whenSeen } from "./sight.ts";

/** What each role of a place lacks, by SubjectAccessReviews; by SelfSubjectAccessReviews for the service account itself. */
export async function lookAtRights(
  api: KubeApi,
  place: ServicePlace,
  signal: AbortSignal,
): Promise<readonly RoleFacts[]> {
  const { namespace, serviceAccount, roles } = place;
  const user = `system:serviceaccount:${namespace}:${serviceAccount}`;
  const who = await see(() => api.create(SELF_REVIEWS, { metadata: {} }, { signal }));
  const isSelf = who.type === "seen" && who.value.status?.userInfo?.username === user;
  const allows = isSelf
    ? (right: Right) => asks(api, right, null, signal)
    : (right: Right) => asks(api, right, { user, namespace }, signal);
  return await Promise.all(roles.map(async (role) => {
    const { suffix, scope } = role;
    const answers = await Promise.all(
      rightsOf(role, namespace).map(async (right) => ({
        right,
        answer: await allows(right),
      })),
    );
    const failed = answers.find(({ answer }) => answer.type !== "seen")?.answer;
    const missing: Sight<readonly Right[]> = failed !== undefined ? whenSeen(failed, () => []) : {
      type: "seen",
      value: answers.flatMap(({ right, answer }) =>
        answer.type === "seen" && !answer.value ? [right] : []
      ),
    };
    const where = typeof scope === "object" ? scope.namespace : scope;
    return { role: suffix, scope: where, missing };
  }));
}

/** Each verb of a role on each kind and name. */
function rightsOf({ scope, rules }: ServiceRole, own: string): readonly Right[] {
  const namespace = scope === "cluster" ? "" : scope === "own" ? own : scope.namespace;
  return rules.flatMap((rule) => rightsOfRule(rule, namespace));
}

function rightsOfRule(rule: PolicyRule, namespace: string): readonly Right[] {
  const { apiGroups, resources, verbs, resourceNames = [""] } = rule;
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      resourceNames.flatMap((name) =>
        verbs.map((verb) => ({ verb, resource, group, namespace, name }))
      )
    )
  );
}

async function asks(
  api: KubeApi,
  right: Right,
  subject: { readonly user: string; readonly namespace: string } | null,
  signal: AbortSignal,
): Promise<Sight<boolean>> {
  const { verb, group, namespace, name } = right;
  const [resource = "", subresource] = right.resource.split("/");
  const resourceAttributes = {
    verb,
    group,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === "" ? {} : { namespace }),
    ...(name === "" ? {} : { name }),
  };
  const review = subject === null ? { metadata: {}, spec: { resourceAttributes } } : {
    metadata: namespace === "" ? {} : { namespace },
    // As the API server knows a service account: a binding may be to one of its groups.
    spec: {
      user: subject.user,
      groups: [
        "system:serviceaccounts",
        `system:serviceaccounts:${subject.namespace}`,
        "system:authenticated",
      ],
      resourceAttributes,
    },
  };
  const kind = subject === null
    ? SELF_ACCESS_REVIEWS
    : namespace === ""
    ? ACCESS_REVIEWS
    : LOCAL_ACCESS_REVIEWS;
  const answer = await see(() => api.create(kind, review, { signal }));
  return whenSeen(answer, ({ status }) => status?.allowed ?? false);
}
