/**
 * The PITR cut-off of a group: asked of the cluster, and kept for a while (deploy-api 14).
 *
 * @module
 */

import type { GroupKey } from "../controllers/group_board.ts";
import { FAILOVER_GROUP_LABEL } from "../group/types.ts";
import type { KubeApi } from "../kube/api.ts";
import { type Clock, startDeadline } from "../runtime/clock.ts";
import { BackupError, cutoffs, MYSQL_BACKUPS } from "./backups.ts";
import type { GroupsView } from "./live_groups.ts";

/** For how long an answer of the cluster is used again. */
const KEPT_MS = 30_000;

/** Milliseconds for one answer of the cluster. */
const LIMIT_MS = 5_000;

/** What a {@linkcode PitrCutoff} is made of. */
export interface PitrCutoffParts {
  readonly api: KubeApi;
  /** A group that is not in it causes no call, so callers cannot make more calls than there are groups. */
  readonly groups: GroupsView;
  readonly clock: Clock;
  /** Ends all calls. */
  readonly signal: AbortSignal;
}

interface Kept {
  readonly untilMs: number;
  readonly cutoffs: ReadonlyMap<string, string>;
}

/** Tells the cut-offs of groups. */
export class PitrCutoff {
  readonly #parts: PitrCutoffParts;
  readonly #kept = new Map<GroupKey, Kept>();
  readonly #asking = new Map<GroupKey, Promise<ReadonlyMap<string, string>>>();

  constructor(parts: PitrCutoffParts) {
    this.#parts = parts;
  }

  /**
   * Tells the cut-off of a profile. A failure is not kept; those who ask at once share one call.
   *
   * @returns `null` when no backup counts, or there is no such group.
   * @throws {BackupError} What the cluster has says too little.
   * @throws What the call throws: {@linkcode KubeError}, or the reason of its deadline.
   */
  async of(namespace: string, group: string, profile: string): Promise<string | null> {
    const key = `${namespace}/${group}`;
    if (this.#parts.groups.sight(key) === null) {
      this.#kept.delete(key);
      return null;
    }
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#parts.clock.monotonic() < kept.untilMs) {
      return kept.cutoffs.get(profile) ?? null;
    }
    const found = await this.#ask(key, namespace, group);
    return found.get(profile) ?? null;
  }

  #ask(key: GroupKey, namespace: string, group: string): Promise<ReadonlyMap<string, string>> {
    const asking = this.#asking.get(key) ?? this.#list(key, namespace, group).finally(() => {
      this.#asking.delete(key);
    });
    this.#asking.set(key, asking);
    return asking;
  }

  async #list(
    key: GroupKey,
    namespace: string,
    group: string,
  ): Promise<ReadonlyMap<string, string>> {
    const { api, clock, signal } = this.#parts;
    using limit = startDeadline(clock, LIMIT_MS, signal);
    const { items, undecodable } = await api.list(MYSQL_BACKUPS, {
      namespace,
      labelSelector: `${FAILOVER_GROUP_LABEL}=${group}`,
      signal: limit.signal,
    });
    if (undecodable.length > 0) {
      throw new BackupError("Cannot find the cut-off as a backup does not have its form");
    }
    const found = cutoffs(items);
    this.#kept.set(key, { untilMs: clock.monotonic() + KEPT_MS, cutoffs: found });
    return found;
  }
}
