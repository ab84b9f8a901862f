/**
 * The work that exactly one replica does: it imports items, one after the other, as fast as a ConfigMap says.
 *
 * @module
 */

import {
  type Clock,
  type HostPlugin,
  type KubernetesContext,
  type KubernetesTask,
  sleep,
} from "@holdfast/holdfast";
import type { Term } from "@holdfast/holdfast/election";
import { Counter, Registry } from "prom-client";
import { readSettings } from "./settings.ts";

/** How far the work is. */
export interface Progress {
  /** The fencing token of the term that works, or worked last. Whatever stores the items refuses a lower one. */
  readonly token: string | null;
  readonly done: number;
  readonly total: number;
  readonly state: "finished" | "idle" | "running" | "stopped";
}

/** What an {@linkcode Importer} takes. */
export interface ImporterOptions {
  /** How many items there are. */
  readonly total: number;
  /** The host's clock: a test moves it. */
  readonly clock: Clock;
}

/** The leader task, and the plugin that shows its figures. */
export class Importer implements KubernetesTask {
  readonly name = "importer";
  readonly #options: ImporterOptions;
  readonly #registry = new Registry();
  readonly #items: Counter;
  #progress: Progress;

  constructor(options: ImporterOptions) {
    this.#options = options;
    this.#progress = { token: null, done: 0, total: options.total, state: "idle" };
    this.#items = new Counter({
      name: "example_items_imported_total",
      help: "Items that this replica imported.",
      registers: [this.#registry],
    });
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** Works for one term. */
  async run(term: Term, { configMaps }: KubernetesContext): Promise<void> {
    const { total, clock } = this.#options;
    this.#progress = { token: term.token, done: 0, total, state: "running" };
    try {
      while (this.#progress.done < total) {
        const { pauseMs } = await readSettings(configMaps);
        await sleep(clock, pauseMs, term.signal);
        // Asked before each step: a machine that stood still does not take one step too many.
        if (!term.isValid()) return this.#set("stopped");
        this.#items.inc();
        this.#progress = { ...this.#progress, done: this.#progress.done + 1 };
      }
      this.#set("finished");
    } catch (error) {
      this.#set("stopped");
      // Ending with what the signal aborted with is the usual way to stop; anything else ends the term.
      throw error;
    }
  }

  /** Puts the figures and the health of the importer on the host's pages. */
  get plugin(): HostPlugin {
    return {
      name: "importer",
      install: (host) => {
        host.addMetrics({ name: "importer", registry: this.#registry });
        host.addHealth({
          name: "importer",
          group: "health",
          check: () => {
            const { state, done, total } = this.#progress;
            return { status: "up", details: { state, done, total } };
          },
        });
      },
    };
  }

  #set(state: Progress["state"]): void {
    this.#progress = { ...this.#progress, state };
  }
}
