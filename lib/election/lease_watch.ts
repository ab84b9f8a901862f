/**
 * The watch of one Lease: an accelerator, and nothing that safety rests on.
 *
 * @module
 */

import type { KubeApi, WatchEvent } from "../kube/api.ts";
import { ForbiddenError } from "../kube/errors.ts";
import { type Lease, LEASES } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import { decodeLease, type LeaseRecord } from "./lease_codec.ts";
import { errorClass } from "../runtime/error_class.ts";

/** What the watch tells: the Lease as it is, the object that is gone, that a read is due, or that its health changed. */
export type LeaseNews =
  | { readonly type: "found"; readonly record: LeaseRecord }
  | { readonly type: "deleted"; readonly uid: string }
  | { readonly type: "look" }
  | { readonly type: "health" };

/** What a {@linkcode LeaseWatch} is made of. */
export interface LeaseWatchOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly namespace: string;
  readonly leaseName: string;
  /** Milliseconds without news after which the watch is not relied on: a live holder writes within that time. */
  readonly silenceMs: number;
  /** Called for each piece of news. */
  readonly onNews: (news: LeaseNews) => void;
}

/** Follows one Lease and knows whether it can be relied on. */
export class LeaseWatch {
  readonly #options: LeaseWatchOptions;
  #lastNewsMs: number | null = null;
  #warned = false;

  constructor(options: LeaseWatchOptions) {
    this.#options = options;
  }

  /** The monotonic instant until which the watch can be relied on; 0 when it cannot be. */
  get reliableUntilMs(): number {
    return this.#lastNewsMs === null ? 0 : this.#lastNewsMs + this.#options.silenceMs;
  }

  /** Follows the Lease until `signal` aborts. It never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { api, namespace, leaseName, logger } = this.#options;
    const fieldSelector = `metadata.name=${leaseName}`;
    try {
      for await (const event of api.watch(LEASES, { namespace, fieldSelector, signal })) {
        if (signal.aborted) return;
        this.#hear(event);
      }
    } catch (error) {
      // A watch that breaks its promise not to throw costs speed only: polling goes on.
      logger.warn("The watch of the election Lease ended, so polling alone goes on", {
        lease: leaseName,
        error: errorClass(error),
      });
    }
    this.#lastNewsMs = null;
  }

  #hear(event: WatchEvent<Lease>): void {
    const { onNews, clock } = this.#options;
    if (event.type === "failed") {
      this.#lastNewsMs = null;
      this.#tellOnce(event.error instanceof ForbiddenError, event.error.kind);
      onNews({ type: "health" });
      return;
    }
    this.#lastNewsMs = clock.monotonic();
    switch (event.type) {
      case "initial":
      case "restarted": {
        const [lease] = event.list.items;
        // The first list comes with the elector's own first read, so only a later one is news when it is empty.
        const empty: LeaseNews = { type: event.type === "restarted" ? "look" : "health" };
        onNews(lease === undefined ? empty : found(decodeLease(lease)));
        break;
      }
      case "added":
      case "modified":
        onNews(found(decodeLease(event.object)));
        break;
      case "deleted":
        onNews({ type: "deleted", uid: event.object.metadata.uid });
        break;
      case "undecodable":
        onNews({ type: "look" });
        break;
    }
  }

  #tellOnce(forbidden: boolean, errorClass: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#options.logger.info(
      forbidden
        ? "The Role does not allow to watch the election Lease, so polling alone goes on"
        : "The watch of the election Lease failed, so polling goes on until it works",
      { lease: this.#options.leaseName, error: errorClass },
    );
  }
}

function found(record: LeaseRecord): LeaseNews {
  return { type: "found", record };
}
