/**
 * How an application is: indicators, each with a limit, and what they say together (kubernetes-plugin 14).
 *
 * @module
 */

import { type Clock, startDeadline } from "../runtime/clock.ts";
import { errorClass } from "../runtime/error_class.ts";

/** `up`: it works. `down`: it does not. `unknown`: it cannot be said, which is no reason to turn traffic away. */
export type HealthStatus = "up" | "down" | "unknown";

/** A detail of a health page. Never a URL, a token, or the text of an upstream error. */
export type HealthDetail =
  | string
  | number
  | boolean
  | { readonly [name: string]: HealthDetail };

/** What an indicator says. */
export interface Health {
  readonly status: HealthStatus;
  /** For people. Shown only where the health page shows details. @default {{}} */
  readonly details?: Readonly<Record<string, HealthDetail>>;
}

/**
 * Which pages an indicator decides about. `readiness`: both, and a `down` takes this replica out of the traffic.
 * `health`: the health page alone, which is right for whatever all replicas share: its outage would take them all out.
 */
export type HealthGroup = "health" | "readiness";

/** Says how one part is. */
export interface HealthIndicator {
  /** Names the part on the health page. Not blank, and unique in a host. */
  readonly name: string;
  readonly group: HealthGroup;
  /** Milliseconds for one check, more than 0; a check that takes longer says `unknown`. @default {2000} */
  readonly limitMs?: number;
  /**
   * Looks. What it throws says `down`, with the name of the error's class.
   *
   * @param signal Aborts at the limit.
   */
  check(signal: AbortSignal): Health | Promise<Health>;
}

/** What several indicators say together. */
export interface HealthReport {
  /** `down` when one is down; else `unknown` when one is unknown; else `up`. */
  readonly status: HealthStatus;
  /** What each says, by its name, in the order of registration. */
  readonly components: ReadonlyMap<string, Health>;
}

/** Milliseconds for a check that names no limit. */
const DEFAULT_LIMIT_MS = 2_000;

/** The indicators of a host. */
export class HealthIndicators {
  readonly #clock: Clock;
  readonly #indicators = new Map<string, HealthIndicator>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws {RangeError} The name is blank or taken, or the limit is not above 0. */
  add(indicator: HealthIndicator): void {
    const { name, limitMs = DEFAULT_LIMIT_MS } = indicator;
    if (name.trim() === "" || this.#indicators.has(name)) {
      throw new RangeError(
        `Cannot add a health indicator as 'name' must be its own and not blank: current value is ${
          JSON.stringify(name)
        }`,
      );
    }
    if (!(limitMs > 0)) {
      throw new RangeError(
        `Cannot add the health indicator '${name}' as 'limitMs' must be above 0: current value is ${limitMs}`,
      );
    }
    this.#indicators.set(name, indicator);
  }

  /**
   * Asks the indicators, all at once.
   *
   * @param group `readiness` asks those of that group alone, `health` asks all.
   */
  async check(group: HealthGroup): Promise<HealthReport> {
    const asked = [...this.#indicators.values()]
      .filter((indicator) => group === "health" || indicator.group === "readiness");
    const components = new Map(
      await Promise.all(asked.map(async (indicator): Promise<[string, Health]> => [
        indicator.name,
        await this.#ask(indicator),
      ])),
    );
    return { status: statusOf([...components.values()]), components };
  }

  async #ask(indicator: HealthIndicator): Promise<Health> {
    const { limitMs = DEFAULT_LIMIT_MS } = indicator;
    using limit = startDeadline(this.#clock, limitMs);
    const tooLate = new Promise<Health>((resolve) => {
      const health: Health = { status: "unknown", details: { error: "timeout" } };
      limit.signal.addEventListener("abort", () => resolve(health), { once: true });
    });
    return await Promise.race([look(indicator, limit.signal), tooLate]);
  }
}

/** It never rejects: a check that fails after its limit has nobody who would hear of it. */
async function look(indicator: HealthIndicator, signal: AbortSignal): Promise<Health> {
  try {
    return await indicator.check(signal);
  } catch (error) {
    return { status: "down", details: { error: errorClass(error) } };
  }
}

/** The worst of several. */
export function statusOf(healths: readonly Health[]): HealthStatus {
  const has = (status: HealthStatus) => healths.some((health) => health.status === status);
  if (has("down")) return "down";
  return has("unknown") ? "unknown" : "up";
}
