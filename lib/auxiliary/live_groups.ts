/**
 * All groups as they are now, and every change of them, for whoever shows them: one watch for the whole process, however
 * many clients look.
 *
 * It runs on every replica. What it shows may lag behind the cluster by the time that an event takes, and by an outage.
 * It is to be shown to people and programs, and never to decide about a lease.
 *
 * @module
 */

import { BoardWatch } from "../controllers/board_watch.ts";
import type { GroupSight } from "../controllers/group_controller.ts";
import { GroupBoard, type GroupKey } from "../controllers/group_board.ts";
import type { ControllerMetrics } from "../controllers/metrics.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../group/types.ts";
import type { KubeApi, Stored, UndecodableObject } from "../kube/api.ts";
import { type Lease, LEASES } from "../kube/resources.ts";
import { DEPLOYMENT_KIND_LABEL } from "../records/names.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";

/** How one group changed. */
export interface GroupChange {
  /** Its namespace and its name, joined by a slash. */
  readonly key: GroupKey;
  /** As it was before; `null` when it was not there. */
  readonly before: GroupSight | null;
  /** As it is now; `null` when it is not there any more. */
  readonly after: GroupSight | null;
}

/**
 * How changes were learned of. `initial`: this is all that there is, and nothing of it happened now. `watch`: it happened
 * just now. `resync`: a list showed what the watch had not, so it happened some time ago.
 */
export type ChangeCause = "initial" | "watch" | "resync";

/** Hears of changes. It must not throw. */
export type ChangeListener = (changes: readonly GroupChange[], cause: ChangeCause) => void;

/** What can be seen of the groups. */
export interface GroupsView {
  /** False until everything was listed once: then there is nothing to show, which is not the same as no groups. */
  readonly synced: boolean;
  /** The keys of all groups, sorted. */
  keys(): readonly GroupKey[];
  /** One group with the Leases that it owns; `null` when there is none. Without `leases` its list of Leases is empty. */
  sight(key: GroupKey): GroupSight | null;
  /**
   * Hears of every change from now on. When everything was listed before, what there is now is not told: see
   * {@linkcode GroupsView.keys}.
   *
   * @returns A function that ends it.
   */
  subscribe(listener: ChangeListener): () => void;
}

/** A group with all that is about it. */
export interface WholeSight extends GroupSight {
  /** Leases of a former group of its name, which close it. */
  readonly strangers: readonly Stored<Lease>[];
}

/** All that a person who looks at the groups should know. */
export interface WholeView extends GroupsView {
  sight(key: GroupKey): WholeSight | null;
  /** Why what is seen may be old, one sentence for each watch that fails. */
  readonly troubles: readonly string[];
  /** The groups that are there and cannot be read. One that comes or goes is told like a change, with nothing to see. */
  readonly unreadable: ReadonlyMap<GroupKey, UndecodableObject>;
}

/** What {@linkcode LiveGroups} are made of. */
export interface LiveGroupsParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<ControllerMetrics, "restarted" | "undecodable">;
  /** Follows the Leases of the groups too. */
  readonly leases: boolean;
}

/** How often all is listed anew, for what a watch may have missed. */
const CATCH_UP_MS = 600_000;

/** The groups, followed by watches. */
export class LiveGroups implements WholeView {
  readonly #parts: LiveGroupsParts;
  readonly #board = new GroupBoard();
  /** What was told last of each group. */
  readonly #told = new Map<GroupKey, WholeSight>();
  readonly #listeners = new Set<ChangeListener>();
  readonly #unreadable = new Map<GroupKey, UndecodableObject>();
  #watches: readonly Pick<BoardWatch<never>, "resource" | "trouble">[] = [];
  #synced = false;
  /** Says whether every watch has told the whole state. */
  #complete: () => boolean = () => false;

  constructor(parts: LiveGroupsParts) {
    this.#parts = parts;
  }

  get synced(): boolean {
    return this.#synced;
  }

  keys(): readonly GroupKey[] {
    return [...this.#told.keys()].sort();
  }

  sight(key: GroupKey): WholeSight | null {
    return this.#told.get(key) ?? null;
  }

  get troubles(): readonly string[] {
    return this.#watches.filter(({ trouble }) => trouble !== "").map(({ resource, trouble }) =>
      `This replica's watch of ${resource} fails (${trouble}): what is shown may be old`
    );
  }

  get unreadable(): ReadonlyMap<GroupKey, UndecodableObject> {
    return this.#unreadable;
  }

  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Follows the groups until the signal aborts. Call it once. */
  async run(api: KubeApi, signal: AbortSignal): Promise<void> {
    const watches = [
      this.#watchGroups(api, signal),
      ...(this.#parts.leases ? [this.#watchLeases(api, signal)] : []),
    ];
    this.#watches = watches;
    this.#complete = () => watches.every((watch) => watch.synced);
    let cancel = () => {};
    const planCatchUp = () => {
      cancel = this.#parts.clock.timer(CATCH_UP_MS, () => {
        for (const watch of watches) watch.restart();
        planCatchUp();
      });
    };
    planCatchUp();
    try {
      await Promise.all(watches.map((watch) => watch.run()));
    } finally {
      cancel();
    }
  }

  #watchGroups(api: KubeApi, signal: AbortSignal): BoardWatch<MysqlFailoverGroup> {
    const board = this.#board;
    return new BoardWatch({
      ...this.#parts,
      resource: MYSQL_FAILOVER_GROUPS.plural,
      watch: api.watch(MYSQL_FAILOVER_GROUPS, { signal }),
      listed: (list) => {
        board.setGroups(list);
        const before = [...this.#unreadable.keys()];
        this.#unreadable.clear();
        for (const object of list.undecodable) this.#unreadable.set(keyOf(object), object);
        this.#tellAll([...before, ...this.#unreadable.keys()]);
      },
      changed: (group, deleted) => {
        const key = deleted ? board.removeGroup(group) : board.setGroup(group);
        const wasUnreadable = this.#unreadable.delete(key);
        this.#tell([key], "watch", wasUnreadable ? [key] : []);
      },
      unreadable: (object) => this.#drop(object),
    });
  }

  #watchLeases(api: KubeApi, signal: AbortSignal): BoardWatch<Lease> {
    const board = this.#board;
    return new BoardWatch({
      ...this.#parts,
      resource: LEASES.plural,
      watch: api.watch(LEASES, { signal, labelSelector: DEPLOYMENT_KIND_LABEL }),
      listed: (list) => {
        board.setLeases(list);
        this.#tellAll();
      },
      changed: (lease, deleted) => {
        this.#tell(deleted ? board.removeLease(lease) : board.setLease(lease), "watch");
      },
      unreadable: () => {},
    });
  }

  /** A group that cannot be read any more is not shown as it was: what it was is not what it is. */
  #drop(object: UndecodableObject): void {
    const { namespace, name } = object;
    const key = keyOf(object);
    this.#parts.logger.warn("group cannot be shown", { namespace, group: name });
    this.#unreadable.set(key, object);
    const known = this.#board.sight(key);
    if (known !== null) this.#board.removeGroup(known.group);
    this.#tell([key], "watch", [key]);
  }

  #tellAll(anyway: readonly GroupKey[] = []): void {
    if (!this.#complete()) return;
    const cause = this.#synced ? "resync" : "initial";
    this.#synced = true;
    this.#tell(
      [...new Set([...this.#board.keys(), ...this.#told.keys(), ...anyway])],
      cause,
      anyway,
    );
  }

  /** @param anyway Those of the keys that are told although nothing is to be seen of them. */
  #tell(keys: readonly GroupKey[], cause: ChangeCause, anyway: readonly GroupKey[] = []): void {
    // What one watch shows is half of the picture before the other one has listed.
    if (!this.#synced) return;
    const changes = keys.flatMap((key) => {
      const before = this.#told.get(key) ?? null;
      const sight = this.#board.sight(key);
      const after = sight && { ...sight, strangers: this.#board.strangers(key) };
      if (same(before, after) && !anyway.includes(key)) return [];
      if (after === null) this.#told.delete(key);
      else this.#told.set(key, after);
      return [{ key, before, after }];
    });
    if (changes.length === 0 && cause !== "initial") return;
    for (const listener of [...this.#listeners]) listener(changes, cause);
  }
}

function keyOf({ namespace, name }: UndecodableObject): GroupKey {
  return `${namespace}/${name}`;
}

function same(a: WholeSight | null, b: WholeSight | null): boolean {
  if (a === null || b === null) return a === b;
  return sameObject(a.group, b.group) && sameLeases(a.leases, b.leases) &&
    sameLeases(a.strangers, b.strangers);
}

function sameLeases(a: readonly Stored<Lease>[], b: readonly Stored<Lease>[]): boolean {
  if (a.length !== b.length) return false;
  const leases = new Map(b.map((lease) => [lease.metadata.name, lease]));
  return a.every((lease) => {
    const other = leases.get(lease.metadata.name);
    return other !== undefined && sameObject(lease, other);
  });
}

function sameObject(
  { metadata: a }: Stored<MysqlFailoverGroup> | Stored<Lease>,
  { metadata: b }: Stored<MysqlFailoverGroup> | Stored<Lease>,
): boolean {
  return a.uid === b.uid && a.resourceVersion === b.resourceVersion;
}
