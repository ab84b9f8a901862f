/**
 * Labels the pod of the leader, so that a Service can select it (design section 7, `label_leader`).
 *
 * Each replica looks after the label of its own pod alone. It does not follow from single events: what the pod carries is
 * compared with what should be, again and again until it is so. A container that starts anew in a pod which led before
 * takes the label off.
 *
 * A label is a hint and no proof: a replica that lost its connection keeps it for a while. What must be done once only asks
 * its term.
 *
 * @module
 */

import type { Leadership } from "../election/mod.ts";
import type { KubeApi } from "../kube/api.ts";
import { KubeError } from "../kube/errors.ts";
import { PODS } from "../kube/resources.ts";
import { type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";

/** The label of the leader's pod; its value is {@linkcode LEADER_LABEL_VALUE}. Other pods do not have it. */
export const LEADER_LABEL = "holdfast.shipstream.io/leader";

/** The value of {@linkcode LEADER_LABEL}. */
export const LEADER_LABEL_VALUE = "true";

/** Milliseconds until a write that failed is tried again. */
const RETRY_MS = 1_000;

/** Milliseconds for one write. */
const WRITE_LIMIT_MS = 5_000;

/** What {@linkcode keepLeaderLabel} takes. */
export interface LeaderLabelOptions {
  readonly api: KubeApi;
  readonly leadership: Leadership;
  /** The own pod. With a uid no other pod of that name is ever labelled. */
  readonly pod: { readonly name: string; readonly namespace: string; readonly uid?: string };
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends it, whatever the pod carries. */
  readonly signal: AbortSignal;
}

/** Keeps the label in step with the lead, until the election has ended and the label is off. It never rejects. */
export async function keepLeaderLabel(options: LeaderLabelOptions): Promise<void> {
  const label = new LeaderLabel(options);
  for await (const _ of options.leadership.subscribe(options.signal)) await label.settle();
}

class LeaderLabel {
  readonly #options: LeaderLabelOptions;
  /** What the pod carries; `null` when that is not known. */
  #labelled: boolean | null = null;
  #failing = false;

  constructor(options: LeaderLabelOptions) {
    this.#options = options;
  }

  /** Writes until the pod carries what it should. */
  async settle(): Promise<void> {
    const { leadership, clock, signal } = this.#options;
    while (!signal.aborted) {
      const wanted = leadership.isLeader();
      if (this.#labelled === wanted) return;
      if (await this.#write(wanted)) this.#labelled = wanted;
      else await sleep(clock, RETRY_MS, signal).catch(() => {});
    }
  }

  async #write(labelled: boolean): Promise<boolean> {
    const { api, pod: { name, namespace, uid }, signal } = this.#options;
    this.#labelled = null;
    const labels = { [LEADER_LABEL]: labelled ? LEADER_LABEL_VALUE : null };
    const body = { metadata: { labels, ...(uid === undefined ? {} : { uid }) } };
    try {
      await api.patch(PODS, { name, namespace }, { type: "merge", body }, {
        signal,
        timeoutMs: WRITE_LIMIT_MS,
      });
      this.#failing = false;
      return true;
    } catch (error) {
      if (!signal.aborted) this.#tell(error instanceof KubeError ? error.kind : "unknown");
      return false;
    }
  }

  #tell(error: string): void {
    const { logger } = this.#options;
    if (!this.#failing) logger.warn("the label of the leader cannot be written", { error });
    this.#failing = true;
  }
}
