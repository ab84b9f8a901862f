/**
 * Who calls: asks the API server about a token, and remembers a yes for a little while. deploy-api 3, with differences 1
 * and 12.
 *
 * - A no of the review is 401. A review that could not be held is 503 (difference 1), so that a client does not throw away
 *   good credentials since the API server was away.
 * - Requests with the same token wait for one review.
 * - A flood of unknown tokens cannot keep known callers out: a part of the reviews in flight is kept for tokens that were
 *   accepted lately.
 * - Only the caller's identity is remembered. What the caller may do is asked anew for every request.
 *
 * @module
 */

import type { KubeApi } from "../kube/api.ts";
import { TOKEN_REVIEWS, type TokenReview } from "../kube/resources.ts";
import { sha256Hex } from "../records/sha256.ts";
import type { Clock } from "../runtime/clock.ts";
import { RecentlyUsed } from "../runtime/recently_used.ts";
import type { Caller } from "./authorize.ts";
import { isDnsLabel, isDnsSubdomain } from "./dns_names.ts";
import { refusedByOwnClaims } from "./token_claims.ts";

export type { Caller };

/** The audience that tokens must have unless another is configured. */
export const DEFAULT_AUDIENCE = "bloodraven-deploy";

/** How long an accepted token is not reviewed again, in milliseconds from the end of its review. */
export const CACHE_TTL_MS = 15_000;
/** How many accepted tokens are remembered at most. A full cache takes no more, and drops none. */
export const CACHE_ENTRIES = 1_024;
/** How many reviews run at once. */
export const MAX_REVIEWS = 64;
/** How many of {@linkcode MAX_REVIEWS} are kept for tokens that were accepted within {@linkcode KNOWN_MS}. */
export const REVIEWS_FOR_KNOWN = 16;
/** How long a token counts as known after it was accepted, in milliseconds. */
export const KNOWN_MS = 3_600_000;
/** How many known tokens are remembered at most; the one accepted longest ago goes first. */
export const KNOWN_ENTRIES = 8_192;

/**
 * What became of one call of {@linkcode TokenReviewer.review}.
 *
 * - `cached`: accepted from memory.
 * - `accepted`, `refused`: the review said so. Each of those who waited for the same review counts.
 * - `refused_by_claims`: the token's own claims rule it out.
 * - `unavailable`: the review could not be held.
 * - `busy`: too many reviews were in flight.
 * - `cancelled`: the caller went away first.
 */
export type ReviewOutcome =
  | "cached"
  | "accepted"
  | "refused"
  | "refused_by_claims"
  | "unavailable"
  | "busy"
  | "cancelled";

/** Counts outcomes. */
export interface ReviewMetrics {
  reviewed(outcome: ReviewOutcome): void;
}

/** Too many reviews are in flight: 503 `unavailable`. */
export class ReviewsBusyError extends Error {
  override readonly name = "ReviewsBusyError";
  constructor() {
    super(`Cannot review the token as too many reviews are in flight: the limit is ${MAX_REVIEWS}`);
  }
}

/** What a {@linkcode TokenReviewer} is made of. */
export interface TokenReviewerParts {
  readonly api: KubeApi;
  readonly clock: Clock;
  /** The audience that tokens must have. An empty one stands for {@linkcode DEFAULT_AUDIENCE}. */
  readonly audience: string;
  readonly metrics?: ReviewMetrics;
}

/** A review that runs, for everyone who brings its token. */
interface Flight {
  readonly answer: Promise<Caller | null>;
  readonly controller: AbortController;
  waiting: number;
}

/** Authenticates callers. */
export class TokenReviewer {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #audience: string;
  readonly #metrics: ReviewMetrics | undefined;
  /** By the hash of the token, as are the other two: no token is kept. */
  readonly #cache = new Map<string, { readonly caller: Caller; readonly expiresAtMs: number }>();
  /** When a token was accepted last, oldest first. */
  readonly #acceptedAtMs = new RecentlyUsed<number>(KNOWN_ENTRIES);
  readonly #flights = new Map<string, Flight>();
  #reviewsInFlight = 0;
  #unknownInFlight = 0;

  constructor({ api, clock, audience, metrics }: TokenReviewerParts) {
    this.#api = api;
    this.#clock = clock;
    this.#audience = audience || DEFAULT_AUDIENCE;
    this.#metrics = metrics;
  }

  /**
   * Tells who brings a token.
   *
   * @param signal Ends the wait of this caller: it rejects with the signal's reason. The review goes on as long as others
   * wait for it.
   * @returns `null` when the token is not accepted: 401.
   * @throws {KubeError} The review could not be held: 503.
   * @throws {ReviewsBusyError} Too many reviews are in flight: 503.
   */
  async review(token: string, signal: AbortSignal): Promise<Caller | null> {
    signal.throwIfAborted();
    const hash = sha256Hex(token);
    const cached = this.#cache.get(hash);
    if (cached !== undefined && this.#clock.monotonic() < cached.expiresAtMs) {
      this.#metrics?.reviewed("cached");
      return cached.caller;
    }
    if (refusedByOwnClaims(token, this.#audience, this.#clock.wall())) {
      this.#metrics?.reviewed("refused_by_claims");
      return null;
    }
    const flight = this.#flights.get(hash) ?? this.#start(token, hash);
    if (flight === null) {
      this.#metrics?.reviewed("busy");
      throw new ReviewsBusyError();
    }
    try {
      const caller = await this.#wait(flight, signal);
      this.#metrics?.reviewed(caller === null ? "refused" : "accepted");
      return caller;
    } catch (error) {
      this.#metrics?.reviewed(signal.aborted ? "cancelled" : "unavailable");
      throw error;
    }
  }

  /** Starts a review, or returns `null` when there is no room for it. */
  #start(token: string, hash: string): Flight | null {
    const known = this.#isKnown(hash);
    if (this.#reviewsInFlight >= MAX_REVIEWS) return null;
    if (!known && this.#unknownInFlight >= MAX_REVIEWS - REVIEWS_FOR_KNOWN) return null;
    this.#reviewsInFlight++;
    if (!known) this.#unknownInFlight++;
    const controller = new AbortController();
    const flight: Flight = {
      answer: this.#ask(token, hash, controller.signal).finally(() => {
        this.#reviewsInFlight--;
        if (!known) this.#unknownInFlight--;
        // An abandoned flight left the map before it ended, and a newer one may have its place.
        if (this.#flights.get(hash) === flight) this.#flights.delete(hash);
      }),
      controller,
      waiting: 0,
    };
    this.#flights.set(hash, flight);
    return flight;
  }

  /** Waits for a review until `signal` aborts. Who leaves last ends it. */
  #wait(flight: Flight, signal: AbortSignal): Promise<Caller | null> {
    flight.waiting++;
    return new Promise((resolve, reject) => {
      const leave = () => {
        reject(signal.reason);
        if (--flight.waiting === 0) this.#abandon(flight);
      };
      signal.addEventListener("abort", leave, { once: true });
      const stay = () => signal.removeEventListener("abort", leave);
      flight.answer.finally(stay).then(resolve, reject);
    });
  }

  #abandon(flight: Flight): void {
    // From now on nobody may join it, since it ends without an answer.
    for (const [hash, other] of this.#flights) if (other === flight) this.#flights.delete(hash);
    flight.controller.abort(new DOMException("Nobody waits for the review", "AbortError"));
  }

  async #ask(token: string, hash: string, signal: AbortSignal): Promise<Caller | null> {
    const review = await this.#api.create(TOKEN_REVIEWS, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenReview",
      metadata: {},
      spec: { token, audiences: [this.#audience] },
    }, { signal });
    const caller = reviewedCaller(review, this.#audience);
    if (caller === null) this.#acceptedAtMs.delete(hash);
    else this.#remember(hash, caller);
    return caller;
  }

  #remember(hash: string, caller: Caller): void {
    const now = this.#clock.monotonic();
    for (const [key, entry] of this.#cache) {
      if (now >= entry.expiresAtMs) this.#cache.delete(key);
    }
    if (this.#cache.size < CACHE_ENTRIES) {
      this.#cache.set(hash, { caller, expiresAtMs: now + CACHE_TTL_MS });
    }
    this.#acceptedAtMs.set(hash, now);
  }

  #isKnown(hash: string): boolean {
    const acceptedAtMs = this.#acceptedAtMs.get(hash);
    return acceptedAtMs !== undefined && this.#clock.monotonic() - acceptedAtMs <= KNOWN_MS;
  }
}

/**
 * The caller that a review names, or `null` when it does not accept the token: it must be authenticated without an error,
 * for this audience, and a service account (`system:serviceaccount:NAMESPACE:NAME`).
 */
export function reviewedCaller(review: TokenReview, audience: string): Caller | null {
  const { authenticated, error, audiences, user } = review.status ?? {};
  if (authenticated !== true || error || !audiences?.includes(audience)) return null;
  const [system, kind, namespace, serviceAccount, ...more] = (user?.username ?? "").split(":");
  if (system !== "system" || kind !== "serviceaccount" || more.length > 0) return null;
  if (namespace === undefined || !isDnsLabel(namespace)) return null;
  if (serviceAccount === undefined || !isDnsSubdomain(serviceAccount)) return null;
  return { namespace, serviceAccount };
}
