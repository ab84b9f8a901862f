/**
 * What the watches showed last: every group, and the Leases that it owns. A copy to see from that there is nothing to do;
 * what a decision is made from is read anew.
 *
 * @module
 */

import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../group/types.ts";
import { GROUP_KIND } from "../records/names.ts";
import type { KubeObject, ObjectList, ObjectName, Resource, Stored } from "../kube/api.ts";
import { type Lease, LEASES } from "../kube/resources.ts";
import { compareVersions } from "../kube/versions.ts";
import { ownedBy } from "../records/lease_object.ts";
import type { GroupSight } from "./group_controller.ts";
import type { KnownVersions } from "./rewind_guard.ts";

/** Which group: its namespace and its name, joined by a slash. */
export type GroupKey = string;

/** The key of a group. */
export function groupKey({ metadata }: KubeObject): GroupKey {
  return `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
}

/** The groups and their Leases. */
export class GroupBoard implements KnownVersions {
  readonly #groups = new Map<GroupKey, Stored<MysqlFailoverGroup>>();
  /** The Leases by name, of the group that owns them. */
  readonly #leases = new Map<GroupKey, Map<string, Stored<Lease>>>();
  /** Which group a Lease is kept under, by the Lease's own key. */
  readonly #owners = new Map<string, GroupKey>();
  #newestGroup = "";
  #newestLease = "";

  /** How many groups there are. */
  get size(): number {
    return this.#groups.size;
  }

  newest(resource: Resource): string {
    if (resource.plural === MYSQL_FAILOVER_GROUPS.plural) return this.#newestGroup;
    return resource.plural === LEASES.plural ? this.#newestLease : "";
  }

  shown(
    resource: Resource,
    { namespace = "", name }: ObjectName,
  ): { readonly uid: string; readonly resourceVersion: string } | null {
    const key = `${namespace}/${name}`;
    if (resource.plural === MYSQL_FAILOVER_GROUPS.plural) {
      return this.#groups.get(key)?.metadata ?? null;
    }
    if (resource.plural !== LEASES.plural) return null;
    return this.#leases.get(this.#owners.get(key) ?? "")?.get(name)?.metadata ?? null;
  }

  /** All groups that are there, and those of which only Leases are. */
  keys(): ReadonlySet<GroupKey> {
    return new Set([...this.#groups.keys(), ...this.#leases.keys()]);
  }

  /** What is known of a group; `null` when there is none. A Lease of a former group of its name is left out. */
  sight(key: GroupKey): GroupSight | null {
    const group = this.#groups.get(key);
    if (group === undefined) return null;
    const leases = [...this.#leases.get(key)?.values() ?? []];
    return { group, leases: leases.filter((lease) => ownedBy(lease, group.metadata.uid)) };
  }

  /** The Leases of a former group of this name: they close the group that has its name now (deploy-api 6.3). */
  strangers(key: GroupKey): readonly Stored<Lease>[] {
    const uid = this.#groups.get(key)?.metadata.uid ?? "";
    return [...this.#leases.get(key)?.values() ?? []].filter((lease) => !ownedBy(lease, uid));
  }

  /** Forgets all groups and takes those of a list. */
  setGroups(list: ObjectList<MysqlFailoverGroup>): void {
    this.#groups.clear();
    this.#newestGroup = list.resourceVersion;
    for (const group of list.items) this.#groups.set(groupKey(group), group);
  }

  /** Takes a group as it is now. @returns Its key. */
  setGroup(group: Stored<MysqlFailoverGroup>): GroupKey {
    this.#newestGroup = newer(this.#newestGroup, group.metadata.resourceVersion);
    const key = groupKey(group);
    this.#groups.set(key, group);
    return key;
  }

  /** Forgets a group. @returns Its key. */
  removeGroup(group: Stored<MysqlFailoverGroup>): GroupKey {
    this.#newestGroup = newer(this.#newestGroup, group.metadata.resourceVersion);
    const key = groupKey(group);
    this.#groups.delete(key);
    return key;
  }

  /** Forgets all Leases and takes those of a list. */
  setLeases(list: ObjectList<Lease>): void {
    this.#leases.clear();
    this.#owners.clear();
    for (const lease of list.items) this.setLease(lease);
    this.#newestLease = list.resourceVersion;
  }

  /** Takes a Lease as it is now. @returns The keys of the groups that see a change. */
  setLease(lease: Stored<Lease>): readonly GroupKey[] {
    const before = this.removeLease(lease);
    const owner = ownerOf(lease);
    if (owner === null) return before;
    this.#owners.set(groupKey(lease), owner);
    const leases = this.#leases.get(owner) ?? new Map<string, Stored<Lease>>();
    leases.set(lease.metadata.name, lease);
    this.#leases.set(owner, leases);
    return before.includes(owner) ? before : [...before, owner];
  }

  /** Forgets a Lease. @returns The keys of the groups that see a change. */
  removeLease(lease: Stored<Lease>): readonly GroupKey[] {
    this.#newestLease = newer(this.#newestLease, lease.metadata.resourceVersion);
    const own = groupKey(lease);
    const owner = this.#owners.get(own);
    if (owner === undefined) return [];
    this.#owners.delete(own);
    const leases = this.#leases.get(owner);
    leases?.delete(lease.metadata.name);
    if (leases?.size === 0) this.#leases.delete(owner);
    return [owner];
  }
}

/** The group that owns a Lease, or `null`: only a Lease with one owner can be a deployment lease (deploy-api 6.3). */
function ownerOf(lease: Stored<Lease>): GroupKey | null {
  const [owner, ...others] = lease.metadata.ownerReferences ?? [];
  if (owner?.kind !== GROUP_KIND || others.length > 0) return null;
  return `${lease.metadata.namespace ?? ""}/${owner.name}`;
}

function newer(a: string, b: string): string {
  const order = compareVersions(a, b);
  return order !== null && order > 0 ? a : b;
}
