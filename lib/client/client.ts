/**
 * A client of the service: deploy-api 16.8.
 *
 * It uses web APIs and what it is given, so it runs wherever `fetch` does.
 *
 * @module
 */

import { isDnsSubdomain } from "../auth/dns_names.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import { type Acquisition, type AcquisitionParts, LOOK_MS, takeLease } from "./acquisition.ts";
import type { GroupView } from "./answers.ts";
import { type Authority, DdlMark } from "./authority.ts";
import { DeployCalls, type Fetch, type LeaseKind } from "./calls.ts";
import { carryOut, type DeploymentAuthority, type Loss } from "./deployment.ts";
import { ClientSettingsError, type HoldfastError, OperationInUseError } from "./errors.ts";
import { blockedBy, type Step, tryUntilDone } from "./patience.ts";
import {
  defaultStopMarginMs,
  type LeaseTiming,
  MAX_CLOCK_OFFSET_MS,
  type OwnDeadline,
  timingProblem,
  TTL_SECONDS,
} from "./rules.ts";

/** What a {@linkcode HoldfastClient} is made of. */
export interface ClientOptions {
  /** The base URL of the service: `https:`, without a query and without a password. */
  readonly url: string;
  /** The group. */
  readonly group: string;
  /** The name of the `MysqlDatabase` that is deployed to. */
  readonly instance: string;
  /** Gives the service account token. It is asked before each request. */
  readonly token: () => string | Promise<string>;
  /** Sends a request, and verifies the service's certificate. */
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** Milliseconds: the service's `deploy_api.max_clock_offset`. @default {1000} */
  readonly maxClockOffsetMs?: number;
}

/** What all leases have in common. */
export interface LeaseOptions {
  /**
   * The deployment: 1 to 128 bytes without a slash. Give each deployment one of its own, for example a UUID: one that was
   * revoked stays so for ever.
   */
  readonly operationId: string;
  /** Whole seconds, 5 to 120, and long enough for the stop margin. @default {30} */
  readonly ttlSeconds?: number;
  /**
   * Seconds by which work is cut off before the lease may be another one's, and half of that by which it is asked to stop.
   * At least twice the clock offset. @default {the greatest of 2 and a sixth of the ttl}
   */
  readonly stopMarginSeconds?: number;
  /**
   * How many seconds to wait while another one holds the lease or the group is unstable. A service that cannot be reached is
   * tried for at least 10 s. @default {0}
   */
  readonly waitSeconds?: number;
  /** The most seconds that a replica may lag; `null` for any. @default {null} */
  readonly maxLagSeconds?: number | null;
  /** Ends the wait. */
  readonly signal?: AbortSignal;
  /** Is told what is in the way, at each try. */
  readonly onWaiting?: (why: HoldfastError) => void;
  /** Is told each new deadline. It must not throw. */
  readonly onDeadline?: (deadline: OwnDeadline) => void;
}

/** The options of {@linkcode HoldfastClient.acquire}. */
export interface AcquireOptions extends LeaseOptions {
  /** @default {"migration"} */
  readonly kind?: LeaseKind;
}

/** The options of {@linkcode HoldfastClient.deploy}. */
export interface DeployOptions extends LeaseOptions {
  /** Holds planned failovers off too. @default {true} */
  readonly hold?: boolean;
  /** Releases the migration lease also after a failure when DDL had begun. @default {false} */
  readonly releaseOnFailure?: boolean;
  /**
   * Is called once when authority is lost, for a cleanup that is fenced. `deploy` waits for it, and passes over what it
   * throws.
   */
  readonly onLost?: (loss: Loss) => void | Promise<void>;
}

const DEFAULT_TTL_SECONDS = 30;

/** The longest wait, in seconds: beyond it a timer's number would lose its meaning. */
const MOST_WAIT_SECONDS = 30 * 24 * 3_600;

/** A caller of the service, for one group and one database. */
export class HoldfastClient {
  readonly group: string;
  readonly instance: string;
  readonly #parts: AcquisitionParts;
  readonly #maxClockOffsetMs: number;
  readonly #held = new Map<string, Authority | null>();

  /** @throws {ClientSettingsError} An option cannot be used. */
  constructor(options: ClientOptions) {
    const { group, instance, fetch, token, clock, entropy } = options;
    this.group = checkedName("group", group);
    this.instance = checkedName("instance", instance);
    this.#maxClockOffsetMs = options.maxClockOffsetMs ?? MAX_CLOCK_OFFSET_MS;
    const url = checkedUrl(options.url);
    const calls = new DeployCalls({ url, group, fetch, token, clock });
    const onView = (view: GroupView) => this.#compare(view);
    this.#parts = { calls, clock, entropy, group, instance, onView };
  }

  /**
   * Looks at the group. It tries for up to 10 s while the service cannot be reached.
   *
   * @throws {UnstableError} Nobody knows now where the group is. An unstable group is no error: see `stable`.
   * @throws {HoldfastError} @throws The signal's reason.
   */
  async observe({ signal }: { readonly signal?: AbortSignal } = {}): Promise<GroupView> {
    const { calls, group, instance } = this.#parts;
    const asked = { group, instance, operationId: "", grantLost: false };
    const look = async (leftMs: number): Promise<Step<GroupView>> => {
      const { answer } = await calls.observe(Math.min(LOOK_MS, leftMs), signal);
      if (answer.type !== "success") return blockedBy(answer, asked);
      this.#compare(answer.body);
      return { type: "done", value: answer.body };
    };
    return await tryUntilDone(this.#parts, { waitMs: 0, signal }, look);
  }

  /**
   * Takes a lease, which renews itself from then on. Release it, or dispose of it.
   *
   * ```ts
   * import type { HoldfastClient } from "@holdfast/holdfast/client";
   *
   * async function migrate(client: HoldfastClient, run: (signal: AbortSignal) => Promise<void>) {
   *   await using lease = await client.acquire({ operationId: "release-42", waitSeconds: 60 });
   *   await run(lease.signal);
   * }
   * ```
   *
   * @throws {ClientSettingsError} An option cannot be used; nothing was sent.
   * @throws {HeldError} @throws {UnstableError} The wait is over.
   * @throws {HoldfastError} Any other outcome. @throws The signal's reason; no lease is left behind.
   */
  async acquire(options: AcquireOptions): Promise<Authority> {
    return await this.#take(options.kind ?? "migration", options, new DdlMark());
  }

  /**
   * Does work under the migration lease and a hold: waits for them, renews them, aborts the work's signal before they end,
   * and releases them.
   *
   * The hold is released always. The migration lease is released after a success and after a failure before DDL; after DDL
   * began a failure leaves it to expire, so that nobody builds on a schema that nobody has looked at.
   *
   * ```ts
   * import type { HoldfastClient } from "@holdfast/holdfast/client";
   *
   * async function migrate(client: HoldfastClient, alter: (signal: AbortSignal) => Promise<void>) {
   *   await client.deploy({ operationId: "release-42" }, async (authority) => {
   *     authority.enteringDdl();
   *     await alter(authority.signal);
   *   });
   * }
   * ```
   *
   * @returns What the work returns.
   * @throws {AuthorityLostError} A lease ended during the work, also when the work did not mind. It is thrown once the work
   * has settled: a promise cannot be killed, so the work must heed `authority.signal`.
   * @throws What the work throws. @throws What {@linkcode HoldfastClient.acquire} throws.
   */
  async deploy<T>(
    options: DeployOptions,
    work: (authority: DeploymentAuthority) => T | Promise<T>,
  ): Promise<T> {
    const { hold = true, releaseOnFailure = false, onLost, onWaiting, signal } = options;
    const mark = new DdlMark();
    const { clock } = this.#parts;
    const ready: { authority?: DeploymentAuthority } = {};
    const tellDeadline = () => {
      const { authority } = ready;
      // After the loss of one lease the other one may still be renewed: that gives no time to anybody.
      if (authority === undefined || authority.isLost) return;
      options.onDeadline?.(authority.deadline);
    };
    const own = { ...options, onDeadline: tellDeadline };
    return await carryOut({
      clock,
      mark,
      signal,
      releaseOnFailure,
      onLost,
      onWaiting,
      waitMs: this.#acquisition("migration", options, mark).waitMs,
      takeMigration: (waitMs) =>
        this.#take("migration", { ...own, waitSeconds: waitMs / 1_000 }, mark),
      takeHold: hold
        ? (migration) => {
          const both = signal === undefined
            ? migration.signal
            : AbortSignal.any([migration.signal, signal]);
          return this.#take("failover-hold", { ...own, waitSeconds: 0, signal: both }, mark);
        }
        : null,
      onReady: (authority) => {
        ready.authority = authority;
        tellDeadline();
      },
    }, work);
  }

  async #take(kind: LeaseKind, options: LeaseOptions, mark: DdlMark): Promise<Authority> {
    const wanted = this.#acquisition(kind, options, mark);
    const key = `${kind} ${options.operationId}`;
    // A second grant would take the lease from the first.
    if (this.#held.has(key)) throw new OperationInUseError(options.operationId);
    this.#held.set(key, null);
    try {
      const authority = await takeLease(this.#parts, {
        ...wanted,
        // While the lease is being taken, one that was given back at once does not free the place.
        onEnd: () => {
          if (this.#held.get(key) !== null) this.#held.delete(key);
        },
      });
      if (authority.signal.aborted) this.#held.delete(key);
      else this.#held.set(key, authority);
      return authority;
    } catch (error) {
      this.#held.delete(key);
      throw error;
    }
  }

  /** Checks options. @throws {ClientSettingsError} */
  #acquisition(kind: LeaseKind, options: LeaseOptions, mark: DdlMark): Acquisition {
    const { operationId, maxLagSeconds = null, waitSeconds = 0 } = options;
    const { signal, onWaiting, onDeadline } = options;
    if (!(waitSeconds >= 0 && waitSeconds <= MOST_WAIT_SECONDS)) {
      throw unusable("waitSeconds", `a number from 0 to ${MOST_WAIT_SECONDS}`, waitSeconds);
    }
    if (maxLagSeconds !== null && !(maxLagSeconds >= 0)) {
      throw unusable("maxLagSeconds", "a number of 0 or more, or null", maxLagSeconds);
    }
    if (operationId === "") {
      throw unusable("operationId", "a text of 1 to 128 bytes", "empty");
    }
    return {
      kind,
      operationId,
      timing: leaseTiming(options, this.#maxClockOffsetMs),
      waitMs: waitSeconds * 1_000,
      maxLagSeconds,
      mark,
      signal,
      onWaiting,
      onDeadline,
    };
  }

  /**
   * A generation never falls. One that is above a lease's shows that the lease is worth nothing; one below is of a look
   * that is older than the lease.
   */
  #compare(view: GroupView): void {
    for (const authority of this.#held.values()) {
      if (authority !== null && view.topologyGeneration > authority.topologyGeneration) {
        authority.lose("topology_changed");
      }
    }
  }
}

/**
 * The timing of a lease, checked.
 *
 * @param maxClockOffsetMs Milliseconds. @default {1000}
 * @throws {ClientSettingsError} With the value and what would be right.
 */
export function leaseTiming(
  options: Pick<LeaseOptions, "ttlSeconds" | "stopMarginSeconds">,
  maxClockOffsetMs: number = MAX_CLOCK_OFFSET_MS,
): LeaseTiming {
  const { ttlSeconds = DEFAULT_TTL_SECONDS, stopMarginSeconds } = options;
  const ttlMs = ttlSeconds * 1_000;
  const stopMarginMs = stopMarginSeconds === undefined
    ? defaultStopMarginMs(ttlMs, maxClockOffsetMs)
    : stopMarginSeconds * 1_000;
  const timing = { ttlMs, stopMarginMs };
  switch (timingProblem(timing, maxClockOffsetMs)) {
    case "none":
      return timing;
    case "ttl_not_whole":
    case "ttl_out_of_range": {
      const wish = `a whole number of seconds from ${TTL_SECONDS.least} to ${TTL_SECONDS.most}`;
      throw unusable("ttlSeconds", wish, ttlSeconds);
    }
    case "margin_below_offset": {
      const wish = `at least twice the clock offset, ${2 * maxClockOffsetMs / 1_000}`;
      throw unusable("stopMarginSeconds", wish, stopMarginMs / 1_000);
    }
    case "ttl_too_short":
      throw unusable(
        "ttlSeconds",
        `so long that a third of it and 1 s are over before work must stop, ${
          2 * stopMarginMs / 1_000
        } s before its end`,
        ttlSeconds,
      );
  }
}

function unusable(option: string, wish: string, value: string | number): ClientSettingsError {
  return new ClientSettingsError(
    `Cannot take a lease as '${option}' must be ${wish}: current value is ${value}`,
  );
}

function checkedName(option: string, value: string): string {
  if (isDnsSubdomain(value)) return value;
  throw new ClientSettingsError(
    `Cannot call the service as '${option}' must be a DNS-1123 subdomain (lower-case letters, digits, hyphens and dots): current value is '${value}'`,
  );
}

function checkedUrl(text: string): string {
  const url = parsedUrl(text);
  if (url === null || url.protocol !== "https:") {
    throw new ClientSettingsError(
      "Cannot call the service as its URL must begin with https://: it may be set with HOLDFAST_URL",
    );
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new ClientSettingsError(
      "Cannot call the service as its URL must have no user, password, query or fragment: it may be set with HOLDFAST_URL",
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Node 20 has no `URL.parse`. */
function parsedUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}
