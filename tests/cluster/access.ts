/**
 * Who may do what on a test cluster: certificates, service account tokens, roles and kubeconfigs.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { pause } from "./keeper.ts";
import { member, mustSucceed, type RawClient } from "./raw_client.ts";

/** How a caller shows who it is. */
export type Credentials =
  | { readonly certPem: string; readonly keyPem: string }
  | { readonly token: string };

/** Whom a grant is for. */
export type Subject =
  | { readonly user: string }
  | { readonly group: string }
  | { readonly namespace: string; readonly serviceAccount: string };

/** A rule of a Role, in the API's own words. */
export interface RoleRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** What to grant. */
export interface Grant {
  readonly subject: Subject;
  readonly rules: readonly RoleRule[];
  /** Where the rules hold; in the whole cluster when it is left out. */
  readonly namespace?: string;
}

/** A token to ask for. */
export interface TokenWish {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** @default {the API server's own} */
  readonly audiences?: readonly string[];
  /** Seconds, 600 or more by the API server's own rule. @default {3600} */
  readonly expirationSeconds?: number;
}

/** Makes a namespace. One that is there is left alone. */
export async function createNamespace(admin: RawClient, name: string): Promise<void> {
  const answer = await admin("POST", "/api/v1/namespaces", { body: { metadata: { name } } });
  if (answer.status !== 409) mustSucceed(answer, `create the namespace ${name}`);
}

/** Makes a service account in a namespace that is there. One that is there is left alone. */
export async function createServiceAccount(
  admin: RawClient,
  namespace: string,
  name: string,
): Promise<void> {
  const answer = await admin("POST", `/api/v1/namespaces/${namespace}/serviceaccounts`, {
    body: { metadata: { name } },
  });
  if (answer.status !== 409) mustSucceed(answer, `create the service account ${namespace}/${name}`);
}

/** Asks for a token of a service account that is there (the TokenRequest API). */
export async function requestToken(admin: RawClient, wish: TokenWish): Promise<string> {
  const { namespace, serviceAccount } = wish;
  const answer = await admin(
    "POST",
    `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`,
    {
      body: {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        metadata: {},
        spec: {
          audiences: wish.audiences ?? [],
          expirationSeconds: wish.expirationSeconds ?? 3_600,
        },
      },
    },
  );
  mustSucceed(answer, `get a token of ${namespace}/${serviceAccount}`);
  const token = member(answer.body, "status", "token");
  if (typeof token !== "string") throw new Error("Cannot read the token: it is not a string");
  return token;
}

/**
 * Makes a role with the rules and binds it to the subject, and returns when the API server acts on it: an RBAC object
 * takes a moment from the store to the authorizer.
 */
export async function grant(admin: RawClient, wish: Grant): Promise<void> {
  await bindRole(admin, wish);
  for (const rule of wish.rules) await waitUntilAllowed(admin, wish, rule);
}

/** Makes a role with the rules and binds it to the subject. */
export async function bindRole(admin: RawClient, wish: Grant): Promise<void> {
  const name = `test-${crypto.randomUUID()}`;
  const kind = wish.namespace === undefined ? "ClusterRole" : "Role";
  const base = wish.namespace === undefined
    ? "/apis/rbac.authorization.k8s.io/v1"
    : `/apis/rbac.authorization.k8s.io/v1/namespaces/${wish.namespace}`;
  const plural = kind.toLowerCase();
  mustSucceed(
    await admin("POST", `${base}/${plural}s`, { body: { metadata: { name }, rules: wish.rules } }),
    `create the ${kind}`,
  );
  mustSucceed(
    await admin("POST", `${base}/${plural}bindings`, {
      body: {
        metadata: { name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
        subjects: [bindingSubject(wish.subject)],
      },
    }),
    `create the ${kind}Binding`,
  );
}

/** The text of a kubeconfig file with one cluster, one user and one context. */
export function kubeconfig(
  url: string,
  caPem: string,
  credentials: Credentials,
  namespace = "default",
): string {
  const user = "token" in credentials ? { token: credentials.token } : {
    "client-certificate-data": encodeBase64(credentials.certPem),
    "client-key-data": encodeBase64(credentials.keyPem),
  };
  // JSON is YAML: nothing is gained by another way to write it.
  return JSON.stringify(
    {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{
        name: "test",
        cluster: { server: url, "certificate-authority-data": encodeBase64(caPem) },
      }],
      users: [{ name: "test", user }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test", namespace } }],
      "current-context": "test",
    },
    null,
    2,
  );
}

function encodeBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function bindingSubject(subject: Subject): Record<string, string> {
  if ("user" in subject) {
    return { apiGroup: "rbac.authorization.k8s.io", kind: "User", name: subject.user };
  }
  if ("group" in subject) {
    return { apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: subject.group };
  }
  return { kind: "ServiceAccount", namespace: subject.namespace, name: subject.serviceAccount };
}

async function waitUntilAllowed(admin: RawClient, wish: Grant, rule: RoleRule): Promise<void> {
  const subject = wish.subject;
  const who = "user" in subject
    ? { user: subject.user }
    : "group" in subject
    ? { user: "any", groups: [subject.group] }
    : { user: `system:serviceaccount:${subject.namespace}:${subject.serviceAccount}` };
  const [resource = "", subresource] = (rule.resources[0] ?? "").split("/");
  const body = {
    spec: {
      ...who,
      resourceAttributes: {
        group: rule.apiGroups[0],
        resource,
        subresource,
        verb: rule.verbs[0],
        namespace: wish.namespace,
        name: rule.resourceNames?.[0],
      },
    },
  };
  for (let attempt = 0; attempt < 200; attempt++) {
    const answer = mustSucceed(
      await admin("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", { body }),
      "ask whether the grant holds",
    );
    if (member(answer.body, "status", "allowed") === true) return;
    await pause(25);
  }
  throw new Error(`Cannot grant ${rule.verbs.join(", ")}: the API server still refuses after 5 s`);
}
