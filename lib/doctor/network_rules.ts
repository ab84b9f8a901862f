/**
 * Whether a NetworkPolicy lets a client in (Kubernetes concept "Network Policies"). Pure functions.
 *
 * Policies add up: pods that no policy selects take everything, and pods that one selects take what any rule of any policy
 * allows. Whether the cluster's network enforces policies at all cannot be read from the API.
 *
 * @module
 */

import type { LabelSelector, NetworkPolicy } from "./kinds.ts";

/** Labels of an object. */
export type Labels = Readonly<Record<string, string>>;

/** Where a client comes from. */
export interface Peer {
  /** The labels of its namespace. Every namespace has `kubernetes.io/metadata.name`. */
  readonly namespaceLabels: Labels;
  readonly podLabels: Labels;
  /** True for a pod in the namespace of the policies. */
  readonly isLocal: boolean;
}

/** The port that it wants to reach, by TCP. */
export interface WantedPort {
  readonly number: number;
  /** What the container calls it; empty when it has no name. */
  readonly name: string;
}

/** The policies that isolate pods with these labels from what comes in. */
export function isolating(
  policies: readonly NetworkPolicy[],
  podLabels: Labels,
): readonly NetworkPolicy[] {
  return policies.filter(({ spec }) =>
    (spec.policyTypes ?? ["Ingress"]).includes("Ingress") && selects(spec.podSelector, podLabels)
  );
}

/**
 * Whether a client may connect. Rules of addresses alone (`ipBlock`) say nothing about pods, and are passed over.
 *
 * @param policies Those that isolate the service, from {@linkcode isolating}; without any, everybody may.
 */
export function lets(policies: readonly NetworkPolicy[], peer: Peer, port: WantedPort): boolean {
  if (policies.length === 0) return true;
  return policies.some(({ spec }) =>
    (spec.ingress ?? []).some(({ from, ports }) =>
      isForPort(ports ?? [], port) &&
      ((from ?? []).length === 0 || (from ?? []).some((one) => isFrom(one, peer)))
    )
  );
}

type Rule = NonNullable<NetworkPolicy["spec"]["ingress"]>[number];

function isForPort(ports: NonNullable<Rule["ports"]>, wanted: WantedPort): boolean {
  return ports.length === 0 || ports.some(({ protocol, port, endPort }) => {
    if ((protocol ?? "TCP") !== "TCP") return false;
    if (port === undefined || port === null) return true;
    if (typeof port === "string") return port === wanted.name;
    return port <= wanted.number && wanted.number <= (endPort ?? port);
  });
}

function isFrom(
  { namespaceSelector, podSelector, ipBlock }: NonNullable<Rule["from"]>[number],
  { namespaceLabels, podLabels, isLocal }: Peer,
): boolean {
  if (ipBlock) return false;
  const ofNamespace = namespaceSelector ? selects(namespaceSelector, namespaceLabels) : isLocal;
  return ofNamespace && selects(podSelector, podLabels);
}

/** Whether a selector selects something with these labels. An absent or empty one selects everything. */
export function selects(selector: LabelSelector | null | undefined, labels: Labels): boolean {
  const { matchLabels, matchExpressions } = selector ?? {};
  const has = (key: string) => Object.hasOwn(labels, key);
  return Object.entries(matchLabels ?? {}).every(([key, value]) =>
    has(key) && labels[key] === value
  ) && (matchExpressions ?? []).every(({ key, operator, values }) => {
    const isIn = has(key) && (values ?? []).includes(labels[key] ?? "");
    switch (operator) {
      case "In":
        return isIn;
      case "NotIn":
        return !isIn;
      case "Exists":
        return has(key);
      case "DoesNotExist":
        return !has(key);
      default:
        return false;
    }
  });
}
