/**
 * What an assertion of the contract works with.
 *
 * @module
 */

import { type KubeApi, kubeObject, type Resource, resource } from "../../lib/kube/mod.ts";
import type { Grant } from "../cluster/access.ts";
import type { Caller } from "../cluster/caller.ts";
import { member, mustSucceed, type RawAnswer, type RawClient } from "../cluster/raw_client.ts";

/** Something that claims to be an API server. */
export interface ContractTarget {
  /** Somebody to whom everything is allowed. */
  readonly admin: Caller;
  /** Somebody with a token. Nothing has to be given back. */
  caller(token: string): Caller;
  /** Grants rules; returns when the server acts on it. */
  grant(wish: Grant): Promise<void>;
  /** Makes sure that a watch of a custom kind from version 1 comes too late. */
  forgetFirstVersions(): void;
}

/** A target with a namespace that no other assertion uses. */
export interface Scope extends ContractTarget {
  readonly namespace: string;
  /** The administrator's requests that `KubeApi` rules out. */
  readonly raw: RawClient;
  /** The administrator's cluster, through the product's own client. */
  readonly api: KubeApi;
  /** The path of the namespace's Leases. */
  readonly leases: string;
  /** The path of the namespace's failover groups. */
  readonly groups: string;
  /** The path of the namespace's databases. */
  readonly databases: string;
}

/** One fact that holds for every target. */
export interface Assertion {
  /** A sentence. */
  readonly name: string;
  /** Throws when the fact does not hold. */
  check(scope: Scope): Promise<void>;
}

/** Makes the namespace of an assertion and what it works with. */
export async function openScope(target: ContractTarget, namespace: string): Promise<Scope> {
  const raw = target.admin.raw;
  mustSucceed(
    await raw("POST", "/api/v1/namespaces", { body: { metadata: { name: namespace } } }),
    `create the namespace ${namespace}`,
  );
  return {
    admin: target.admin,
    caller: (token) => target.caller(token),
    grant: (wish) => target.grant(wish),
    forgetFirstVersions: () => target.forgetFirstVersions(),
    namespace,
    raw,
    api: target.admin.api(),
    leases: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
    groups: `/apis/shipstream.io/v1alpha1/namespaces/${namespace}/mysqlfailovergroups`,
    databases: `/apis/shipstream.io/v1alpha1/namespaces/${namespace}/mysqldatabases`,
  };
}

/** The content types of patches. */
export const MERGE = "application/merge-patch+json";
export const JSON_PATCH = "application/json-patch+json";

/** A uid that no object has. */
export const OTHER_UID = "00000000-0000-4000-8000-000000000000";

/** Failover groups, as objects of which nothing more is known. */
export const GROUPS: Resource = resource({
  group: "shipstream.io",
  version: "v1alpha1",
  plural: "mysqlfailovergroups",
  kind: "MysqlFailoverGroup",
  namespaced: true,
}, kubeObject);

/** For calls that the test itself ends. */
export const NEVER: AbortSignal = new AbortController().signal;

/** Members of `metadata` and of `spec`, beside the name. */
export type Members = Readonly<Record<string, unknown>>;

/** A Lease. */
export function lease(name: string, metadata: Members = {}, spec?: Members) {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name, ...metadata },
    spec: spec ?? { leaseDurationSeconds: 30 },
  };
}

/** A failover group of two sites. */
export function group(name: string, metadata: Members = {}, rest: Members = {}) {
  return {
    apiVersion: "shipstream.io/v1alpha1",
    kind: "MysqlFailoverGroup",
    metadata: { name, ...metadata },
    spec: { sites: [{ name: "iad" }, { name: "pdx" }] },
    ...rest,
  };
}

/** A database of a group. */
export function database(name: string, groupName: string, spec: Members = {}) {
  return {
    apiVersion: "shipstream.io/v1alpha1",
    kind: "MysqlDatabase",
    metadata: { name },
    spec: { groupRef: { name: groupName }, ...spec },
  };
}

/** What decides of a refusal: its text is for people. */
export interface Refusal {
  readonly status: number;
  readonly reason: unknown;
  /** The fields that the server names, each once. */
  readonly fields: readonly string[];
}

/** Reads the refusal out of an answer. */
export function refusal(answer: RawAnswer): Refusal {
  const causes = member(answer.body, "details", "causes");
  const fields = (Array.isArray(causes) ? causes : [])
    .map((cause: unknown) => String(member(cause, "field")))
    // A remark that rules written in CEL were not looked at, on an object that is refused anyway.
    .filter((field) => field !== "<nil>");
  return {
    status: answer.status,
    reason: member(answer.body, "reason"),
    fields: [...new Set(fields)],
  };
}

/** The refusal of a value. */
export function invalid(...fields: readonly string[]): Refusal {
  return { status: 422, reason: "Invalid", fields };
}

/** The refusal of a write under a version or uid that is not the stored one. */
export const CONFLICT: Refusal = { status: 409, reason: "Conflict", fields: [] };
/** The refusal of what the Role does not allow. */
export const FORBIDDEN: Refusal = { status: 403, reason: "Forbidden", fields: [] };
/** The refusal of what is not there. */
export const NOT_FOUND: Refusal = { status: 404, reason: "NotFound", fields: [] };
/** The refusal of a request that makes no sense. */
export const BAD_REQUEST: Refusal = { status: 400, reason: "BadRequest", fields: [] };

/** `metadata.resourceVersion` of an answered object. */
export function versionOf(answer: RawAnswer): string {
  return String(member(answer.body, "metadata", "resourceVersion"));
}

/** `metadata.uid` of an answered object. */
export function uidOf(answer: RawAnswer): string {
  return String(member(answer.body, "metadata", "uid"));
}

/** The names of a list's items, in its order. */
export function namesOf(answer: RawAnswer): unknown[] {
  const items = member(answer.body, "items");
  return (Array.isArray(items) ? items : [])
    .map((item: unknown) => member(item, "metadata", "name"));
}

/** A path with a query. */
export function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  return `${path}?${new URLSearchParams(query)}`;
}

/** Makes a Lease that the assertion needs. */
export async function createLease(
  { raw, leases }: Scope,
  name: string,
  metadata: Members = {},
): Promise<RawAnswer> {
  return mustSucceed(
    await raw("POST", leases, { body: lease(name, metadata) }),
    `create the Lease ${name}`,
  );
}
