import assert from "node:assert/strict";
import type { KubeObject } from "../../lib/kube/api.ts";
import { TOKEN_REVIEWS } from "../../lib/kube/resources.ts";
import { UnavailableError } from "../../lib/kube/errors.ts";
import {
  CACHE_ENTRIES,
  CACHE_TTL_MS,
  KNOWN_ENTRIES,
  KNOWN_MS,
  MAX_REVIEWS,
  type ReviewOutcome,
  REVIEWS_FOR_KNOWN,
  ReviewsBusyError,
  TokenReviewer,
} from "../../lib/auth/token_review.ts";
import { TEST_EPOCH_MS, TestClock } from "../../lib/testing/test_clock.ts";
import { scriptedApi } from "./scripted_api.ts";
import { jwt } from "./tokens.ts";

const AUDIENCE = "bloodraven-deploy";
const USER = "system:serviceaccount:app-ns:deployer";
const CALLER = { namespace: "app-ns", serviceAccount: "deployer" };
const yes = (username = USER, audiences: readonly string[] = [AUDIENCE]) => ({
  authenticated: true,
  audiences,
  user: { username },
});
const NO = { authenticated: false };
const UNAVAILABLE = new UnavailableError({ verb: "create", resource: "tokenreviews", target: "" });

/** A review that waits until the test answers it. */
interface OpenReview {
  readonly token: string;
  readonly signal: AbortSignal;
  answer(status: unknown): void;
  fail(error: unknown): void;
}

function start({ audience = AUDIENCE, auto = true }: { audience?: string; auto?: boolean } = {}) {
  const clock = new TestClock();
  const reviewed: KubeObject[] = [];
  const open: OpenReview[] = [];
  const outcomes: ReviewOutcome[] = [];
  const state: { status: unknown; auto: boolean } = { status: yes(), auto };
  const api = scriptedApi({
    create(object, { signal }) {
      reviewed.push(object);
      if (state.auto) return Promise.resolve({ metadata: {}, status: state.status });
      return new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        open.push({
          token: TOKEN_REVIEWS.parse(object).spec?.token ?? "",
          signal,
          answer: (status) => resolve({ metadata: {}, status }),
          fail: reject,
        });
      });
    },
  });
  const metrics = { reviewed: (outcome: ReviewOutcome) => outcomes.push(outcome) };
  const reviewer = new TokenReviewer({ api, clock, audience, metrics });
  const review = (token: string, signal = new AbortController().signal) =>
    reviewer.review(token, signal);
  return { clock, reviewed, open, outcomes, state, review };
}

/** Lets promises that are settled be followed. */
const settle = (clock: TestClock) => clock.advance(0);

Deno.test("deploy-api 16 item 16: the review asks for exactly the token and the audience", async () => {
  const { reviewed, review, outcomes } = start();
  assert.deepEqual(await review("sa-token"), CALLER);
  assert.deepEqual(reviewed, [{
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    metadata: {},
    spec: { token: "sa-token", audiences: [AUDIENCE] },
  }]);
  assert.deepEqual(outcomes, ["accepted"]);
});

Deno.test("deploy-api 16 item 16: what a review does not accept is refused and reviewed again", async () => {
  const refusals: readonly unknown[] = [
    undefined,
    NO,
    { ...yes(), authenticated: undefined },
    { ...yes(), error: "token expired" },
    yes(USER, ["other"]),
    yes(USER, []),
    { ...yes(), audiences: undefined },
    { ...yes(), user: undefined },
    ...[
      "",
      "alice",
      "system:node:worker",
      "system:serviceaccount:app-ns",
      "system:serviceaccount:app-ns:",
      "system:serviceaccount::deployer",
      "system:serviceaccount:App:deployer",
      "system:serviceaccount:app.ns:deployer",
      `system:serviceaccount:${"a".repeat(64)}:deployer`,
      "system:serviceaccount:app-ns:de_ployer",
      `system:serviceaccount:app-ns:${"a".repeat(254)}`,
      "system:serviceaccount:app-ns:deployer:more",
      "kube:serviceaccount:app-ns:deployer",
      "system:ServiceAccount:app-ns:deployer",
    ].map((username) => yes(username)),
  ];
  for (const status of refusals) {
    const { reviewed, review, outcomes, state } = start();
    state.status = status;
    assert.equal(await review("sa-token"), null, JSON.stringify(status));
    assert.equal(await review("sa-token"), null);
    assert.equal(reviewed.length, 2);
    assert.deepEqual(outcomes, ["refused", "refused"]);
  }
});

Deno.test("deploy-api 16 item 17: another audience is passed on, and more in the reply are tolerated", async () => {
  const { reviewed, review, state } = start({ audience: "mine" });
  state.status = yes(USER, ["other", "mine"]);
  assert.deepEqual(await review("sa-token"), CALLER);
  assert.deepEqual(TOKEN_REVIEWS.parse(reviewed[0]).spec?.audiences, ["mine"]);
});

Deno.test("an empty audience stands for the default one", async () => {
  const { reviewed, review } = start({ audience: "" });
  assert.deepEqual(await review("sa-token"), CALLER);
  assert.deepEqual(TOKEN_REVIEWS.parse(reviewed[0]).spec?.audiences, [AUDIENCE]);
});

Deno.test("deploy-api 16 item 17: an accepted token is not reviewed again until the instant it runs out", async () => {
  const { clock, reviewed, review, outcomes } = start();
  await review("sa-token");
  await clock.advance(CACHE_TTL_MS - 1);
  assert.deepEqual(await review("sa-token"), CALLER);
  assert.equal(reviewed.length, 1);
  await review("other-token");
  assert.equal(reviewed.length, 2);
  await clock.advance(1);
  assert.deepEqual(await review("sa-token"), CALLER);
  assert.equal(reviewed.length, 3);
  assert.deepEqual(outcomes, ["accepted", "cached", "accepted", "accepted"]);
  assert.ok(CACHE_TTL_MS > 0 && CACHE_TTL_MS <= 30_000);
});

Deno.test("the cache counts from the end of the review", async () => {
  const { clock, reviewed, open, review, state } = start({ auto: false });
  const first = review("sa-token");
  await clock.advance(5_000);
  open[0]?.answer(yes());
  await first;
  await clock.advance(CACHE_TTL_MS - 1);
  await review("sa-token");
  assert.equal(reviewed.length, 1);
  state.auto = true;
  await clock.advance(1);
  await review("sa-token");
  assert.equal(reviewed.length, 2);
});

Deno.test("a wall clock that jumps neither keeps nor drops an accepted token", async () => {
  const { clock, reviewed, review } = start();
  await review("sa-token");
  clock.jumpWall(3_600_000);
  await review("sa-token");
  assert.equal(reviewed.length, 1);
  clock.jumpWall(-7_200_000);
  await clock.advance(CACHE_TTL_MS);
  await review("sa-token");
  assert.equal(reviewed.length, 2);
});

Deno.test("deploy-api 16 item 28: a full cache takes no more and drops none, and is emptied as entries run out", async () => {
  const { clock, reviewed, review } = start();
  for (let index = 0; index < CACHE_ENTRIES; index++) await review(`token-${index}`);
  assert.equal(reviewed.length, CACHE_ENTRIES);
  await review("late");
  await review("late");
  assert.equal(reviewed.length, CACHE_ENTRIES + 2);
  await review("token-0");
  assert.equal(reviewed.length, CACHE_ENTRIES + 2);
  await clock.advance(CACHE_TTL_MS);
  await review("late");
  await review("late");
  assert.equal(reviewed.length, CACHE_ENTRIES + 3);
});

Deno.test("difference 1: a review that cannot be held is an error, not a refusal, and is not remembered", async () => {
  const { clock, open, review, outcomes } = start({ auto: false });
  for (let round = 0; round < 2; round++) {
    const pending = review("sa-token");
    await settle(clock);
    open.pop()?.fail(UNAVAILABLE);
    await assert.rejects(pending, UNAVAILABLE);
  }
  assert.deepEqual(outcomes, ["unavailable", "unavailable"]);
});

Deno.test("deploy-api 16 item 29, difference 12: twenty at once with one token wait for one review", async () => {
  const { clock, reviewed, open, review, outcomes } = start({ auto: false });
  const all = Promise.all(Array.from({ length: 20 }, () => review("sa-token")));
  await settle(clock);
  assert.equal(reviewed.length, 1);
  open[0]?.answer(yes());
  assert.deepEqual(await all, Array.from({ length: 20 }, () => CALLER));
  assert.deepEqual(outcomes, Array.from({ length: 20 }, () => "accepted"));
  await review("sa-token");
  assert.equal(reviewed.length, 1);
});

Deno.test("difference 12: one that leaves does not end the review for the others", async () => {
  const { clock, reviewed, open, review, outcomes } = start({ auto: false });
  const leaver = new AbortController();
  const left = review("sa-token", leaver.signal);
  const stays = review("sa-token");
  leaver.abort(new Error("client gone"));
  await assert.rejects(left, { message: "client gone" });
  assert.equal(open[0]?.signal.aborted, false);
  open[0]?.answer(yes());
  assert.deepEqual(await stays, CALLER);
  await settle(clock);
  assert.equal(reviewed.length, 1);
  assert.deepEqual(outcomes, ["cancelled", "accepted"]);
});

Deno.test("difference 12: the last one to leave ends the review, and the next caller gets a new one", async () => {
  const { clock, reviewed, open, review } = start({ auto: false });
  const leaver = new AbortController();
  const left = [review("sa-token", leaver.signal), review("sa-token", leaver.signal)];
  leaver.abort(new Error("client gone"));
  // Before the abandoned review has ended, another caller comes.
  const next = review("sa-token");
  await Promise.all(left.map((pending) => assert.rejects(pending, { message: "client gone" })));
  assert.equal(open[0]?.signal.aborted, true);
  assert.equal(reviewed.length, 2);
  assert.equal(open[1]?.signal.aborted, false);
  await settle(clock);
  const joined = review("sa-token");
  assert.equal(reviewed.length, 2, "the end of the abandoned review does not hide the new one");
  open[1]?.answer(yes());
  assert.deepEqual(await Promise.all([next, joined]), [CALLER, CALLER]);
});

Deno.test("a caller that is gone already causes no review", async () => {
  const { reviewed, review } = start();
  const reason = new Error("client gone");
  await assert.rejects(review("sa-token", AbortSignal.abort(reason)), reason);
  assert.equal(reviewed.length, 0);
});

Deno.test("a caller that leaves after its answer disturbs nobody", async () => {
  const { clock, review, outcomes } = start();
  const controller = new AbortController();
  assert.deepEqual(await review("sa-token", controller.signal), CALLER);
  controller.abort(new Error("late"));
  await settle(clock);
  assert.deepEqual(outcomes, ["accepted"]);
});

Deno.test("difference 12: a token whose own claims rule it out is refused without a review", async () => {
  const { reviewed, review, outcomes } = start();
  const exp = TEST_EPOCH_MS / 1000 - 61;
  assert.equal(await review(jwt({ aud: AUDIENCE, exp })), null);
  assert.equal(await review(jwt({ aud: "https://kubernetes.default.svc" })), null);
  assert.equal(reviewed.length, 0);
  assert.deepEqual(outcomes, ["refused_by_claims", "refused_by_claims"]);
  assert.deepEqual(await review(jwt({ aud: AUDIENCE })), CALLER);
  assert.equal(reviewed.length, 1);
});

/** Fills all places that tokens nobody has seen may take. */
async function flood(review: (token: string) => Promise<unknown>, clock: TestClock, from = 0) {
  const places = MAX_REVIEWS - REVIEWS_FOR_KNOWN;
  const pending = Array.from({ length: places }, (_, index) => review(`bad-${from + index}`));
  await settle(clock);
  return pending;
}

Deno.test("difference 12: a flood of unknown tokens leaves places for those that were accepted lately", async () => {
  const { clock, reviewed, open, review, outcomes, state } = start();
  for (let index = 0; index < REVIEWS_FOR_KNOWN + 1; index++) await review(`known-${index}`);
  await clock.advance(CACHE_TTL_MS);
  state.auto = false;
  reviewed.length = 0;
  const unknown = await flood(review, clock);
  assert.equal(reviewed.length, MAX_REVIEWS - REVIEWS_FOR_KNOWN);
  await assert.rejects(review("one-more"), ReviewsBusyError);
  const known = Array.from({ length: REVIEWS_FOR_KNOWN }, (_, index) => review(`known-${index}`));
  await settle(clock);
  assert.equal(reviewed.length, MAX_REVIEWS);
  await assert.rejects(review(`known-${REVIEWS_FOR_KNOWN}`), ReviewsBusyError);
  // Who brings a token that is being reviewed already needs no place.
  const joined = review("known-0");
  for (const { token, answer } of open) answer(token.startsWith("known") ? yes() : NO);
  assert.deepEqual(await Promise.all(known), known.map(() => CALLER));
  assert.deepEqual(await joined, CALLER);
  assert.deepEqual(await Promise.all(unknown), unknown.map(() => null));
  assert.equal(outcomes.filter((outcome) => outcome === "busy").length, 2);
});

Deno.test("difference 12: places are given back, however a review ends", async () => {
  const { clock, open, review, state } = start({ auto: false });
  for (let round = 0; round < 3; round++) {
    open.length = 0;
    const unknown = await flood(review, clock, round * 100);
    const ended = Promise.allSettled(unknown);
    for (const [index, { answer, fail }] of open.entries()) {
      if (index % 2 === 0) answer(NO);
      else fail(UNAVAILABLE);
    }
    await ended;
  }
  state.auto = true;
  assert.deepEqual(await review("fresh"), CALLER);
});

Deno.test("difference 12: places are given back when all callers leave", async () => {
  const { clock, reviewed, review, state } = start({ auto: false });
  const controller = new AbortController();
  const unknown = await flood((token) => review(token, controller.signal), clock);
  const ended = Promise.allSettled(unknown);
  controller.abort(new Error("gone"));
  await ended;
  await settle(clock);
  state.auto = true;
  assert.deepEqual(await review("fresh"), CALLER);
  assert.equal(reviewed.length, MAX_REVIEWS - REVIEWS_FOR_KNOWN + 1);
});

Deno.test("difference 12: a token is known for an hour, and no longer once a review refused it", async () => {
  const { clock, open, review, state } = start();
  await review("old");
  await review("refused-later");
  await clock.advance(KNOWN_MS);
  state.status = NO;
  assert.equal(await review("refused-later"), null);
  state.auto = false;
  const unknown = await flood(review, clock);
  await assert.rejects(review("refused-later"), ReviewsBusyError);
  const old = review("old");
  await settle(clock);
  open.at(-1)?.answer(NO);
  assert.equal(await old, null);
  for (const { answer } of open) answer(NO);
  await Promise.all(unknown);

  state.auto = true;
  state.status = yes();
  await review("old");
  await clock.advance(KNOWN_MS + 1);
  state.auto = false;
  open.length = 0;
  const again = await flood(review, clock, 100);
  await assert.rejects(review("old"), ReviewsBusyError);
  for (const { answer } of open) answer(NO);
  await Promise.all(again);
});

Deno.test("difference 12: of too many known tokens the one accepted longest ago is forgotten", async () => {
  const { clock, open, review, state } = start();
  await review("first");
  await review("second");
  await clock.advance(CACHE_TTL_MS);
  await review("first");
  for (let index = 0; index < KNOWN_ENTRIES - 1; index++) await review(`token-${index}`);
  await clock.advance(CACHE_TTL_MS);
  state.auto = false;
  const unknown = await flood(review, clock);
  await assert.rejects(review("second"), ReviewsBusyError);
  const first = review("first");
  await settle(clock);
  open.at(-1)?.answer(yes());
  assert.deepEqual(await first, CALLER);
  for (const { answer } of open) answer(NO);
  await Promise.all(unknown);
});
