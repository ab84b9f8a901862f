/**
 * What NetworkPolicies allow, by the rules of `networking.k8s.io/v1`: for tests, since no network that enforces them runs
 * here. Addresses (`ipBlock`) are compared with IPv4 alone.
 *
 * - A pod that no policy with `Ingress` selects takes everything.
 * - A pod that one selects takes what a rule of any of them allows: policies and rules add up, and none takes away.
 * - A rule without `from` is for every peer, and one without `ports` for every port.
 * - In one entry of `from`, a selector of namespaces and one of pods must both match. Without the first, only pods of the
 *   policy's own namespace match.
 *
 * @module
 */

import { z } from "zod";

const labels = z.record(z.string(), z.string());

const labelSelector = z.strictObject({
  matchLabels: labels.default({}),
  matchExpressions: z.array(z.strictObject({
    key: z.string(),
    operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]),
    values: z.array(z.string()).default([]),
  })).default([]),
});

const peerSchema = z.strictObject({
  namespaceSelector: labelSelector.optional(),
  podSelector: labelSelector.optional(),
  ipBlock: z.strictObject({ cidr: z.string(), except: z.array(z.string()).default([]) }).optional(),
});

const portSchema = z.strictObject({
  protocol: z.enum(["TCP", "UDP", "SCTP"]).default("TCP"),
  port: z.union([z.number(), z.string()]).optional(),
  endPort: z.number().optional(),
});

/** A policy, as far as it is about what comes in. */
export const policySchema = z.looseObject({
  metadata: z.looseObject({ namespace: z.string() }),
  spec: z.strictObject({
    podSelector: labelSelector,
    policyTypes: z.array(z.string()).default(["Ingress"]),
    ingress: z.array(z.strictObject({
      from: z.array(peerSchema).default([]),
      ports: z.array(portSchema).default([]),
    })).default([]),
  }),
});

/** A policy. */
export type Policy = z.output<typeof policySchema>;

type Selector = z.output<typeof labelSelector>;

/** Somebody who connects. */
export interface Peer {
  readonly namespace: string;
  readonly namespaceLabels?: Readonly<Record<string, string>>;
  readonly podLabels?: Readonly<Record<string, string>>;
  /** IPv4. */
  readonly address?: string;
}

/** The pod that is connected to. */
export interface Target {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The ports of its containers, by name. */
  readonly ports: Readonly<Record<string, number>>;
}

/** A connection. */
export interface Connection {
  readonly peer: Peer;
  readonly target: Target;
  readonly port: number;
  /** @default {"TCP"} */
  readonly protocol?: "TCP" | "UDP" | "SCTP";
}

/** Says whether the policies of a cluster allow a connection. */
export function allows(policies: readonly Policy[], connection: Connection): boolean {
  const { target } = connection;
  const isolating = policies.filter(({ metadata, spec }) =>
    metadata.namespace === target.namespace && spec.policyTypes.includes("Ingress") &&
    selects(spec.podSelector, target.labels)
  );
  return isolating.length === 0 ||
    isolating.some(({ metadata, spec }) =>
      spec.ingress.some(({ from, ports }) =>
        (from.length === 0 ||
          from.some((peer) => matchesPeer(peer, metadata.namespace, connection.peer))) &&
        (ports.length === 0 || ports.some((port) => matchesPort(port, connection)))
      )
    );
}

function matchesPeer(
  { namespaceSelector, podSelector, ipBlock }: z.output<typeof peerSchema>,
  namespace: string,
  peer: Peer,
): boolean {
  if (ipBlock !== undefined) {
    const { address } = peer;
    return address !== undefined && isWithin(ipBlock.cidr, address) &&
      !ipBlock.except.some((cidr) => isWithin(cidr, address));
  }
  const inNamespace = namespaceSelector === undefined
    ? peer.namespace === namespace
    : selects(namespaceSelector, {
      "kubernetes.io/metadata.name": peer.namespace,
      ...peer.namespaceLabels,
    });
  return inNamespace && (podSelector === undefined || selects(podSelector, peer.podLabels ?? {}));
}

function matchesPort(
  { protocol, port, endPort }: z.output<typeof portSchema>,
  connection: Connection,
): boolean {
  if (protocol !== (connection.protocol ?? "TCP")) return false;
  if (port === undefined) return true;
  if (typeof port === "string") return connection.target.ports[port] === connection.port;
  return connection.port >= port && connection.port <= (endPort ?? port);
}

function selects(
  { matchLabels, matchExpressions }: Selector,
  found: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(matchLabels).every(([key, value]) => found[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => {
      const value = found[key];
      switch (operator) {
        case "Exists":
          return value !== undefined;
        case "DoesNotExist":
          return value === undefined;
        case "In":
          return value !== undefined && values.includes(value);
        case "NotIn":
          return value === undefined || !values.includes(value);
      }
    });
}

function isWithin(cidr: string, address: string): boolean {
  const [base = "", length = "32"] = cidr.split("/");
  const shift = 2 ** (32 - Number(length));
  return Math.floor(numberOf(base) / shift) === Math.floor(numberOf(address) / shift);
}

function numberOf(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}
