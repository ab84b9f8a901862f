import assert from "node:assert/strict";
import { StoryError } from "../../../../handlers/commands/demo/story.ts";
import { STEPS } from "../../../../handlers/commands/demo/story/step.ts";
import { PLANNED_FAILOVER_ANNOTATION } from "../../../../lib/group/types.ts";
import {
  AT_FIRST,
  closed,
  deferred,
  FIRST,
  free,
  GOOD,
  granted,
  heldOff,
  lease,
  moved,
  NEXT,
  nextLease,
  OLD,
  overtaken,
  play,
  refused,
  RENEWED,
  type Scene,
  SECOND,
  type Sight,
  succeeded,
} from "./scenes.ts";

Deno.test("a story that goes well tells twenty steps, each with what happened and why it matters", async () => {
  const { told, parts, requests, error } = await play(GOOD);
  assert.equal(error, null);
  assert.deepEqual(
    told.map(({ number }) => number),
    Array.from({ length: STEPS }, (_, at) => at + 1),
  );
  assert.deepEqual(told.map(({ status }) => status), [
    ...[200, 201, 409, 200, 200, 204, 201, 204],
    ...[201, 201, "Deferred", 200, 423, 204, "Succeeded", 409, 409, 201, 409, 204],
  ]);
  assert.equal(parts.length, 2);
  for (const { what, why } of told) assert.ok(what.length > 20 && why.length > 20);
  assert.match(told[2]?.what ?? "", /orders-app holds it .* until 00:00:30 UTC.* 30 s/);
  assert.match(told[10]?.what ?? "", /"held by the deployment orders-release-43 of orders-app"/);
  assert.match(told[11]?.what ?? "", /from 00:00:30 UTC to 00:02:00 UTC/);
  assert.match(told[14]?.what ?? "", /from iad to pdx, at topology generation 8/);
  assert.equal(requests.length, GOOD.length + 1, "all scenes and the annotation");
  const group = "/deploy/v1/groups/orders";
  assert.equal(
    requests[3],
    `PUT ${group}/leases/migration/${FIRST.operationId} Bearer token-of-orders-app`,
  );
  assert.deepEqual(requests.slice(11, 19), [
    "annotate pdx",
    "sees what it wants",
    `PUT ${group}/leases/failover-hold/${OLD.operationId} Bearer token-of-orders-app`,
    "sees what it wants",
    `POST ${group}/leases Bearer token-of-billing-app`,
    `DELETE ${group}/leases/failover-hold/${OLD.operationId} Bearer token-of-orders-app`,
    "sees what it wants",
    `PUT ${group}/leases/migration/${OLD.operationId} Bearer token-of-orders-app`,
  ]);
});

Deno.test("no step tells a token", async () => {
  const { told } = await play(GOOD);
  assert.doesNotMatch(JSON.stringify(told), /[a-e]{64}|token-of/);
});

/** What goes wrong: its place in the story, what comes instead, the step, and a part of what is said. */
const BAD: readonly (readonly [at: number, scene: Scene | Sight, step: number, said: RegExp])[] = [
  [0, { status: 503, body: { error: "not_leader" } }, 1, /must be 200, and is 503 'not_leader'/],
  [0, { status: 200, body: { ...free, stable: false } }, 1, /must be stable/],
  [0, { status: 200, body: { ...free, leases: [lease] } }, 1, /no lease must be held/],
  [0, { status: 200, body: { ...free, leases: undefined } }, 1, /look at leases$/],
  [0, { status: 200, body: "<html>" }, 1, /look at the body$/],
  [0, { status: 200 }, 1, /look at the body$/],
  [1, { ...granted(FIRST.operationId, "a", "20"), status: 200 }, 2, /must be 201, and is 200$/],
  [1, granted("other", "a", "20"), 2, /for the operation that asked/],
  [1, granted(FIRST.operationId, "A", "20"), 2, /look at token$/],
  [1, granted(FIRST.operationId, "a", "x"), 2, /a decimal number/],
  [1, granted(FIRST.operationId, "a", "20", { expiresAt: "soon" }), 2, /look at expiresAt$/],
  [1, { ...granted(FIRST.operationId, "a", "20"), state: "released" }, 2, /must say 'active'/],
  [2, granted(SECOND.operationId, "b", "21"), 3, /must be 409, and is 201/],
  [2, { status: 409, body: { error: "revoked" } }, 3, /look at error, holder$/],
  [2, refused({ ...SECOND, expiresAt: AT_FIRST }), 3, /must name the holder/],
  [2, refused({ ...FIRST, expiresAt: RENEWED }), 3, /must name the holder/],
  [2, refused({ ...FIRST, expiresAt: AT_FIRST }, "0"), 3, /Retry-After/],
  [2, refused({ ...FIRST, expiresAt: AT_FIRST }, "3600"), 3, /Retry-After/],
  [3, { status: 403, body: { error: "token_mismatch" } }, 4, /is 403 'token_mismatch'/],
  [3, { status: 200, body: { expiresAt: AT_FIRST, topologyGeneration: 7 } }, 4, /must be later/],
  [3, { status: 200, body: { expiresAt: RENEWED, topologyGeneration: 8 } }, 4, /that of the grant/],
  [4, { status: 200, body: free }, 5, /exactly one lease/],
  [4, { status: 200, body: { ...free, leases: [lease, lease] } }, 5, /exactly one lease/],
  [4, { status: 200, body: { ...free, leases: [{ ...lease, ...SECOND }] } }, 5, /of the holder/],
  [
    4,
    { status: 200, body: { ...free, leases: [{ ...lease, expiresAt: AT_FIRST }] } },
    5,
    /with the renewed expiry/,
  ],
  [5, { status: 200, body: {} }, 6, /must be 204, and is 200/],
  [5, { status: 204, state: "active" }, 6, /must say 'released'/],
  [6, granted(SECOND.operationId, "b", "20"), 7, /the fence must be higher/],
  [6, granted(SECOND.operationId, "a", "23"), 7, /the token must be a new one/],
  [7, { status: 403 }, 8, /must be 204, and is 403$/],
  [8, { status: 200, body: { ...free, leases: [lease] } }, 8, /no lease must be left/],
  [9, { status: 423, body: { error: "unstable" } }, 9, /must be 201, and is 423 'unstable'/],
  [9, { ...granted(OLD.operationId, "c", "26"), state: "expired" }, 9, /must say 'active'/],
  [10, { status: 403, body: { error: "forbidden" } }, 10, /must be 201, and is 403 'forbidden'/],
  [10, heldOff({ state: "released" }), 10, /must say 'active'/],
  [11, deferred({ phase: "Pending" }), 11, /must say 'Deferred'/],
  [11, deferred({ phase: undefined }), 11, /must say 'Deferred'/],
  [11, { sight: { metadata: { name: "orders" } } }, 11, /must say 'Deferred'/],
  [11, deferred({ reason: "CooldownActive" }), 11, /must be 'DeploymentHold'/],
  [11, deferred({ target: "iad" }), 11, /the target must be the site/],
  [11, deferred({ message: "held by orders-app" }), 11, /must name the operation/],
  [11, deferred({ message: "held by orders-release-43" }), 11, /must name the operation/],
  [11, deferred({ retryAfter: "2026-01-01T00:00:31Z" }), 11, /retryAfter must be the expiry/],
  [12, { status: 423, body: { error: "unstable" } }, 12, /must be 200, and is 423/],
  [12, { status: 200, body: { expiresAt: AT_FIRST, topologyGeneration: 7 } }, 12, /must be later/],
  [13, deferred(), 12, /retryAfter must move on/],
  [13, deferred({ phase: "Pending", retryAfter: "2026-01-01T00:02:00Z" }), 12, /must still wait/],
  [14, granted(NEXT.operationId, "e", "30"), 13, /must be 423, and is 201/],
  [14, closed("NotReady"), 13, /must be 'PlannedFailover'/],
  [14, closed("PlannedFailover", "0"), 13, /Retry-After must be there/],
  [15, { status: 403, body: { error: "token_mismatch" } }, 14, /must be 204, and is 403/],
  [15, { status: 204, state: "active", lease: heldOff().lease ?? "" }, 14, /must say 'released'/],
  [16, deferred(), 15, /must go on to 'Succeeded'/],
  [16, succeeded({ phase: "Failed" }), 15, /must go on to 'Succeeded'/],
  [16, succeeded({ activeSite: "iad" }), 15, /asked for must be active/],
  [16, succeeded({ topologyGeneration: 7 }), 15, /the generation must be a new one/],
  [16, succeeded({ topologyGeneration: null }), 15, /the generation must be a new one/],
  [
    16,
    succeeded({ annotations: { [PLANNED_FAILOVER_ANNOTATION]: "pdx" } }),
    15,
    /the annotation must be gone/,
  ],
  [17, { status: 200, body: { expiresAt: RENEWED, topologyGeneration: 8 } }, 16, /and is 200/],
  [17, overtaken({ reason: "operator_revoked" }), 16, /must be 'topology_changed'/],
  [17, overtaken({ topologyGeneration: 7 }), 16, /the generation must be the new one/],
  [17, { ...overtaken(), state: "active" }, 16, /must say 'revoked'/],
  [18, granted(OLD.operationId, "f", "30"), 17, /must be 409, and is 201/],
  [18, refused({ ...NEXT, expiresAt: AT_FIRST }), 17, /look at error, reason/],
  [19, granted(NEXT.operationId, "e", "40"), 18, /must carry the new generation/],
  [
    19,
    granted(NEXT.operationId, "e", "26", { topologyGeneration: 8 }),
    18,
    /the fence must be higher/,
  ],
  [20, { status: 200, body: {} }, 19, /must be 409, and is 200/],
  [21, { status: 200, body: moved }, 19, /must be the only one/],
  [21, { status: 200, body: { ...moved, leases: [nextLease, lease] } }, 19, /must be the only one/],
  [22, { status: 403 }, 20, /must be 204, and is 403$/],
  [22, { status: 204, state: "active" }, 20, /must say 'released'/],
  [23, { status: 200, body: { ...moved, stable: false } }, 20, /must be stable, without a lease/],
  [23, { status: 200, body: { ...moved, leases: [nextLease] } }, 20, /must be stable/],
];

for (const [at, scene, step, said] of BAD) {
  Deno.test(`a story whose scene ${at + 1} goes wrong stops at step ${step}: ${said.source}`, async () => {
    const { told, error } = await play(GOOD.map((good, place) => place === at ? scene : good));
    assert.ok(error instanceof StoryError, String(error));
    assert.equal(error.step, step);
    assert.match(error.message, new RegExp(`^Cannot go on after step ${step} of ${STEPS} \\("`));
    assert.match(error.message, said);
    assert.doesNotMatch(error.message, /[a-f]{64}/);
    assert.equal(told.length, step - 1);
  });
}

Deno.test("a call that does not come back is no fault of a step", async () => {
  const { told, error } = await play(GOOD.slice(0, 1));
  assert.ok(error instanceof Error && !(error instanceof StoryError));
  assert.equal(told.length, 1);
});
