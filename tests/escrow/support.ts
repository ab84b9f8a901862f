/**
 * What tests of the keyring escrow share: a group with encryption, the tokens of its sites, and keyrings.
 *
 * @module
 */

import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { type Secret, SECRETS } from "../../lib/kube/resources.ts";
import {
  KEYRING_KEY,
  type KeyringSite,
  TOKEN_KEY,
  tokenSecretName,
} from "../../lib/escrow/names.ts";
import type { FakeCluster } from "../../lib/testing/mod.ts";
import { readDefinitions } from "../../handlers/commands/demo/crds.ts";
import { ordersGroup, stableStatus } from "../service/orders.ts";

/** Where the group is. */
export const NAMESPACE = "database-ns";
/** Its first site. */
export const SITE: KeyringSite = { namespace: NAMESPACE, group: "orders", site: "iad" };
/** The token of that site. */
export const TOKEN = "0123456789abcdef".repeat(4);
/** The token of the other site. */
export const OTHER_TOKEN = "fedcba9876543210".repeat(4);

/** A keyring, in base64. */
export function keyringOf(text: string): string {
  return btoa(text);
}

/** A group whose sites encrypt. */
export function encryptedGroup(namespace: string, name = "orders", enabled = true) {
  const group = ordersGroup(namespace, name);
  return { ...group, spec: { ...group.spec, encryptionAtRest: { enabled } } };
}

/** The Secret with the token of a site, as the operator makes it. */
export function tokenSecret(site: KeyringSite, token: string): Secret {
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: "Opaque",
    metadata: { namespace: site.namespace, name: tokenSecretName(site) },
    data: { [TOKEN_KEY]: btoa(token) },
  };
}

/** Gives a cluster the group `orders`, which encrypts, `plain`, which does not, and the tokens of their sites. */
export function seedEscrow(fake: FakeCluster): void {
  for (const crd of readDefinitions()) fake.apply(crd);
  fake.seed(MYSQL_FAILOVER_GROUPS, { ...encryptedGroup(NAMESPACE), status: stableStatus });
  fake.seed(MYSQL_FAILOVER_GROUPS, encryptedGroup(NAMESPACE, "plain", false));
  fake.seed(SECRETS, tokenSecret(SITE, TOKEN));
  fake.seed(SECRETS, tokenSecret({ ...SITE, site: "pdx" }, OTHER_TOKEN));
  fake.seed(SECRETS, tokenSecret({ ...SITE, group: "plain" }, TOKEN));
  // A site that was taken out of the group and has its token still, and one of a group that is gone.
  fake.seed(SECRETS, tokenSecret({ ...SITE, site: "old" }, TOKEN));
  fake.seed(SECRETS, tokenSecret({ ...SITE, group: "gone" }, TOKEN));
}

/** The versions that are stored: name → keyring, in base64. */
export function storedKeyrings(fake: FakeCluster): Record<string, string> {
  return Object.fromEntries(
    fake.readAll(SECRETS, NAMESPACE).filter(({ data }) => data?.[KEYRING_KEY] !== undefined)
      .map(({ metadata, data }) => [metadata.name ?? "", data?.[KEYRING_KEY] ?? ""]),
  );
}
