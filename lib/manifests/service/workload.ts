/**
 * The pods of the service: its Deployment, the ConfigMap that they read, and what protects them from a drain.
 *
 * @module
 */

import { gracePeriodSeconds } from "../grace_period.ts";
import { sha256Hex } from "../../records/sha256.ts";
import {
  CONFIG_FILE,
  CONFIG_FOLDER,
  PLAIN_PORTS,
  type ServiceConfiguration,
  TLS_FOLDER,
} from "./configuration.ts";
import { TLS_PORT_NAME } from "./network_policy.ts";
import { accountName, type Installation, type Manifest } from "./objects.ts";
import { tlsSecretName } from "./services.ts";
import type { ServiceValues } from "./values.ts";

/** What the workload is made of. */
export interface WorkloadWish {
  readonly installation: Installation;
  /** The selector of the Deployment. It can never be changed. */
  readonly selector: Readonly<Record<string, string>>;
  readonly values: ServiceValues;
  readonly configuration: ServiceConfiguration;
  /** The tag of the image where the values give none: the version of this program. */
  readonly version: string;
}

/** The user and the group of the process: nobody. The files of the TLS Secret are for this group. */
const NOBODY = 65_534;

/** Seconds beside what the process may take for its stop: for the kubelet and the runtime. */
const STOP_BUFFER_SECONDS = 10;

/** Owner and group may read: the octal 440 as the API has it. */
const READ_ONLY_MODE = 0o440;

/** The seconds that a pod needs for an orderly stop. */
export function neededGraceSeconds({ reading }: ServiceConfiguration): number {
  const { prestop_grace_secs, shutdown_timeout_secs } = reading.config.host;
  return gracePeriodSeconds({
    preStopSeconds: 0,
    prestopGraceSeconds: prestop_grace_secs,
    shutdownTimeoutSeconds: shutdown_timeout_secs,
    bufferSeconds: STOP_BUFFER_SECONDS,
  });
}

/** The ConfigMap with the configuration; none when there is nothing in it. */
export function configMaps({ installation, configuration }: WorkloadWish): readonly Manifest[] {
  const { name, namespace, labels } = installation;
  if (configuration.file === null) return [];
  return [{
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace, labels },
    data: { [CONFIG_FILE]: configuration.file },
  }];
}

/** Lets a drain take one replica at a time. With one replica it would only stand in the way of the drain. */
export function disruptionBudgets(
  { installation, selector, values }: WorkloadWish,
): readonly Manifest[] {
  const { name, namespace, labels } = installation;
  if (!values.podDisruptionBudget.enabled || values.replicaCount < 2) return [];
  return [{
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace, labels },
    spec: { maxUnavailable: 1, selector: { matchLabels: selector } },
  }];
}

/** The Deployment. */
export function deployment(wish: WorkloadWish): Manifest {
  const { installation: { name, namespace, labels }, selector, values, configuration } = wish;
  const { file } = configuration;
  const annotations = {
    ...values.podAnnotations,
    // A pod reads its configuration when it starts: a changed one must start new pods.
    ...(file === null ? {} : { "holdfast.shipstream.io/config-hash": sha256Hex(file) }),
  };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace, labels },
    spec: {
      replicas: values.replicaCount,
      strategy: strategyOf(values),
      selector: { matchLabels: selector },
      template: {
        metadata: {
          labels: { ...values.podLabels, ...labels },
          ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
        },
        spec: podSpec(wish),
      },
    },
  };
}

/** A new pod is ready before an old one ends, so that somebody can take over. */
function strategyOf({ strategy }: ServiceValues) {
  return strategy === "Recreate"
    ? { type: strategy }
    : { type: strategy, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };
}

function podSpec(wish: WorkloadWish) {
  const { values, configuration } = wish;
  const { pullSecrets } = values.image;
  return {
    serviceAccountName: accountName(values),
    automountServiceAccountToken: true,
    // Variables about other Services of the namespace would only be in the way.
    enableServiceLinks: false,
    terminationGracePeriodSeconds: values.terminationGracePeriodSeconds ??
      neededGraceSeconds(configuration),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: NOBODY,
      runAsGroup: NOBODY,
      fsGroup: NOBODY,
      seccompProfile: { type: "RuntimeDefault" },
    },
    ...(pullSecrets.length === 0
      ? {}
      : { imagePullSecrets: pullSecrets.map((name) => ({ name })) }),
    ...placementOf(wish),
    containers: [container(wish)],
    ...volumesOf(wish),
  };
}

function container(wish: WorkloadWish) {
  const { values, configuration, version } = wish;
  const { image, auxiliary: { escrowTLS }, resources } = values;
  return {
    name: "holdfast",
    image: image.digest === ""
      ? `${image.repository}:${image.tag === "" ? version : image.tag}`
      : `${image.repository}@${image.digest}`,
    imagePullPolicy: image.pullPolicy,
    args: ["serve"],
    env: configuration.env,
    ports: [
      ...Object.entries(PLAIN_PORTS),
      ...(escrowTLS.enabled ? [[TLS_PORT_NAME, escrowTLS.port] as const] : []),
    ].map(([name, containerPort]) => ({ name, containerPort, protocol: "TCP" })),
    livenessProbe: {
      httpGet: { path: "/healthz", port: "health" },
      initialDelaySeconds: 15,
      periodSeconds: 20,
      timeoutSeconds: 5,
      failureThreshold: 3,
    },
    readinessProbe: {
      httpGet: { path: "/readyz", port: "health" },
      initialDelaySeconds: 5,
      periodSeconds: 10,
      timeoutSeconds: 5,
      failureThreshold: 3,
    },
    resources,
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ["ALL"] },
    },
    ...mountsOf(wish),
  };
}

function mountsOf({ values, configuration }: WorkloadWish) {
  const volumeMounts = [
    ...(values.auxiliary.escrowTLS.enabled
      ? [{ name: TLS_PORT_NAME, mountPath: TLS_FOLDER, readOnly: true }]
      : []),
    ...(configuration.file === null
      ? []
      : [{ name: "config", mountPath: CONFIG_FOLDER, readOnly: true }]),
  ];
  return volumeMounts.length === 0 ? {} : { volumeMounts };
}

function volumesOf({ installation, values, configuration }: WorkloadWish) {
  const volumes = [
    ...(values.auxiliary.escrowTLS.enabled
      ? [{
        name: TLS_PORT_NAME,
        secret: { secretName: tlsSecretName(values), defaultMode: READ_ONLY_MODE },
      }]
      : []),
    ...(configuration.file === null
      ? []
      : [{ name: "config", configMap: { name: installation.name } }]),
  ];
  return volumes.length === 0 ? {} : { volumes };
}

function placementOf({ selector, values }: WorkloadWish) {
  const { topologySpread, nodeSelector, tolerations, affinity, priorityClassName } = values;
  return {
    ...(topologySpread.enabled
      ? {
        topologySpreadConstraints: ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
          .map((topologyKey) => ({
            maxSkew: 1,
            topologyKey,
            whenUnsatisfiable: topologySpread.whenUnsatisfiable,
            labelSelector: { matchLabels: selector },
            // The pods of the version that goes must not push the new ones aside.
            matchLabelKeys: ["pod-template-hash"],
          })),
      }
      : {}),
    ...(Object.keys(nodeSelector).length === 0 ? {} : { nodeSelector }),
    ...(tolerations.length === 0 ? {} : { tolerations }),
    ...(Object.keys(affinity).length === 0 ? {} : { affinity }),
    ...(priorityClassName === "" ? {} : { priorityClassName }),
  };
}
