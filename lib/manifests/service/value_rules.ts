/**
 * What values must keep to together: the render failures of the reference chart (deploy-api 15.2), and ours.
 *
 * @module
 */

import { LEADER_LABEL } from "../../plugin/leader_label.ts";
import { ownedKeysIn, PLAIN_PORTS } from "./configuration.ts";
import { metricsPortOf, portsOf } from "./services.ts";
import type { ServiceValues } from "./values.ts";

/** Labels that selectors use. A value must not write others in their place. */
export const NAME_LABEL = "app.kubernetes.io/name";
/** Tells installations in one namespace apart. */
export const INSTANCE_LABEL = "app.kubernetes.io/instance";
/** Tells who wrote an object. */
export const MANAGED_BY_LABEL = "app.kubernetes.io/managed-by";

const OWN_LABELS: readonly string[] = [NAME_LABEL, INSTANCE_LABEL, MANAGED_BY_LABEL, LEADER_LABEL];

type ValueRule = (values: ServiceValues) => readonly string[];

/** Refuses `key=true` as it needs something else. */
function requires(key: string, needed: string): string {
  return `Cannot render ${key}=true as it requires ${needed}=true`;
}

const deployApi: ValueRule = ({ auxiliary: { deployAPI, escrowTLS }, leaderElection }) => {
  const key = "auxiliary.deployAPI.enabled";
  if (!deployAPI.enabled) {
    return deployAPI.networkPolicy.enabled
      ? [requires("auxiliary.deployAPI.networkPolicy.enabled", key)]
      : [];
  }
  return [
    ...(escrowTLS.enabled ? [] : [requires(key, "auxiliary.escrowTLS.enabled")]),
    ...(leaderElection.enabled ? [] : [requires(key, "leaderElection.enabled")]),
    ...(deployAPI.audience.trim() === ""
      ? [
        `Cannot render the deployment API as auxiliary.deployAPI.audience must not be empty: current value is ${
          JSON.stringify(deployAPI.audience)
        }`,
      ]
      : []),
  ];
};

const tls: ValueRule = ({ auxiliary: { escrowTLS, service } }) => {
  const { enabled, existingSecret, certificate } = escrowTLS;
  const key = "auxiliary.escrowTLS.certificate.enabled";
  if (!enabled) return certificate.enabled ? [requires(key, "auxiliary.escrowTLS.enabled")] : [];
  if (!certificate.enabled) {
    return existingSecret.trim() === ""
      ? [
        "Cannot render the TLS port as auxiliary.escrowTLS.existingSecret is required: name a Secret with tls.crt and tls.key, or set auxiliary.escrowTLS.certificate.enabled=true",
      ]
      : [];
  }
  return [
    ...(certificate.issuerRef.name === ""
      ? [`Cannot render ${key}=true as auxiliary.escrowTLS.certificate.issuerRef.name is required`]
      : []),
    ...(service.enabled || certificate.dnsNames.length > 0 ? [] : [
      `Cannot render ${key}=true as there is no name to certify: set auxiliary.service.enabled=true, or give auxiliary.escrowTLS.certificate.dnsNames`,
    ]),
  ];
};

const parts: ValueRule = ({ keyringEscrow, plannedOperations, metrics, auxiliary }) => [
  ...(keyringEscrow.enabled && !auxiliary.escrowTLS.enabled
    ? [requires("keyringEscrow.enabled", "auxiliary.escrowTLS.enabled")]
    : []),
  ...(plannedOperations.enabled && !auxiliary.deployAPI.enabled
    ? [requires("plannedOperations.enabled", "auxiliary.deployAPI.enabled")]
    : []),
  ...(metrics.serviceMonitor.enabled && !auxiliary.service.enabled
    ? [requires("metrics.serviceMonitor.enabled", "auxiliary.service.enabled")]
    : []),
];

/** A port that two listeners of a pod, or two ports of a Service, would have. */
const ports: ValueRule = (values) => {
  const { escrowTLS } = values.auxiliary;
  const inPod = [
    ...Object.entries(PLAIN_PORTS),
    ...(escrowTLS.enabled ? [["auxiliary.escrowTLS.port", escrowTLS.port] as const] : []),
  ];
  const key: Readonly<Record<string, string>> = {
    auxiliary: "auxiliary.service.port",
    "escrow-tls": "auxiliary.escrowTLS.port",
  };
  const inService = [...portsOf(values), ...metricsPortOf(values)].map(({ name, port }) =>
    [key[name] ?? name, port] as const
  );
  return [
    ...twice("a pod", inPod),
    ...(values.auxiliary.service.enabled ? twice("a Service", inService) : []),
  ];
};

function twice(
  where: string,
  entries: readonly (readonly [name: string, port: number])[],
): readonly string[] {
  return entries.flatMap(([name, port], at) => {
    const first = entries.slice(0, at).find(([, other]) => other === port);
    return first === undefined ? [] : [
      `Cannot render ${where} as port ${port} is there twice: for ${
        first[0]
      } and for ${name}; change one of the two`,
    ];
  });
}

const labels: ValueRule = ({ labels, podLabels }) =>
  Object.entries({ labels, podLabels }).flatMap(([value, given]) =>
    OWN_LABELS.filter((label) => Object.hasOwn(given, label)).map((label) =>
      `Cannot render '${value}' as it must not have the label ${label}: selectors use it`
    )
  );

const config: ValueRule = (values) =>
  [...ownedKeysIn(values)].map(([key, value]) =>
    `Cannot render 'config.${key}' as '${value}' says it: set that value instead`
  );

const account: ValueRule = ({ serviceAccount: { create, name } }) =>
  create || name !== ""
    ? []
    : ["Cannot render serviceAccount.create=false as serviceAccount.name is required"];

const RULES: readonly ValueRule[] = [deployApi, tls, parts, ports, labels, config, account];

/** What is wrong with values that are each right by themselves; nothing when they can be rendered. */
export function valueProblems(values: ServiceValues): readonly string[] {
  return RULES.flatMap((rule) => rule(values));
}
