import assert from "node:assert/strict";
import fc from "fast-check";
import type { Answer, GrantedBody, GroupView, RenewedBody } from "../../lib/client/answers.ts";
import {
  deadlineOnSend,
  deadlineOnSuccess,
  defaultStopMarginMs,
  earlier,
  grantLimitMs,
  heldPauseMs,
  judgeGrant,
  judgeRenewal,
  judgeView,
  mayWork,
  nextRenewalMs,
  ownDeadline,
  pauseMs,
  renewalLimitMs,
  renewalPauseMs,
  timingProblem,
} from "../../lib/client/rules.ts";
import { healthyView } from "./views.ts";

const instant = fc.integer({ min: 0, max: 1e12 });
const offset = fc.integer({ min: 0, max: 10_000 });
const ttl = fc.integer({ min: 5, max: 120 }).map((seconds) => seconds * 1_000);

Deno.test("the stop margin is the greatest of 2 s, a sixth of the ttl and twice the clock's offset", () => {
  assert.equal(defaultStopMarginMs(8_000, 1_000), 2_000);
  assert.equal(defaultStopMarginMs(30_000, 1_000), 5_000);
  assert.equal(defaultStopMarginMs(120_000, 1_000), 20_000);
  assert.equal(defaultStopMarginMs(30_000, 4_000), 8_000);
  fc.assert(fc.property(ttl, offset, (ttlMs, maxOffset) => {
    const margin = defaultStopMarginMs(ttlMs, maxOffset);
    assert.ok(margin >= 2_000 && margin >= ttlMs / 6 && margin >= 2 * maxOffset);
    assert.ok([2_000, ttlMs / 6, 2 * maxOffset].includes(margin));
  }));
});

Deno.test("a ttl is refused that is no whole number, out of range, or too short for its margins", () => {
  const withDefault = (ttlMs: number) =>
    timingProblem({ ttlMs, stopMarginMs: defaultStopMarginMs(ttlMs, 1_000) }, 1_000);
  assert.equal(withDefault(30_000), "none");
  assert.equal(withDefault(120_000), "none");
  assert.equal(withDefault(8_000), "none");
  assert.equal(withDefault(7_000), "ttl_too_short");
  assert.equal(withDefault(5_000), "ttl_too_short");
  assert.equal(withDefault(4_000), "ttl_out_of_range");
  assert.equal(withDefault(121_000), "ttl_out_of_range");
  assert.equal(withDefault(8_500), "ttl_not_whole");
  assert.equal(withDefault(NaN), "ttl_not_whole");
  assert.equal(timingProblem({ ttlMs: 30_000, stopMarginMs: 1_999 }, 1_000), "margin_below_offset");
  assert.equal(timingProblem({ ttlMs: 30_000, stopMarginMs: NaN }, 1_000), "margin_below_offset");
  assert.equal(timingProblem({ ttlMs: 30_000, stopMarginMs: 9_600 }, 1_000), "ttl_too_short");
});

Deno.test("with every timing that is accepted, a second renewal fits before the work must stop", () => {
  fc.assert(fc.property(ttl, offset, fc.integer({ min: 0, max: 60_000 }), (ttlMs, off, more) => {
    const timing = { ttlMs, stopMarginMs: defaultStopMarginMs(ttlMs, off) + more };
    if (timingProblem(timing, off) !== "none") return;
    const { stopAtMs, killAtMs, deadlineMs } = ownDeadline(ttlMs, timing.stopMarginMs);
    const firstRenewal = nextRenewalMs(0, ttlMs);
    assert.ok(firstRenewal + 1_000 <= stopAtMs);
    assert.ok(stopAtMs < killAtMs && killAtMs < deadlineMs);
    // A child that is killed is gone before any clock within the bound says that the lease is over.
    assert.ok(deadlineMs - killAtMs >= 2 * off);
    assert.ok(grantLimitMs(ttlMs) <= stopAtMs - 1_000);
  }));
});

Deno.test("sending a renewal never moves the deadline on, and its success counts from the sending", () => {
  fc.assert(fc.property(instant, instant, ttl, instant, (current, sent, ttlMs, answered) => {
    const lowered = deadlineOnSend(current, sent, ttlMs);
    assert.ok(lowered <= current && lowered <= sent + ttlMs);
    assert.ok(lowered === current || lowered === sent + ttlMs);
    assert.equal(deadlineOnSuccess(sent, ttlMs), sent + ttlMs);
    if (answered >= sent) assert.ok(deadlineOnSuccess(sent, ttlMs) <= answered + ttlMs);
  }));
});

Deno.test("of two deadlines the earlier one counts, in all of its instants", () => {
  const a = ownDeadline(30_000, 5_000);
  const b = ownDeadline(31_000, 2_000);
  assert.deepEqual(earlier(a, b), a);
  assert.deepEqual(earlier(b, a), a);
  assert.equal(mayWork(a, 19_999), true);
  assert.equal(mayWork(a, 20_000), false);
});

const notRenewing: readonly Answer<RenewedBody>[] = [
  { type: "unstable", reason: "TopologyPersistencePending", retryAfterMs: 1_000 },
  { type: "not_leader", retryAfterMs: 1_000 },
  { type: "unavailable", retryAfterMs: 0 },
  { type: "unauthorized" },
  { type: "forbidden" },
  { type: "invalid_request" },
  { type: "unexpected", status: 502 },
  { type: "no_answer", why: "timeout", code: "" },
  { type: "no_answer", why: "connection", code: "ECONNREFUSED" },
];

Deno.test("a renewal is a success with the same generation alone", () => {
  fc.assert(fc.property(fc.nat(), fc.nat(), (granted, answered) => {
    const body = { expiresAt: "2026-01-01T00:00:30Z", topologyGeneration: answered };
    const verdict = judgeRenewal(
      { type: "success", status: 200, body, fence: "", dateMs: null },
      granted,
    );
    assert.deepEqual(
      verdict,
      granted === answered
        ? { type: "renewed", expiresAt: body.expiresAt }
        : { type: "lost", reason: "topology_changed" },
    );
  }));
});

Deno.test("404, 409 and a wrong token end authority; any other answer to a renewal changes nothing", () => {
  const holder = { operationId: "o", instance: "i", expiresAt: "2026-01-01T00:00:30Z" };
  const losing: readonly (readonly [Answer<RenewedBody>, string])[] = [
    [{ type: "not_found" }, "not_found"],
    [{ type: "token_mismatch" }, "token_mismatch"],
    [{ type: "revoked", reason: "topology_changed" }, "topology_changed"],
    [{ type: "revoked", reason: "operator_revoked" }, "operator_revoked"],
    [{ type: "revoked", reason: "revoked" }, "revoked"],
    [{ type: "held", holder, retryAfterMs: 0 }, "revoked"],
  ];
  for (const [answer, reason] of losing) {
    assert.deepEqual(judgeRenewal(answer, 7), { type: "lost", reason });
  }
  for (const answer of notRenewing) {
    assert.deepEqual(judgeRenewal(answer, 7), { type: "not_renewed" }, answer.type);
  }
});

Deno.test("200 to a grant without a lost answer before it means that the operation is in use", () => {
  const body: GrantedBody = {
    token: "t",
    expiresAt: "2026-01-01T00:00:30Z",
    topologyGeneration: 7,
  };
  const success = (status: number): Answer<GrantedBody> => ({
    type: "success",
    status,
    body,
    fence: "1",
    dateMs: null,
  });
  assert.deepEqual(judgeGrant(success(201), false), { type: "granted" });
  assert.deepEqual(judgeGrant(success(201), true), { type: "granted" });
  assert.deepEqual(judgeGrant(success(200), true), { type: "granted" });
  assert.deepEqual(judgeGrant(success(200), false), { type: "operation_in_use" });
  const lost = ["unavailable", "unexpected", "no_answer"];
  for (const answer of notRenewing) {
    if (answer.type === "success") continue;
    const expected = lost.includes(answer.type) ? "lost_answer" : "refused";
    assert.deepEqual(judgeGrant(answer, false), { type: expected }, answer.type);
  }
});

const healthy: GroupView = {
  ...healthyView,
  health: { ...healthyView.health, replicationLagSeconds: 3 },
};

const wish = {
  kind: "migration",
  operationId: "own",
  maxLagSeconds: null,
  grantLost: false,
} as const;

Deno.test("a look shows whether a lease is free, held, or refused by the group's state", () => {
  assert.deepEqual(judgeView(healthy, wish), { type: "free" });
  const unstable = { ...healthy, stable: false, unstableReason: "NoPrimary" };
  assert.deepEqual(judgeView(unstable, wish), { type: "unstable", reason: "NoPrimary" });
  assert.deepEqual(judgeView(healthy, { ...wish, maxLagSeconds: 3 }), { type: "free" });
  assert.deepEqual(judgeView(healthy, { ...wish, maxLagSeconds: 2 }), {
    type: "lagging",
    seconds: 3,
  });
});

Deno.test("a migration lease is in the way, also of the same operation, unless its grant is one of ours", () => {
  const holder = { operationId: "own", instance: "tenant", expiresAt: "2026-01-01T00:00:30Z" };
  const lease = { ...holder, kind: "migration", topologyGeneration: 7 };
  const held = { ...healthy, stable: false, leases: [lease] };
  assert.deepEqual(judgeView(held, wish), { type: "held", holder });
  const stable = { ...held, stable: true };
  assert.deepEqual(judgeView(stable, { ...wish, grantLost: true }), { type: "free" });
  assert.deepEqual(judgeView(stable, { ...wish, operationId: "x", grantLost: true }).type, "held");
  assert.deepEqual(judgeView(stable, { ...wish, kind: "failover-hold" }), { type: "free" });
});

Deno.test("pauses grow from 0.1 s to 2 s, differ at random, and heed what the service asks for", () => {
  const fraction = fc.double({ min: 0, max: 0.999, noNaN: true });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_000 }), offset, fraction, (failures, asked, f) => {
      const pause = pauseMs(failures, asked, f);
      assert.ok(pause >= 100 && pause <= 2_000);
      assert.ok(pause >= Math.min(asked, 2_000));
      assert.ok(pauseMs(failures + 1, asked, f) >= pause);
    }),
  );
  assert.equal(pauseMs(1, 0, 0), 200);
  assert.equal(pauseMs(2, 0, 0.5), 300);
});

Deno.test("the pause while another one holds the lease never passes its end by, and is short near to it alone", () => {
  const ends = fc.option(fc.integer({ min: -20_000, max: 120_000 }));
  fc.assert(fc.property(offset, ends, (own, left) => {
    const pause = heldPauseMs(own, left);
    assert.ok(pause <= own);
    // A service that does not know the time well shows a lease for longer: that is no reason to press it.
    if (left === null || left < -5_000) return assert.equal(pause, own);
    assert.ok(pause <= Math.max(250, left - 2_000));
    assert.ok(pause >= Math.min(own, 250));
    if (left - own >= 2_000) assert.equal(pause, own);
  }));
});

Deno.test("a renewal's limit and pause never reach past the moment at which work must stop", () => {
  fc.assert(fc.property(ttl, instant, instant, offset, (ttlMs, stopAt, now, pause) => {
    const limit = renewalLimitMs(ttlMs, stopAt, now);
    assert.ok(limit >= 0 && limit <= Math.max(1_000, ttlMs / 6));
    const paused = renewalPauseMs(pause, stopAt, now);
    assert.ok(paused >= 0 && paused <= pause);
    if (now < stopAt) assert.ok(now + limit <= stopAt && now + paused < stopAt);
  }));
});
