/**
 * How the Secrets of keyrings are called and labelled: deploy-api 13.
 *
 * Names and labels are read by the operator and by the pods of the database, so they are part of the wire contract.
 *
 * @module
 */

import { isDnsLabel, isDnsSubdomain } from "../auth/dns_names.ts";
import { FAILOVER_GROUP_LABEL } from "../group/types.ts";
import type { KubeObject, Stored } from "../kube/api.ts";
import type { Secret } from "../kube/resources.ts";
import { GROUP_API_VERSION, GROUP_KIND, groupLabelValue } from "../records/names.ts";

/** The keyring of one site of a group. */
export interface KeyringSite {
  readonly namespace: string;
  readonly group: string;
  readonly site: string;
}

/** The key of the token in its Secret. */
export const TOKEN_KEY = "token";
/** The key of the keyring in its Secret. */
export const KEYRING_KEY = "keyring";

/** Label: the site that it belongs to. */
export const SITE_LABEL = "shipstream.io/site";
/** Label: which version of the keyring it holds. */
export const KEYRING_VERSION_LABEL = "shipstream.io/keyring-version";
/** Annotation: the digest of the keyring that it holds. */
export const KEYRING_DIGEST_ANNOTATION = "shipstream.io/keyring-digest";

const NAME_LABEL = "app.kubernetes.io/name";
const INSTANCE_LABEL = "app.kubernetes.io/instance";
const MANAGED_BY_LABEL = "app.kubernetes.io/managed-by";
const KEYRING_APPLICATION = "mysql-keyring";

/** More digits would leave the numbers that count exactly. Nobody pushes a thousand million keyrings. */
const MAX_VERSION_DIGITS = 9;

/**
 * True when Secrets of this site can exist: a request with other names is about nothing, and must not become a path of the
 * API server.
 */
export function canExist(site: KeyringSite): boolean {
  return isDnsLabel(site.namespace) && isDnsSubdomain(site.group) && isDnsSubdomain(site.site) &&
    isDnsSubdomain(tokenSecretName(site)) &&
    isDnsSubdomain(keyringSecretName(site, 10 ** MAX_VERSION_DIGITS - 1));
}

/** The name of the Secret with the token of a site. */
export function tokenSecretName({ group, site }: KeyringSite): string {
  return `mysql-${group}-${site}-keyring-token`;
}

/** The name of the Secret with one version of a site's keyring. */
export function keyringSecretName({ group, site }: KeyringSite, version: number): string {
  return `mysql-${group}-${site}-keyring-v${version}`;
}

/** The version that a Secret's name says; `null` when it is not the name of a version of this site. */
export function versionOf(site: KeyringSite, name: string): number | null {
  const prefix = keyringSecretName(site, 0).slice(0, -1);
  if (!name.startsWith(prefix)) return null;
  const digits = name.slice(prefix.length);
  const known = /^[1-9]\d*$/.test(digits) && digits.length <= MAX_VERSION_DIGITS;
  return known ? Number(digits) : null;
}

/** Label selector: the versions of a site's keyring. */
export function keyringSelector(site: KeyringSite): string {
  return Object.entries(siteLabels(site)).map(([label, value]) => `${label}=${value}`).join(",");
}

/** What a {@linkcode keyringSecret} is made of. */
export interface KeyringSecretParts {
  readonly site: KeyringSite;
  /** The uid of the group, which owns the Secret. */
  readonly groupUid: string;
  /** From 1. */
  readonly version: number;
  /** In base64. */
  readonly keyring: string;
  readonly digest: string;
}

/** The Secret that stores one version of a keyring. It cannot be changed, and goes when its group goes. */
export function keyringSecret(
  { site, groupUid, version, keyring, digest }: KeyringSecretParts,
): Secret {
  const { namespace, group } = site;
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: "Opaque",
    immutable: true,
    metadata: {
      name: keyringSecretName(site, version),
      namespace,
      labels: {
        ...siteLabels(site),
        [INSTANCE_LABEL]: groupLabelValue(group),
        [MANAGED_BY_LABEL]: "bloodraven",
        [KEYRING_VERSION_LABEL]: String(version),
      },
      annotations: { [KEYRING_DIGEST_ANNOTATION]: digest },
      ownerReferences: [{
        apiVersion: GROUP_API_VERSION,
        kind: GROUP_KIND,
        name: group,
        uid: groupUid,
        controller: true,
      }],
    },
    data: { [KEYRING_KEY]: keyring },
  };
}

function siteLabels({ group, site }: KeyringSite): Readonly<Record<string, string>> {
  return {
    [NAME_LABEL]: KEYRING_APPLICATION,
    [FAILOVER_GROUP_LABEL]: groupLabelValue(group),
    [SITE_LABEL]: groupLabelValue(site),
  };
}

/** True when the group with this uid controls the object, so that it stays as long as the group does. */
export function controlledBy(object: Stored<KubeObject>, groupUid: string): boolean {
  return controllerOf(object)?.uid === groupUid;
}

/**
 * True unless the object itself says that it is about another site.
 *
 * Names alone do not part sites: `mysql-a-b-c-keyring-token` is of site `c` of group `a-b`, and of site `b-c` of group `a`.
 * The contract gives the token's Secret no labels, so one without them is believed.
 */
export function mayBeOf({ group, site }: KeyringSite, object: Stored<KubeObject>): boolean {
  const { labels = {} } = object.metadata;
  const owner = controllerOf(object);
  const says = (label: string, name: string) =>
    labels[label] === undefined || labels[label] === groupLabelValue(name);
  return says(FAILOVER_GROUP_LABEL, group) && says(SITE_LABEL, site) &&
    (owner === undefined || owner.kind !== GROUP_KIND || owner.name === group);
}

function controllerOf({ metadata }: Stored<KubeObject>) {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}
