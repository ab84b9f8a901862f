/**
 * The kinds of objects that this project reads and writes, each with the schema that answers pass.
 *
 * Schemas are loose: unknown members are kept. They check what code here relies on, and no more, so that a newer server
 * or operator does not break it.
 *
 * @module
 */

import { z } from "zod";
import type { KubeObject, Resource } from "./api.ts";

const metadata = z.looseObject({
  name: z.string().optional(),
  generateName: z.string().optional(),
  namespace: z.string().optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.number().optional(),
  creationTimestamp: z.string().nullish(),
  deletionTimestamp: z.string().nullish(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z.array(z.looseObject({
    apiVersion: z.string(),
    kind: z.string(),
    name: z.string(),
    uid: z.string(),
    controller: z.boolean().optional(),
    blockOwnerDeletion: z.boolean().optional(),
  })).optional(),
});

/** The members of every object: the base of a kind's schema. */
export const kubeObject = z.looseObject({
  apiVersion: z.string().optional(),
  kind: z.string().optional(),
  metadata,
});

/** Which kind a {@linkcode resource} is. */
export interface ResourceIdentity {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/**
 * Describes a kind of object, so that a {@linkcode KubeApi} can reach it.
 *
 * ```ts
 * import { z } from "zod";
 *
 * const CONFIG_MAPS = resource(
 *   { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true },
 *   kubeObject.extend({ data: z.record(z.string(), z.string()).optional() }),
 * );
 * ```
 *
 * @param identity How the URL and the object name the kind.
 * @param schema Checks an answer. Start from {@linkcode kubeObject} and keep it loose.
 */
export function resource<T extends KubeObject>(
  identity: ResourceIdentity,
  schema: z.ZodType<T>,
): Resource<T> {
  return { ...identity, parse: (value) => schema.parse(value) };
}

const leaseSchema = kubeObject.extend({
  spec: z.looseObject({
    holderIdentity: z.string().nullish(),
    leaseDurationSeconds: z.number().int().nullish(),
    acquireTime: z.string().nullish(),
    renewTime: z.string().nullish(),
    leaseTransitions: z.number().int().nullish(),
  }).optional(),
});

/** `coordination.k8s.io/v1` Lease. Times are RFC 3339 with six fraction digits. */
export type Lease = z.infer<typeof leaseSchema>;

/** Leases: all state of this project. */
export const LEASES: Resource<Lease> = resource({
  group: "coordination.k8s.io",
  version: "v1",
  plural: "leases",
  kind: "Lease",
  namespaced: true,
}, leaseSchema);

const tokenReviewSchema = kubeObject.extend({
  metadata: metadata.default({}),
  spec: z.looseObject({ token: z.string().optional(), audiences: z.array(z.string()).optional() })
    .optional(),
  status: z.looseObject({
    authenticated: z.boolean().optional(),
    error: z.string().optional(),
    audiences: z.array(z.string()).optional(),
    user: z.looseObject({ username: z.string().optional(), uid: z.string().optional() }).optional(),
  }).optional(),
});

/** `authentication.k8s.io/v1` TokenReview. */
export type TokenReview = z.infer<typeof tokenReviewSchema>;

/** Token reviews: answered, never stored. */
export const TOKEN_REVIEWS: Resource<TokenReview> = resource({
  group: "authentication.k8s.io",
  version: "v1",
  plural: "tokenreviews",
  kind: "TokenReview",
  namespaced: false,
}, tokenReviewSchema);

const tokenRequestSchema = kubeObject.extend({
  metadata: metadata.default({}),
  spec: z.looseObject({
    audiences: z.array(z.string()).optional(),
    expirationSeconds: z.number().int().nullish(),
  }).optional(),
  status: z.looseObject({ token: z.string(), expirationTimestamp: z.string() }).optional(),
});

/** `authentication.k8s.io/v1` TokenRequest: the body of the `token` subresource of a service account. */
export type TokenRequest = z.infer<typeof tokenRequestSchema>;

/** Token requests, as the body of `createSubresource(SERVICE_ACCOUNTS, …, "token", …)`. */
export const TOKEN_REQUESTS: Resource<TokenRequest> = resource({
  group: "authentication.k8s.io",
  version: "v1",
  plural: "tokenrequests",
  kind: "TokenRequest",
  namespaced: true,
}, tokenRequestSchema);

/** Service accounts. */
export const SERVICE_ACCOUNTS: Resource = resource(
  { group: "", version: "v1", plural: "serviceaccounts", kind: "ServiceAccount", namespaced: true },
  kubeObject,
);

/** Pods, of which nothing but the metadata is looked at. */
export const PODS: Resource = resource(
  { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true },
  kubeObject,
);

/** Namespaces. */
export const NAMESPACES: Resource = resource(
  { group: "", version: "v1", plural: "namespaces", kind: "Namespace", namespaced: false },
  kubeObject,
);

const configMapSchema = kubeObject.extend({ data: z.record(z.string(), z.string()).optional() });

/** A ConfigMap. `binaryData` is not looked at. */
export type ConfigMap = z.infer<typeof configMapSchema>;

/** ConfigMaps. */
export const CONFIG_MAPS: Resource<ConfigMap> = resource(
  { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true },
  configMapSchema,
);

const eventSchema = kubeObject.extend({
  eventTime: z.string().nullish(),
  type: z.string().optional(),
  reason: z.string().optional(),
  action: z.string().optional(),
  note: z.string().optional(),
  regarding: z.looseObject({
    apiVersion: z.string().optional(),
    kind: z.string().optional(),
    namespace: z.string().optional(),
    name: z.string().optional(),
    uid: z.string().optional(),
  }).optional(),
  reportingController: z.string().optional(),
  reportingInstance: z.string().optional(),
  series: z.looseObject({ count: z.number().int(), lastObservedTime: z.string() }).nullish(),
});

/** `events.k8s.io/v1` Event. Times are RFC 3339 with six fraction digits. */
export type Event = z.infer<typeof eventSchema>;

/** Events: what happened to an object, for people. The server keeps them for a time. */
export const EVENTS: Resource<Event> = resource(
  { group: "events.k8s.io", version: "v1", plural: "events", kind: "Event", namespaced: true },
  eventSchema,
);

const secretSchema = kubeObject.extend({
  type: z.string().optional(),
  immutable: z.boolean().optional(),
  data: z.record(z.string(), z.string()).optional(),
});

/** A Secret. The values of `data` are in base64. */
export type Secret = z.infer<typeof secretSchema>;

/** Secrets. */
export const SECRETS: Resource<Secret> = resource(
  { group: "", version: "v1", plural: "secrets", kind: "Secret", namespaced: true },
  secretSchema,
);
