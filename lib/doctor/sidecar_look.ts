/**
 * Looks whether the sidecars of encrypted groups trust the authority that signed the service's certificate: they bring
 * keyrings to the same port (deploy-api 13, 14).
 *
 * They trust `ca.crt` of the Secret that the group's `spec.tls` names. Where it names none, what their pods mount is
 * compared. Then it cannot be seen which of the mounted files a sidecar reads, nor what its image trusts by itself.
 *
 * @module
 */

import type { X509Certificate } from "node:crypto";
import { z } from "zod";
import { isEncrypted } from "../escrow/group.ts";
import {
  FAILOVER_GROUP_LABEL,
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
} from "../group/types.ts";
import type { KubeApi } from "../kube/api.ts";
import { CONFIG_MAPS, SECRETS } from "../kube/resources.ts";
import type { SidecarFacts, Sight } from "./cluster_facts.ts";
import { MOUNTING_PODS, type Pod } from "./kinds.ts";
import { see, whenSeen } from "./sight.ts";
import { certificatesOf, isSignedBy } from "./trust.ts";

/** The labels of the database's pods (deploy-api 15.4). */
const DATABASE_PODS = "app.kubernetes.io/name=mysql,app.kubernetes.io/managed-by=bloodraven";

/** In every namespace, and in every pod with a token: the authority of the API server. */
const API_AUTHORITY = "kube-root-ca.crt";

/** A key that names certificates. Of a Secret, nothing else is read. */
const CERTIFICATE_KEY = /\.(crt|pem)$/;

/** Looks at all groups that are encrypted at rest. @param chain The service's certificate, and what stands beside it. */
export async function lookAtSidecars(
  api: KubeApi,
  chain: readonly X509Certificate[],
  signal: AbortSignal,
): Promise<Sight<readonly SidecarFacts[]>> {
  const listed = await see(() => api.list(MYSQL_FAILOVER_GROUPS, { signal }));
  if (listed.type !== "seen") return whenSeen(listed, () => []);
  const facts: SidecarFacts[] = [];
  for (const group of listed.value.items.filter(hasKeyrings)) {
    const { name, namespace = "" } = group.metadata;
    const secret = trustedSecretOf(group);
    const pods = await see(() =>
      api.list(MOUNTING_PODS, { namespace, labelSelector: DATABASE_PODS, signal })
    );
    const own = pods.type === "seen"
      ? pods.value.items.filter(({ metadata }) =>
        (metadata.labels?.[FAILOVER_GROUP_LABEL] ?? name) === name
      )
      : [];
    const authorities = secret === ""
      ? await authoritiesOf(api, namespace, own, signal)
      : certificatesOf(await secretText(api, { namespace, name: secret }, "ca.crt", signal));
    facts.push({
      group: `${namespace}/${name}`,
      secret,
      authorities: authorities.length,
      isTrusted: isSignedBy(chain, authorities),
      pods: whenSeen(pods, () => own.length),
    });
  }
  return { type: "seen", value: facts };
}

/** It is encrypted, or its operator reports how far that is. */
function hasKeyrings({ metadata, spec, status }: MysqlFailoverGroup): boolean {
  return isEncrypted({ metadata, spec }) ||
    (status?.conditions ?? []).some(({ type }) => type === "EncryptionAtRestReady");
}

/** `tls` names its Secret in a member that has `secret` in its name: the contract leaves its form open. */
const tlsSchema = z.looseObject({
  tls: z.record(z.string(), z.union([z.string(), z.looseObject({ name: z.string() })]).catch(""))
    .optional().catch(undefined),
});

/** The name of the Secret in a group's `spec.tls`; empty when it names none. */
function trustedSecretOf({ spec }: MysqlFailoverGroup): string {
  const { tls = {} } = tlsSchema.safeParse(spec ?? {}).data ?? {};
  const [, named = ""] = Object.entries(tls).find(([key]) => /secret/i.test(key)) ?? [];
  return typeof named === "string" ? named : named.name;
}

async function secretText(
  api: KubeApi,
  name: { readonly namespace: string; readonly name: string },
  key: string,
  signal: AbortSignal,
): Promise<string> {
  const secret = await see(() => api.get(SECRETS, name, { signal }));
  return secret.type === "seen" ? decoded(secret.value.data?.[key]) : "";
}

async function authoritiesOf(
  api: KubeApi,
  namespace: string,
  pods: readonly Pod[],
  signal: AbortSignal,
): Promise<readonly X509Certificate[]> {
  const configMaps = new Set<string>();
  const secrets = new Map<string, Set<string>>();
  for (const volume of pods.flatMap(({ spec }) => spec?.volumes ?? [])) {
    const sources = volume.projected?.sources ?? [];
    for (const { configMap } of [volume, ...sources]) {
      if (configMap?.name && configMap.name !== API_AUTHORITY) configMaps.add(configMap.name);
    }
    const mounted = [
      { name: volume.secret?.secretName, items: volume.secret?.items },
      ...sources.map(({ secret }) => ({ name: secret?.name, items: secret?.items })),
    ];
    for (const { name, items } of mounted) {
      const keys = (items ?? []).map(({ key }) => key).filter((key) => CERTIFICATE_KEY.test(key));
      if (!name || keys.length === 0) continue;
      secrets.set(name, new Set([...secrets.get(name) ?? [], ...keys]));
    }
  }
  const texts: string[] = [];
  for (const name of configMaps) {
    const map = await see(() => api.get(CONFIG_MAPS, { namespace, name }, { signal }));
    if (map.type === "seen") texts.push(...Object.values(map.value.data ?? {}));
  }
  for (const [name, keys] of secrets) {
    for (const key of keys) texts.push(await secretText(api, { namespace, name }, key, signal));
  }
  return texts.flatMap(certificatesOf);
}

/** The text of a value of a Secret; empty when there is none. */
export function decoded(base64: string | undefined): string {
  try {
    return new TextDecoder().decode(Uint8Array.fromBase64(base64 ?? ""));
  } catch {
    return "";
  }
}
