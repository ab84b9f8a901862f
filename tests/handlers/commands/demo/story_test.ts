import assert from "node:assert/strict";
import { Deployer } from "../../../../handlers/commands/demo/deployer.ts";
import {
  playStory,
  STEPS,
  StoryError,
  type ToldStep,
} from "../../../../handlers/commands/demo/story.ts";
import { DEPLOYMENT_STATE_LABEL } from "../../../../lib/lease/names.ts";
import { TestClock } from "../../../../lib/testing/mod.ts";

/** One call of the story: what the service answers, and the Lease's state after it. */
interface Scene {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The state that the cluster shows until the next call. */
  readonly state?: string;
}

const FIRST = { instance: "orders-app", operationId: "orders-release-42" };
const SECOND = { instance: "billing-app", operationId: "billing-release-17" };
const AT_FIRST = "2026-01-01T00:00:30.5Z";
const RENEWED = "2026-01-01T00:02:00.5Z";

const free = { activeSite: "iad", topologyGeneration: 7, stable: true, leases: [] };
const lease = { kind: "migration", ...FIRST, expiresAt: RENEWED };

function granted(operationId: string, digit: string, fence: string, change = {}): Scene {
  const token = digit.repeat(64);
  return {
    status: 201,
    body: { operationId, token, expiresAt: AT_FIRST, topologyGeneration: 7, ...change },
    headers: { "X-Lease-Fence": fence },
    state: "active",
  };
}

function refused(holder: unknown, retryAfter = "30"): Scene {
  return { status: 409, body: { error: "held", holder }, headers: { "Retry-After": retryAfter } };
}

/** All calls of a story that goes well, in their order. */
const GOOD: readonly Scene[] = [
  { status: 200, body: free },
  granted(FIRST.operationId, "a", "20"),
  refused({ ...FIRST, expiresAt: AT_FIRST }),
  { status: 200, body: { expiresAt: RENEWED, topologyGeneration: 7 } },
  { status: 200, body: { ...free, leases: [lease] } },
  { status: 204, state: "released" },
  granted(SECOND.operationId, "b", "23"),
  { status: 204, state: "released" },
  { status: 200, body: free },
];

async function play(scenes: readonly Scene[]) {
  const told: ToldStep[] = [];
  const requests: string[] = [];
  let state = "none";
  const deployer = (instance: string) =>
    new Deployer({
      instance,
      groupUrl: "https://service/deploy/v1/groups/orders",
      token: `token-of-${instance}`,
      send(url, init) {
        const scene = scenes[requests.length];
        const authorization = new Headers(init.headers).get("Authorization");
        requests.push(`${init.method} ${new URL(url).pathname} ${authorization}`);
        if (scene === undefined) return Promise.reject(new Error("No call is planned"));
        state = scene.state ?? state;
        const body = scene.body === undefined
          ? null
          : typeof scene.body === "string"
          ? scene.body
          : JSON.stringify(scene.body);
        return Promise.resolve(new Response(body, { ...scene }));
      },
      clock: new TestClock(),
      signal: new AbortController().signal,
    });
  const error = await playStory({
    orders: deployer("orders-app"),
    billing: deployer("billing-app"),
    leaseLabels: () => Promise.resolve({ [DEPLOYMENT_STATE_LABEL]: state }),
    tell: (step) => void told.push(step),
  }).then(() => null, (thrown: unknown) => thrown);
  return { told, requests, error };
}

Deno.test("a story that goes well tells eight steps, each with what happened and why it matters", async () => {
  const { told, requests, error } = await play(GOOD);
  assert.equal(error, null);
  assert.deepEqual(told.map(({ number, status }) => [number, status]), [
    [1, 200],
    [2, 201],
    [3, 409],
    [4, 200],
    [5, 200],
    [6, 204],
    [7, 201],
    [8, 204],
  ]);
  assert.equal(told.length, STEPS);
  for (const { what, why } of told) assert.ok(what.length > 20 && why.length > 20);
  assert.match(told[2]?.what ?? "", /orders-app holds it .* until 00:00:30 UTC.* 30 s/);
  assert.equal(requests.length, GOOD.length);
  assert.equal(
    requests[3],
    `PUT /deploy/v1/groups/orders/leases/migration/${FIRST.operationId} Bearer token-of-orders-app`,
  );
});

Deno.test("no step tells a token", async () => {
  const { told } = await play(GOOD);
  assert.doesNotMatch(JSON.stringify(told), /[ab]{64}|token-of/);
});

/** A call that goes wrong: its place in the story, what comes instead, the step, and a part of what is said. */
const BAD: readonly (readonly [at: number, scene: Scene, step: number, said: RegExp])[] = [
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
];

for (const [at, scene, step, said] of BAD) {
  Deno.test(`a story whose call ${at + 1} goes wrong stops at step ${step}: ${said.source}`, async () => {
    const { told, error } = await play(GOOD.map((good, place) => place === at ? scene : good));
    assert.ok(error instanceof StoryError, String(error));
    assert.equal(error.step, step);
    assert.match(error.message, new RegExp(`^Cannot go on after step ${step} of 8 \\("`));
    assert.match(error.message, said);
    assert.doesNotMatch(error.message, /[ab]{64}/);
    assert.equal(told.length, step - 1);
  });
}

Deno.test("a call that does not come back is no fault of a step", async () => {
  const { told, error } = await play(GOOD.slice(0, 1));
  assert.ok(error instanceof Error && !(error instanceof StoryError));
  assert.equal(told.length, 1);
});
