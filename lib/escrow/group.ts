/**
 * A group as the escrow sees it.
 *
 * @module
 */

import { z } from "zod";
import { MYSQL_FAILOVER_GROUPS } from "../group/types.ts";
import type { Resource } from "../kube/api.ts";
import { kubeObject, resource } from "../kube/resources.ts";

const schema = kubeObject.extend({
  spec: z.looseObject({
    sites: z.array(z.looseObject({ name: z.string() })).nullish(),
    encryptionAtRest: z.looseObject({ enabled: z.boolean().nullish() }).nullish(),
  }).nullish(),
});

/** What its owner wishes of a group. */
export type GroupSpec = z.infer<typeof schema>;

/**
 * The groups, without their status: one that cannot be read closes the group for deployments, and must not cost a
 * keyring.
 */
export const GROUP_SPECS: Resource<GroupSpec> = resource(MYSQL_FAILOVER_GROUPS, schema);

/** True while the sites of the group encrypt what they store, and so have keyrings. */
export function isEncrypted({ spec }: GroupSpec): boolean {
  return spec?.encryptionAtRest?.enabled === true;
}

/** True when the group has a site of that name. */
export function hasSite({ spec }: GroupSpec, name: string): boolean {
  return spec?.sites?.some((site) => site.name === name) ?? false;
}
