/** What the tests of this room share: a view of groups that a test fills, and a cluster in memory. */

import type { ChangeListener, GroupsView } from "../../lib/auxiliary/live_groups.ts";
import { LiveGroups } from "../../lib/auxiliary/live_groups.ts";
import type { GroupSight } from "../../lib/controllers/group_controller.ts";
import type { MysqlFailoverGroup } from "../../lib/group/types.ts";
import type { KubeApi, Stored } from "../../lib/kube/api.ts";
import { connectTo, FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { readDefinitions } from "../../handlers/commands/demo/crds.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { recordingLogger } from "../host/support.ts";

/** A view that shows what a test puts into it. */
export class FakeView implements GroupsView {
  synced = true;
  readonly groups = new Map<string, GroupSight>();
  readonly listeners = new Set<ChangeListener>();

  keys(): readonly string[] {
    return [...this.groups.keys()].sort();
  }

  sight(key: string): GroupSight | null {
    return this.groups.get(key) ?? null;
  }

  subscribe(listener: ChangeListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Puts a group in, and tells of it. */
  put(group: Stored<MysqlFailoverGroup>): void {
    const key = `${group.metadata.namespace}/${group.metadata.name}`;
    const before = this.sight(key);
    const after = { group, leases: [] };
    this.groups.set(key, after);
    for (const listener of this.listeners) listener([{ key, before, after }], "watch");
  }

  /** Takes a group out, and tells of it. */
  remove(key: string): void {
    const before = this.sight(key);
    this.groups.delete(key);
    for (const listener of this.listeners) listener([{ key, before, after: null }], "watch");
  }
}

/** A group with a name and a status of its own. */
export function groupNamed(
  name: string,
  status: Record<string, unknown> = {},
): Stored<MysqlFailoverGroup> {
  const group = healthyGroup({ status });
  return { ...group, metadata: { ...group.metadata, name, uid: `uid-of-${name}` } };
}

/** A group that its operator has never looked at. */
export function bareGroup(name = "bare"): Stored<MysqlFailoverGroup> {
  return { metadata: groupNamed(name).metadata };
}

/** A cluster in memory with the definitions of the operator's kinds, and a view of it. */
export class ViewRig implements AsyncDisposable {
  readonly clock = new TestClock();
  readonly fake = new FakeCluster({ clock: this.clock, entropy: seededEntropy(1) });
  readonly logger = recordingLogger();
  readonly counted: string[] = [];
  readonly groups: LiveGroups;
  readonly api: KubeApi;
  readonly #end = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor({ leases = false } = {}) {
    for (const definition of readDefinitions()) this.fake.apply(definition);
    this.api = connectTo(this.fake, { clock: this.clock, entropy: seededEntropy(2) });
    this.groups = new LiveGroups({
      clock: this.clock,
      logger: this.logger,
      metrics: {
        restarted: (resource, reason) => void this.counted.push(`${resource} ${reason}`),
        undecodable: (resource) => void this.counted.push(`${resource} undecodable`),
      },
      leases,
    });
  }

  /** Begins to follow. */
  async start(): Promise<void> {
    this.#running = this.groups.run(this.api, this.#end.signal);
    await this.settle();
  }

  /** Lets all that is under way in memory come to rest. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await this.clock.advance(0);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.fake.close();
  }
}
