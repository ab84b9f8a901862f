/**
 * The Deployment of an application.
 *
 * @module
 */

import { gracePeriodSeconds } from "../grace_period.ts";
import { appMetadata, NAME_LABEL } from "../metadata.ts";
import { containerEnvironment } from "./environment.ts";
import type { App } from "./input.ts";

/** The name of the container's port. The Service and the probes use it, so that the number stands in one place. */
export const PORT_NAME = "http";

/** The file of the Downward API with the pod's labels, where `PodInfo` looks for it (kubernetes-plugin 3). */
const POD_INFO = { volume: "podinfo", directory: "/etc/podinfo", file: "labels" } as const;

/** `apps/v1` Deployment, as it is made here. */
export type Deployment = ReturnType<typeof deploymentOf>;

/**
 * Makes the Deployment.
 *
 * @param app The application.
 * @param hasRules Whether its service account has rights: then it needs its token, also where the plugin is not on.
 */
export function deploymentOf(app: App, hasRules: boolean) {
  const metadata = appMetadata(app.name, app.namespace);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: {
      replicas: app.replicas,
      selector: { matchLabels: { [NAME_LABEL]: app.name } },
      template: {
        metadata: { labels: metadata.labels },
        spec: {
          serviceAccountName: app.name,
          // A client in a cluster needs the token even where no rule is needed: it reads the server's version.
          automountServiceAccountToken: app.apiAccess || hasRules,
          terminationGracePeriodSeconds: gracePeriodSeconds(app),
          securityContext: {
            runAsNonRoot: true,
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [container(app)],
          volumes: [{
            name: POD_INFO.volume,
            downwardAPI: {
              items: [{ path: POD_INFO.file, fieldRef: { fieldPath: "metadata.labels" } }],
            },
          }],
        },
      },
    },
  } as const;
}

function container(app: App) {
  return {
    name: "app",
    image: app.image,
    ports: [{ name: PORT_NAME, containerPort: app.port }],
    env: containerEnvironment(app),
    volumeMounts: [{ name: POD_INFO.volume, mountPath: POD_INFO.directory, readOnly: true }],
    livenessProbe: probe(app.livePath, 10, 3),
    // One 503 is enough to leave the rotation: the host answers it before it stops to listen.
    readinessProbe: probe(app.readyPath, 5, 1),
    startupProbe: probe(app.startupPath, 2, 30),
    // The kubelet itself sleeps, so the image needs no shell. Before Kubernetes 1.33 it takes no sleep of 0.
    ...(app.preStopSeconds === 0
      ? {}
      : { lifecycle: { preStop: { sleep: { seconds: app.preStopSeconds } } } }),
    securityContext: {
      allowPrivilegeEscalation: false,
      runAsNonRoot: true,
      ...(app.readOnlyRootFilesystem ? { readOnlyRootFilesystem: true } : {}),
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    },
  } as const;
}

function probe(path: string, periodSeconds: number, failureThreshold: number) {
  return { httpGet: { path, port: PORT_NAME }, periodSeconds, failureThreshold } as const;
}
