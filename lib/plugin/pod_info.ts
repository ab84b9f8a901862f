/**
 * Who this pod is, as the Downward API tells it: kubernetes-plugin 3.
 *
 * @module
 */

import { SERVICE_ACCOUNT_DIRECTORY } from "../kube/in_cluster.ts";

/** What a pod knows of itself. Everything may be missing; a blank value counts as missing. */
export interface PodInfo {
  /** From `POD_NAME`, else `HOSTNAME`. */
  readonly name?: string;
  /** From `POD_NAMESPACE`, else the service account's `namespace` file. */
  readonly namespace?: string;
  /** From `POD_UID`. */
  readonly uid?: string;
  /** From `NODE_NAME`. */
  readonly nodeName?: string;
  /** From `POD_IP`. */
  readonly ip?: string;
  /** From `POD_SERVICE_ACCOUNT`. */
  readonly serviceAccount?: string;
  /** From the file `labels` of the Downward API volume; empty without one. */
  readonly labels: Readonly<Record<string, string>>;
  /** True in a cluster: `KUBERNETES_SERVICE_HOST` is set. */
  readonly inCluster: boolean;
}

/** Where the information is from. */
export interface PodInfoSource {
  /** The environment variables. */
  readonly env: Readonly<Record<string, string>>;
  /** The text of a file, or `undefined` where there is none. One that cannot be read counts as missing. */
  readonly readTextFile: (path: string) => string | undefined;
  /** @default {"/var/run/secrets/kubernetes.io/serviceaccount"} */
  readonly serviceAccountDirectory?: string;
  /** Where the Downward API volume is mounted. @default {"/etc/podinfo"} */
  readonly podInfoDirectory?: string;
}

/** Reads what there is. It never throws: a process without any of it is not in a pod. */
export function readPodInfo(source: PodInfoSource): PodInfo {
  const {
    env,
    serviceAccountDirectory = SERVICE_ACCOUNT_DIRECTORY,
    podInfoDirectory = "/etc/podinfo",
  } = source;
  const file = (path: string) => {
    try {
      return source.readTextFile(path);
    } catch {
      return undefined;
    }
  };
  const known = {
    name: filled(env.POD_NAME) ?? filled(env.HOSTNAME),
    namespace: filled(env.POD_NAMESPACE) ?? filled(file(`${serviceAccountDirectory}/namespace`)),
    uid: filled(env.POD_UID),
    nodeName: filled(env.NODE_NAME),
    ip: filled(env.POD_IP),
    serviceAccount: filled(env.POD_SERVICE_ACCOUNT),
  };
  return {
    ...known,
    labels: parseLabels(file(`${podInfoDirectory}/labels`) ?? ""),
    inCluster: filled(env.KUBERNETES_SERVICE_HOST) !== undefined,
  };
}

/**
 * Reads the label file: one `key="value"` a line, the value quoted as Go does it. What does not decode is kept as it is;
 * a line without `=` or without a key is skipped.
 */
export function parseLabels(text: string): Readonly<Record<string, string>> {
  const labels: [string, string][] = [];
  for (const line of text.split("\n")) {
    const equals = line.indexOf("=");
    const key = line.slice(0, Math.max(0, equals)).trim();
    if (key !== "") labels.push([key, unquote(line.slice(equals + 1).trim())]);
  }
  return Object.fromEntries(labels);
}

/** JSON knows the escapes that Go uses for ordinary text; a value with others is shown as it is written. */
function unquote(quoted: string): string {
  try {
    const value: unknown = JSON.parse(quoted);
    return typeof value === "string" ? value : quoted;
  } catch {
    return quoted;
  }
}

function filled(text: string | undefined): string | undefined {
  const trimmed = text?.trim() ?? "";
  return trimmed === "" ? undefined : trimmed;
}
