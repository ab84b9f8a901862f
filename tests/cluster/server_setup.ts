/**
 * What etcd and kube-apiserver are started with: ports, files and flags.
 *
 * @module
 */

import type { Authority } from "../../lib/testing/authority.ts";

/** The issuer of service account tokens, and so the audience of a token that names none. */
export const SERVICE_ACCOUNT_ISSUER = "https://kubernetes.default.svc.cluster.local";

/** The file in the cluster's folder with the audit log. */
export const AUDIT_LOG_FILE = "audit.log";

/** Where a cluster listens. */
export interface Ports {
  readonly etcd: number;
  readonly etcdPeer: number;
  readonly apiServer: number;
}

/** Ports that are free now, all different. Another process may still take one before it is used. */
export function freePorts(): Ports {
  const listeners = [0, 1, 2].map(() => Deno.listen({ hostname: "127.0.0.1", port: 0 }));
  const [etcd = 0, etcdPeer = 0, apiServer = 0] = listeners.map((listener) =>
    listener.addr.transport === "tcp" ? listener.addr.port : 0
  );
  for (const listener of listeners) listener.close();
  return { etcd, etcdPeer, apiServer };
}

/** Writes the certificates and the audit policy that the flags name. */
export async function writeServerFiles(folder: string, authority: Authority): Promise<void> {
  const server = await authority.issue({
    commonName: "kube-apiserver",
    dnsNames: ["localhost", "kubernetes.default.svc"],
    ipAddresses: ["127.0.0.1"],
  });
  // Its key signs tokens. The server reads the public half from a certificate as well.
  const signer = await authority.issue({ commonName: "service-accounts" });
  const policy = {
    apiVersion: "audit.k8s.io/v1",
    kind: "Policy",
    // One line a request, when it is over; a watch is never over, so its start counts.
    omitStages: ["RequestReceived"],
    rules: [{ level: "Metadata" }],
  };
  const files = {
    "ca.crt": authority.caPem,
    "server.crt": server.certPem,
    "server.key": server.keyPem,
    "service-accounts.crt": signer.certPem,
    "service-accounts.key": signer.keyPem,
    "audit-policy.json": JSON.stringify(policy),
  };
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(`${folder}/${name}`, text, { mode: 0o600 });
  }
}

/** The flags of etcd. Nothing is synced to the disk: the data dies with the test. */
export function etcdFlags(folder: string, ports: Ports): string[] {
  const client = `http://127.0.0.1:${ports.etcd}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return [
    `--data-dir=${folder}/etcd`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    "--unsafe-no-fsync",
  ];
}

/** The flags of kube-apiserver. @param audit True to write {@linkcode AUDIT_LOG_FILE}. */
export function apiServerFlags(folder: string, ports: Ports, audit: boolean): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
    `--cert-dir=${folder}/certificates`,
    `--tls-cert-file=${folder}/server.crt`,
    `--tls-private-key-file=${folder}/server.key`,
    `--client-ca-file=${folder}/ca.crt`,
    `--service-account-issuer=${SERVICE_ACCOUNT_ISSUER}`,
    `--service-account-key-file=${folder}/service-accounts.crt`,
    `--service-account-signing-key-file=${folder}/service-accounts.key`,
    "--authorization-mode=RBAC",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--bind-address=127.0.0.1",
    `--secure-port=${ports.apiServer}`,
    "--advertise-address=127.0.0.1",
    "--endpoint-reconciler-type=none",
    ...(audit
      ? [
        `--audit-policy-file=${folder}/audit-policy.json`,
        `--audit-log-path=${folder}/${AUDIT_LOG_FILE}`,
        // A request is written down before its answer goes out, so that a test sees its own.
        "--audit-log-mode=blocking-strict",
      ]
      : []),
  ];
}
