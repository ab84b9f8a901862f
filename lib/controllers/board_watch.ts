/**
 * One of the watches behind the board: what it tells, brought to it.
 *
 * @module
 */

import type { KubeObject, ObjectList, Stored, UndecodableObject, Watch } from "../kube/api.ts";
import type { Logger } from "../runtime/log.ts";
import type { ControllerMetrics } from "./metrics.ts";

/** What a {@linkcode BoardWatch} is made of. */
export interface BoardWatchParts<T extends KubeObject> {
  /** The plural, for log lines and figures. */
  readonly resource: string;
  readonly watch: Watch<T>;
  readonly logger: Logger;
  readonly metrics: Pick<ControllerMetrics, "restarted" | "undecodable">;
  /** Told of the whole state: forget what you knew. */
  readonly listed: (list: ObjectList<T>) => void;
  /** Told of one object. */
  readonly changed: (object: Stored<T>, deleted: boolean) => void;
  /** Told of an object that does not have its kind's form. */
  readonly unreadable: (object: UndecodableObject) => void;
}

/** Iterates a watch. */
export class BoardWatch<T extends KubeObject> {
  readonly #parts: BoardWatchParts<T>;
  #synced = false;
  #restarting = false;
  #trouble = "";

  constructor(parts: BoardWatchParts<T>) {
    this.#parts = parts;
  }

  /** The plural of what is watched. */
  get resource(): string {
    return this.#parts.resource;
  }

  /** True once the whole state was told. */
  get synced(): boolean {
    return this.#synced;
  }

  /** The class of the error while the watch fails, for example `unavailable`; empty while it works. */
  get trouble(): string {
    return this.#trouble;
  }

  /** Lists anew. While that is under way already, or the first list has not come yet, nothing is added to it. */
  restart(): void {
    if (!this.#synced || this.#restarting) return;
    this.#restarting = true;
    this.#parts.watch.restart();
  }

  /** Runs until the watch ends. */
  async run(): Promise<void> {
    const { resource, watch, logger, metrics, listed, changed } = this.#parts;
    for await (const event of watch) {
      this.#trouble = event.type === "failed" ? event.error.kind : "";
      switch (event.type) {
        case "initial":
        case "restarted":
          this.#synced = true;
          this.#restarting = false;
          if (event.type === "restarted") metrics.restarted(resource, event.reason);
          for (const object of event.list.undecodable) this.#unreadable(object);
          listed(event.list);
          break;
        case "added":
        case "modified":
        case "deleted":
          changed(event.object, event.type === "deleted");
          break;
        case "undecodable":
          this.#unreadable(event.object);
          break;
        case "failed":
          logger.warn("watch failed", { resource, error: event.error.kind });
      }
    }
  }

  #unreadable(object: UndecodableObject): void {
    this.#parts.metrics.undecodable(this.#parts.resource);
    this.#parts.unreadable(object);
  }
}
