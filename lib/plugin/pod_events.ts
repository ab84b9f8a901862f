/**
 * Events about the life of this pod: kubernetes-plugin 11.
 *
 * @module
 */

import { type EventReport, EventWriter, type EventWriterParts } from "../controllers/events.ts";
import { type Candidate, LeadershipLostError } from "../election/mod.ts";
import { clipped } from "../election/options.ts";
import type { PodInfo } from "./pod_info.ts";

/** The program that reports, as dashboards of the contract know it. */
export const REPORTING_CONTROLLER = "autumn-plugin-kubernetes";

/** Milliseconds for the last Event of a process. */
const LAST_EVENT_MS = 2_000;

/** What {@linkcode createPodEvents} takes. */
export interface PodEventsOptions
  extends Omit<EventWriterParts, "reportingController" | "reportingInstance"> {
  readonly podInfo: PodInfo;
  /** Where the Events go when the pod does not know its namespace. */
  readonly namespace: string;
}

/** Writes about this pod; `null` when the pod has no name, and nothing can be written about it. */
export function createPodEvents(options: PodEventsOptions): PodEvents | null {
  const { name } = options.podInfo;
  return name === undefined ? null : new PodEvents(name, options);
}

/** Writes what happens to this pod. Everything but the last Event is written in the background, and nothing fails. */
export class PodEvents {
  readonly #writer: EventWriter;
  readonly #regarding: EventReport["regarding"];

  /** @param name The pod's name. */
  constructor(name: string, { podInfo, namespace, ...parts }: PodEventsOptions) {
    this.#writer = new EventWriter({
      ...parts,
      reportingController: REPORTING_CONTROLLER,
      reportingInstance: name,
    });
    this.#regarding = {
      apiVersion: "v1",
      kind: "Pod",
      name,
      namespace: podInfo.namespace ?? namespace,
      ...(podInfo.uid === undefined ? {} : { uid: podInfo.uid }),
    };
  }

  /** The application has started. */
  started(mode: string): void {
    this.#write("Normal", "Started", "Start", `The application started in mode ${mode}`);
  }

  /** Tells of each term as it begins and, unless the elector stops, as it is lost. Ends with the candidate. */
  async followTerms(candidate: Pick<Candidate, "leadership" | "terms">): Promise<void> {
    const { leadership } = candidate;
    const who = `${clipped(leadership.identity)} on the Lease ${leadership.leaseName}`;
    for await (const term of candidate.terms()) {
      this.#write("Normal", "LeaderElected", "Elect", `Leader is ${who}`);
      // Not awaited: whatever the body of this loop waits for, the term waits for.
      term.signal.addEventListener("abort", () => {
        const reason: unknown = term.signal.reason;
        const why = reason instanceof LeadershipLostError ? reason.reason : "unknown";
        if (why === "stopped") return;
        this.#write("Warning", "LeaderLost", "Elect", `No longer leader is ${who}: ${why}`);
      }, { once: true });
    }
  }

  /** Writes the last Event, and waits for all that are under way: 2 s at most. */
  async stopping(): Promise<void> {
    this.#write("Normal", "Stopping", "Stop", "The application is stopping");
    await this.#writer.stop(LAST_EVENT_MS);
  }

  /** Ends without another Event. */
  abort(): void {
    void this.#writer.stop(0);
  }

  #write(type: EventReport["type"], reason: string, action: string, note: string): void {
    this.#writer.report({ regarding: this.#regarding, type, reason, action, note });
  }
}
