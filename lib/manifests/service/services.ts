/**
 * How the pods of the service are found: by callers, and by Prometheus.
 *
 * @module
 */

import { LEADER_LABEL, LEADER_LABEL_VALUE } from "../../plugin/leader_label.ts";
import { PLAIN_PORTS } from "./configuration.ts";
import { TLS_PORT_NAME } from "./network_policy.ts";
import type { Installation, Manifest } from "./objects.ts";
import type { ServiceValues } from "./values.ts";

/** The name of the Service that selects every pod: that of the other one, and this behind it. */
const ALL_SUFFIX = "-all";

/** What Services and monitors are made of. */
export interface ServiceWish {
  readonly installation: Installation;
  /** The selector of the Deployment. */
  readonly selector: Readonly<Record<string, string>>;
  readonly values: ServiceValues;
}

/** Says whether the leader's pod is labelled, so that there are two Services. */
export function selectsLeader({ leaderElection: { enabled, label } }: ServiceValues): boolean {
  return enabled && label;
}

/** The names of the Services: the one that callers know first. None where they are switched off. */
export function serviceNames(values: ServiceValues): readonly string[] {
  const { enabled, name } = values.auxiliary.service;
  if (!enabled) return [];
  return selectsLeader(values) ? [name, `${name}${ALL_SUFFIX}`] : [name];
}

/**
 * The Services. With the label of the leader, the one at the address that callers know selects the leader alone, so that
 * they never meet a replica that waits, and another one selects every pod: the keyring escrow and the auxiliary views are
 * served by each. Without it there is one for all (difference 27).
 */
export function services({ installation, selector, values }: ServiceWish): readonly Manifest[] {
  const { namespace, labels } = installation;
  const { type } = values.auxiliary.service;
  const names = serviceNames(values);
  return names.map((name, at) => {
    const last = at === names.length - 1;
    const leader = last ? {} : { [LEADER_LABEL]: LEADER_LABEL_VALUE };
    return {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace, labels },
      spec: {
        type: at === 0 ? type : "ClusterIP",
        selector: { ...selector, ...leader },
        ports: [...portsOf(values), ...(last ? metricsPortOf(values) : [])].map((port) => ({
          ...port,
          protocol: "TCP",
        })),
      },
    };
  });
}

/** The ports of a Service, by name. */
export function portsOf(
  { auxiliary: { service, escrowTLS } }: ServiceValues,
): readonly { readonly name: string; readonly port: number; readonly targetPort: string }[] {
  return [
    { name: "auxiliary", port: service.port, targetPort: "auxiliary" },
    ...(escrowTLS.enabled
      ? [{ name: TLS_PORT_NAME, port: escrowTLS.port, targetPort: TLS_PORT_NAME }]
      : []),
  ];
}

/** The port of the metrics, where a ServiceMonitor looks for it. A caller has no use for it. */
export function metricsPortOf(
  { metrics }: ServiceValues,
): readonly { readonly name: string; readonly port: number; readonly targetPort: string }[] {
  return metrics.serviceMonitor.enabled
    ? [{ name: "metrics", port: PLAIN_PORTS.metrics, targetPort: "metrics" }]
    : [];
}

/** The certificate that cert-manager is to make, for every name of the Services. None where it is not asked for. */
export function certificates({ installation, values }: ServiceWish): readonly Manifest[] {
  const { certificate } = values.auxiliary.escrowTLS;
  const { name, namespace, labels } = installation;
  if (!certificate.enabled) return [];
  const names = serviceNames(values).flatMap((service) => [
    service,
    `${service}.${namespace}`,
    `${service}.${namespace}.svc`,
    `${service}.${namespace}.svc.${values.clusterDomain}`,
  ]);
  return [{
    apiVersion: "cert-manager.io/v1",
    kind: "Certificate",
    metadata: { name: `${name}-tls`, namespace, labels },
    spec: {
      secretName: tlsSecretName(values),
      dnsNames: [...new Set([...names, ...certificate.dnsNames])],
      duration: certificate.duration,
      renewBefore: certificate.renewBefore,
      privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Always" },
      usages: ["digital signature", "key encipherment", "server auth"],
      issuerRef: { group: "cert-manager.io", ...certificate.issuerRef },
    },
  }];
}

/** The Secret with the certificate: the one that is there, or the one that cert-manager makes. */
export function tlsSecretName({ name, auxiliary: { escrowTLS } }: ServiceValues): string {
  return escrowTLS.existingSecret === "" ? `${name}-tls` : escrowTLS.existingSecret;
}

/** What tells a Prometheus operator where the metrics are. */
export function monitors({ installation, selector, values }: ServiceWish): readonly Manifest[] {
  const { name, namespace, labels } = installation;
  const { serviceMonitor, podMonitor } = values.metrics;
  const apiVersion = "monitoring.coreos.com/v1";
  const common = { selector: { matchLabels: selector } };
  const endpoint = { port: "metrics", path: "/metrics" };
  return [
    ...(serviceMonitor.enabled
      ? [{
        apiVersion,
        kind: "ServiceMonitor",
        metadata: { name, namespace, labels: { ...labels, ...serviceMonitor.labels } },
        spec: { ...common, endpoints: [{ ...endpoint, interval: serviceMonitor.interval }] },
      }]
      : []),
    ...(podMonitor.enabled
      ? [{
        apiVersion,
        kind: "PodMonitor",
        metadata: { name, namespace, labels: { ...labels, ...podMonitor.labels } },
        spec: { ...common, podMetricsEndpoints: [{ ...endpoint, interval: podMonitor.interval }] },
      }]
      : []),
  ];
}
