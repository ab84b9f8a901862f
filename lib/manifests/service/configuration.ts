/**
 * The configuration that the rendered pods start with: environment variables for what the values say, by the names of
 * the contract where it has one (deploy-api 15.2), and a ConfigMap with `holdfast.yaml` for further keys.
 *
 * What comes out is read here by the very loader of the program, so that no manifest is rendered for pods that would
 * refuse to start.
 *
 * @module
 */

import { stringify } from "yaml";
import { type ConfigReading, readConfig, servicePurpose } from "../../config/layers.ts";
import { isMapping } from "../mapping.ts";
import type { ServiceValues } from "./values.ts";

/** A variable of a container. */
export type EnvVar =
  | { readonly name: string; readonly value: string }
  | {
    readonly name: string;
    readonly valueFrom: { readonly fieldRef: { readonly fieldPath: string } };
  };

/** Where the certificate and its key are mounted (deploy-api 15.2). */
export const TLS_FOLDER = "/etc/bloodraven/escrow-tls";

/** Where the file with further keys is mounted. */
export const CONFIG_FOLDER = "/etc/holdfast";

/** That file. */
export const CONFIG_FILE = "holdfast.yaml";

/** The plain ports, which the contract fixes (deploy-api 14). */
export const PLAIN_PORTS = { metrics: 8080, health: 8081, auxiliary: 8082 } as const;

/** Keys that a value sets, so that `config` must not set them too. */
const OWNED_KEYS: Readonly<Record<string, string>> = {
  "deploy_api.enabled": "auxiliary.deployAPI.enabled",
  "deploy_api.audience": "auxiliary.deployAPI.audience",
  "tls": "auxiliary.escrowTLS",
  "listen": "auxiliary.escrowTLS.port",
  "auxiliary.ws_allowed_origins": "auxiliary.wsAllowedOrigins",
  "auxiliary.ws_max_clients": "auxiliary.wsMaxClients",
  "planned_operations.enabled": "plannedOperations.enabled",
  "kubernetes.namespace": "namespace",
  "kubernetes.leader_election.enabled": "leaderElection.enabled",
  "kubernetes.leader_election.lease_name": "leaderElection.leaseName",
  "kubernetes.leader_election.label_leader": "leaderElection.label",
};

/** What the pods start with. */
export interface ServiceConfiguration {
  readonly env: readonly EnvVar[];
  /** The text of {@linkcode CONFIG_FILE}; `null` when there are no further keys. */
  readonly file: string | null;
  /** What the program makes of both. */
  readonly reading: ConfigReading;
}

/** The configuration of the pods. */
export function serviceConfiguration(values: ServiceValues): ServiceConfiguration {
  const file = Object.keys(values.config).length === 0 ? null : stringify(values.config);
  const settings = new Map([
    ...settingsOf(values),
    ...(file === null ? [] : [["AUTUMN_MANIFEST_DIR", CONFIG_FOLDER] as const]),
  ]);
  const reading = readConfig({
    env: Object.fromEntries(settings),
    readTextFile: (path) => path === `${CONFIG_FOLDER}/${CONFIG_FILE}` ? file ?? "" : undefined,
    purpose: servicePurpose,
  });
  const env: readonly EnvVar[] = [
    ...fieldsOf({
      POD_NAME: "metadata.name",
      POD_NAMESPACE: "metadata.namespace",
      POD_UID: "metadata.uid",
      NODE_NAME: "spec.nodeName",
    }),
    ...[...settings].map(([name, value]) => ({ name, value })),
  ];
  return { env, file, reading };
}

/** The keys of `config` that a value sets, with that value. */
export function ownedKeysIn({ config }: ServiceValues): ReadonlyMap<string, string> {
  const found = Object.entries(OWNED_KEYS).filter(([key]) =>
    key.split(".").reduce<unknown>(
      (value, name) => isMapping(value) ? value[name] : undefined,
      config,
    ) !== undefined
  );
  return new Map(found);
}

function* settingsOf(values: ServiceValues): Iterable<readonly [string, string]> {
  const { auxiliary, leaderElection, plannedOperations } = values;
  const { deployAPI, escrowTLS } = auxiliary;
  if (deployAPI.enabled) {
    yield ["BLOODRAVEN_DEPLOY_API_ENABLED", "true"];
    yield ["BLOODRAVEN_DEPLOY_API_AUDIENCE", deployAPI.audience];
  }
  if (escrowTLS.enabled) {
    yield ["BLOODRAVEN_ESCROW_TLS_ADDR", `:${escrowTLS.port}`];
    yield ["BLOODRAVEN_ESCROW_TLS_CERT_FILE", `${TLS_FOLDER}/tls.crt`];
    yield ["BLOODRAVEN_ESCROW_TLS_KEY_FILE", `${TLS_FOLDER}/tls.key`];
  }
  yield ["BLOODRAVEN_WS_ALLOWED_ORIGINS", auxiliary.wsAllowedOrigins];
  yield ["BLOODRAVEN_WS_MAX_CLIENTS", String(auxiliary.wsMaxClients)];
  const election = "HOLDFAST__KUBERNETES__LEADER_ELECTION__";
  yield [`${election}ENABLED`, String(leaderElection.enabled)];
  if (leaderElection.enabled) {
    yield [`${election}LEASE_NAME`, leaderElection.leaseName];
    yield [`${election}LABEL_LEADER`, String(leaderElection.label)];
  }
  if (plannedOperations.enabled) yield ["HOLDFAST__PLANNED_OPERATIONS__ENABLED", "true"];
}

function fieldsOf(fields: Readonly<Record<string, string>>): readonly EnvVar[] {
  return Object.entries(fields).map(([name, fieldPath]) => ({
    name,
    valueFrom: { fieldRef: { fieldPath } },
  }));
}
