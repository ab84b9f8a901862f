/**
 * Who may reach the pods of the service over the network (deploy-api 15.4).
 *
 * A label says who can connect, and not who is allowed to act: every request still needs its token. Policies add up, so a
 * further policy or a further rule never takes anything away.
 *
 * @module
 */

import { PLAIN_PORTS } from "./configuration.ts";
import type { Installation, Manifest } from "./objects.ts";

/** What a NetworkPolicy is made of. */
export interface NetworkPolicyWish {
  readonly installation: Installation;
  /** The selector of the Deployment. */
  readonly selector: Readonly<Record<string, string>>;
  readonly tlsPort: number;
  /** Further rules, as they are. */
  readonly additionalIngress: readonly Readonly<Record<string, unknown>>[];
}

/** The name that the container gives its TLS port. */
export const TLS_PORT_NAME = "escrow-tls";

/** The NetworkPolicy: the plain ports from anywhere, the TLS port from labelled clients and from the database's pods. */
export function networkPolicy(wish: NetworkPolicyWish): Manifest {
  const { installation: { name, namespace, labels }, selector, tlsPort, additionalIngress } = wish;
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: `${name}-deploy-api`, namespace, labels },
    spec: {
      podSelector: { matchLabels: selector },
      policyTypes: ["Ingress"],
      ingress: [
        { ports: Object.values(PLAIN_PORTS).map(tcp) },
        {
          from: [
            {
              namespaceSelector: { matchLabels: { "shipstream.io/mysql-client": "true" } },
              podSelector: { matchLabels: { "bloodraven.shipstream.io/deploy-client": "true" } },
            },
            {
              namespaceSelector: {},
              podSelector: {
                matchLabels: {
                  "app.kubernetes.io/name": "mysql",
                  "app.kubernetes.io/managed-by": "bloodraven",
                },
              },
            },
          ],
          ports: [tcp(tlsPort)],
        },
        ...additionalIngress,
      ],
    },
  };
}

function tcp(port: number) {
  return { protocol: "TCP", port };
}

/**
 * What a person should know of further rules: those that open another port than the TLS port, or all of them. The plain
 * ports are open to anybody already, so such a rule is most often a mistake.
 */
export function ingressWarnings(wish: NetworkPolicyWish): readonly string[] {
  return wish.additionalIngress.flatMap((rule, at) => {
    const path = `auxiliary.deployAPI.networkPolicy.additionalIngress.${at}`;
    const ports: unknown = rule.ports;
    if (!Array.isArray(ports) || ports.length === 0) {
      return [
        `'${path}' names no port, so it opens every port of the pods: give it the TLS port, ${wish.tlsPort}`,
      ];
    }
    const others = ports.filter((port) => !isTlsPort(port, wish.tlsPort));
    return others.length === 0 ? [] : [
      `'${path}' opens ${
        others.map((port) => JSON.stringify(port)).join(", ")
      }, which is not the TLS port: callers need TCP ${wish.tlsPort}`,
    ];
  });
}

function isTlsPort(entry: unknown, tlsPort: number): boolean {
  const { protocol, port, endPort } = Object(entry);
  return (protocol === undefined || protocol === "TCP") &&
    (port === tlsPort || port === TLS_PORT_NAME) &&
    (endPort === undefined || endPort === tlsPort);
}
