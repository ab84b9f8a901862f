/**
 * Looks at the cluster of the service, as an administrator may. It only reads, and asks reviews.
 *
 * @module
 */

import type { X509Certificate } from "node:crypto";
import { parseMicroTime } from "../election/lease_codec.ts";
import { MYSQL_DATABASES, type MysqlDatabase } from "../group/types.ts";
import type { KubeApi } from "../kube/api.ts";
import {
  type Lease,
  LEASES,
  NAMESPACES,
  type Secret,
  SECRETS,
  SERVICE_ACCOUNTS,
} from "../kube/resources.ts";
import type { LeaseInstant } from "../lease_time/lease_time.ts";
import {
  type ClientFacts,
  type ClusterFacts,
  type ElectionFacts,
  type PodFacts,
  REFERENCE_LEASE,
  type SecretFacts,
  type ServicePlace,
  type Sight,
} from "./cluster_facts.ts";
import { DEFINITIONS, MOUNTING_PODS, NETWORK_POLICIES, SERVICES } from "./kinds.ts";
import type { Labels } from "./network_rules.ts";
import { lookAtRights } from "./rights_look.ts";
import { decoded, lookAtSidecars } from "./sidecar_look.ts";
import { see, whenSeen } from "./sight.ts";
import { certificateFacts, certificatesOf, isFor, keyBelongsTo } from "./trust.ts";

/** What the look needs. */
export interface ClusterLookParts {
  readonly api: KubeApi;
  readonly place: ServicePlace;
  /** Only the clients of databases of this group. @default {all} */
  readonly group: string | undefined;
  /** The API server's time. It is asked after the first answer. */
  readonly now: () => LeaseInstant;
  readonly signal: AbortSignal;
}

/** Looks at everything. What cannot be read is a fact too. @throws The signal's reason. */
export async function lookAtCluster(parts: ClusterLookParts): Promise<ClusterFacts> {
  const { api, place, now, signal } = parts;
  const { namespace } = place;
  const version = await see(() => api.version({ signal }));
  const secret = await see(() => api.get(SECRETS, { namespace, name: place.secret }, { signal }));
  const chain = whenSeen(secret, ({ data }) => certificatesOf(decoded(data?.["tls.crt"])));
  const definition = (plural: string) =>
    see(() => api.get(DEFINITIONS, { name: `${plural}.shipstream.io` }, { signal }));
  const lease = async (name: string) =>
    whenSeen(await see(() => api.get(LEASES, { namespace, name }, { signal })), electionFacts);
  const selectors = await Promise.all(
    place.services.map(async (name) =>
      whenSeen(
        await see(() => api.get(SERVICES, { namespace, name }, { signal })),
        ({ spec }): Labels => spec?.selector ?? {},
      )
    ),
  );
  const policies = await see(() => api.list(NETWORK_POLICIES, { namespace, signal }));
  return {
    place,
    version: whenSeen(version, ({ gitVersion }) => gitVersion),
    definitions: {
      mysqlfailovergroups: await definition("mysqlfailovergroups"),
      mysqldatabases: await definition("mysqldatabases"),
    },
    rights: await lookAtRights(api, place, signal),
    secret: whenSeen(
      secret,
      (value) => secretFacts(value, chain.type === "seen" ? chain.value : [], place),
    ),
    services: selectors,
    pods: await podsOf(parts, selectors.at(-1)),
    policies: whenSeen(policies, ({ items }) => items),
    election: await lease(place.leaseName),
    reference: await lease(REFERENCE_LEASE),
    clients: await lookAtClients(parts),
    sidecars: await lookAtSidecars(api, chain.type === "seen" ? chain.value : [], signal),
    now: now(),
  };
}

function secretFacts(
  { data }: Secret,
  [certificate]: readonly X509Certificate[],
  place: ServicePlace,
): SecretFacts {
  const keyPem = decoded(data?.["tls.key"]);
  return {
    certificate: certificate === undefined ? null : certificateFacts(certificate),
    hasCertificateKey: data?.["tls.crt"] !== undefined,
    hasPrivateKey: data?.["tls.key"] !== undefined,
    keyFits: certificate !== undefined && keyBelongsTo(certificate, keyPem),
    missingNames: certificate === undefined
      ? []
      : namesOf(place).filter((name) => !isFor(certificate, name)),
  };
}

/** The names by which callers in other namespaces reach the first Service, and sidecars the last one. */
function namesOf({ services, namespace, clusterDomain, takesKeyrings }: ServicePlace): string[] {
  return (takesKeyrings ? services : services.slice(0, 1)).flatMap((service) => [
    `${service}.${namespace}.svc`,
    `${service}.${namespace}.svc.${clusterDomain}`,
  ]);
}

function electionFacts({ spec }: Lease): ElectionFacts {
  const renewedMicros = parseMicroTime(spec?.renewTime ?? "");
  const seconds = spec?.leaseDurationSeconds ?? 0;
  return {
    holder: spec?.holderIdentity ?? "",
    endsMs: renewedMicros < 0 ? null : renewedMicros / 1_000 + seconds * 1_000,
  };
}

async function podsOf(
  { api, place: { namespace }, signal }: ClusterLookParts,
  selector: Sight<Labels> | undefined,
): Promise<Sight<readonly PodFacts[]>> {
  if (selector === undefined) return { type: "absent" };
  if (selector.type !== "seen") return selector;
  const labelSelector = Object.entries(selector.value).map(([key, value]) => `${key}=${value}`)
    .join(",");
  // A Service without a selector selects nothing, and a list without one would be of all pods.
  if (labelSelector === "") return { type: "absent" };
  const pods = await see(() => api.list(MOUNTING_PODS, { namespace, labelSelector, signal }));
  return whenSeen(pods, ({ items }) => items.map(podFacts));
}

function podFacts({ metadata }: { readonly metadata: { name?: string; labels?: Labels } }) {
  return { name: metadata.name ?? "", labels: metadata.labels ?? {} };
}

async function lookAtClients(parts: ClusterLookParts): Promise<Sight<readonly ClientFacts[]>> {
  const { api, group, signal } = parts;
  const listed = await see(() => api.list(MYSQL_DATABASES, { signal }));
  if (listed.type !== "seen") return whenSeen(listed, () => []);
  const databases = listed.value.items.filter(({ spec }) =>
    group === undefined || spec?.groupRef?.name === group
  );
  const clients: ClientFacts[] = [];
  for (const client of distinctClients(databases)) {
    const { namespace, serviceAccount } = client;
    const [space, account, pods] = await Promise.all([
      see(() => api.get(NAMESPACES, { name: namespace }, { signal })),
      see(() => api.get(SERVICE_ACCOUNTS, { namespace, name: serviceAccount }, { signal })),
      see(() =>
        api.list(MOUNTING_PODS, {
          namespace,
          fieldSelector: `spec.serviceAccountName=${serviceAccount}`,
          signal,
        })
      ),
    ]);
    clients.push({
      ...client,
      namespaceLabels: whenSeen(space, ({ metadata }): Labels => metadata.labels ?? {}),
      account,
      pods: whenSeen(pods, ({ items }) => items.map(podFacts)),
    });
  }
  return { type: "seen", value: clients };
}

function distinctClients(databases: readonly MysqlDatabase[]) {
  const found = new Map<
    string,
    { namespace: string; serviceAccount: string; databases: string[] }
  >();
  for (const { metadata, spec } of databases) {
    for (const { namespace, serviceAccount } of spec?.deploymentClients ?? []) {
      if (!namespace || !serviceAccount) continue;
      const key = `${namespace}/${serviceAccount}`;
      const known = found.get(key) ?? { namespace, serviceAccount, databases: [] };
      known.databases.push(metadata.name ?? "");
      found.set(key, known);
    }
  }
  return [...found.values()];
}
