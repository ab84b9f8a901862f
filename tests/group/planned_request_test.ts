import assert from "node:assert/strict";
import fc from "fast-check";
import { parseDuration } from "../../lib/config/duration.ts";
import {
  changesNothing,
  deferredByHold,
  formatRequest,
  goDuration,
  parseRequest,
  pending,
  validateRequest,
} from "../../lib/group/planned_request.ts";
import type { LeaseRecord } from "../../lib/records/record.ts";
import { ACTIVE, type GroupChange, healthyGroup, STANDBY } from "./fixtures.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const request = { target: "pdx", maxLagWaitMs: null };

const hold: LeaseRecord = {
  kind: "failover-hold",
  operationId: "op-1",
  instance: "tenant",
  expiresAt: "2026-01-01T00:00:30.999Z",
  topologyGeneration: 7,
  namespace: "app-ns",
  serviceAccount: "deployer",
  tokenHash: "0".repeat(64),
  createdAt: "2026-01-01T00:00:00Z",
  state: "active",
};

const requests: readonly (readonly [string, ReturnType<typeof parseRequest>])[] = [
  ["pdx", { target: "pdx", maxLagWaitMs: null }],
  ["  pdx  ", { target: "pdx", maxLagWaitMs: null }],
  ["pdx:", { target: "pdx", maxLagWaitMs: null }],
  ["pdx:: : maxLagWait=1h2m3s :", { target: "pdx", maxLagWaitMs: 3_723_000 }],
  ["pdx:maxLagWait=+1.5s", { target: "pdx", maxLagWaitMs: 1_500 }],
  ["pdx:maxLagWait=1s:maxLagWait=2s", { target: "pdx", maxLagWaitMs: 2_000 }],
  [":maxLagWait=1s", { target: "", maxLagWaitMs: 1_000 }],
  ["", null],
  [" : : ", null],
  ["pdx:maxLagWait", null],
  ["pdx:maxLagWait=", null],
  ["pdx:maxLagWait=5", null],
  ["pdx:maxLagWait=0s", null],
  ["pdx:maxLagWait=-1s", null],
  ["pdx:maxLagWait=1s=2s", null],
  ["pdx:MaxLagWait=1s", null],
  ["pdx:drainTimeout=1s", null],
  ["pdx:iad", null],
];

for (const [value, expected] of requests) {
  Deno.test(`the annotation ${JSON.stringify(value)} asks for ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(parseRequest(value), expected);
  });
}

Deno.test("a request that is written is read back", () => {
  const site = fc.stringMatching(/^[a-z0-9-]{1,20}$/);
  fc.assert(fc.property(site, fc.integer({ min: 1, max: 10 ** 9 }), (target, maxLagWaitMs) => {
    const value = formatRequest(target, goDuration(maxLagWaitMs));
    assert.deepEqual(parseRequest(value), { target, maxLagWaitMs });
  }));
});

Deno.test("no text makes the reader of annotations throw", () => {
  fc.assert(fc.property(fc.string(), (value) => {
    const parsed = parseRequest(value);
    assert(parsed === null || parsed.maxLagWaitMs === null || parsed.maxLagWaitMs > 0);
  }));
});

Deno.test("durations are printed as Go prints them", () => {
  const table = [[0, "0s"], [250, "250ms"], [1_500, "1.5s"], [30_000, "30s"], [
    60_000,
    "1m0s",
  ]] as const;
  for (const [ms, text] of table) assert.equal(goDuration(ms), text);
  assert.equal(goDuration(3_600_000), "1h0m0s");
  fc.assert(fc.property(fc.nat({ max: 10 ** 9 }), (ms) => {
    assert.equal(parseDuration(goDuration(ms)), ms);
  }));
});

const verdicts: readonly (readonly [string, string, GroupChange, string])[] = [
  ["no target", "", {}, "InvalidAnnotation"],
  ["a site that the group has not", "mars", {}, "UnknownSite"],
  ["a site that is never promoted", "pdx", {
    spec: { sites: [{ name: "iad" }, { name: "pdx", role: "read-only" }] },
  }, "UnknownSite"],
  ["the active site", "iad", {}, "already_active"],
  ["a keyring rotation", "pdx", {
    annotations: { "bloodraven.shipstream.io/rotate-keyring": "true" },
  }, "KeyringRotation"],
  ["no observed status", "pdx", { status: { sites: [ACTIVE] } }, "TargetUnhealthy"],
  ["an unreachable target", "pdx", {
    status: { sites: [ACTIVE, { ...STANDBY, state: "unreachable" }] },
  }, "TargetUnhealthy"],
  ["a target that does not replicate", "pdx", {
    status: { sites: [ACTIVE, { ...STANDBY, replicating: false }] },
  }, "TargetUnhealthy"],
  ["a restore that waits", "pdx", {
    status: { restoreInPlace: { phase: "Preflight" } },
  }, "ConcurrentOperation"],
  ["an update", "pdx", { status: { updatePhase: "WaitReplica" } }, "ConcurrentOperation"],
  ["a restore that ended", "pdx", {
    status: { restoreInPlace: { phase: "Succeeded" } },
  }, "accepted"],
  ["a primary that takes no writes", "pdx", {
    status: { sites: [{ ...ACTIVE, state: "read-only" }, STANDBY] },
  }, "InvalidFailoverState"],
  ["a failover 299 s ago", "pdx", {
    status: { lastFailover: "2025-12-31T23:55:01Z" },
  }, "CooldownActive"],
  ["a failover 300 s ago", "pdx", {
    status: { lastFailover: "2025-12-31T23:55:00Z" },
  }, "accepted"],
  ["a failover that only the annotation tells of", "pdx", {
    annotations: { "bloodraven.shipstream.io/last-failover": "2025-12-31T23:59:00Z" },
  }, "CooldownActive"],
  ["a cooldown to wait for", "pdx", {
    spec: { plannedFailover: { onCooldown: "defer" }, failoverCooldown: "1h" },
    status: { lastFailover: "2025-12-31T23:30:00Z" },
  }, "cooldown"],
  ["a healthy group", "pdx", {}, "accepted"],
];

for (const [what, target, change, expected] of verdicts) {
  Deno.test(`with ${what} the verdict is ${expected}`, () => {
    const { spec, status, annotations } = change;
    const base = { sites: [{ name: "iad" }, { name: "pdx", role: "dr-only" }] };
    const group = healthyGroup({ annotations, spec: { ...base, ...spec }, status });
    const verdict = validateRequest(group, { ...request, target }, NOW);
    assert.equal(verdict.type === "rejected" ? verdict.reason : verdict.type, expected);
  });
}

const starts: readonly (readonly [string, object, string])[] = [
  ["no run before", {}, "2026-01-01T00:00:00Z"],
  [
    "a run that succeeded",
    { phase: "Succeeded", startTime: "2025-01-01T00:00:00Z" },
    "2026-01-01T00:00:00Z",
  ],
  [
    "a run that failed",
    { phase: "Failed", startTime: "2025-01-01T00:00:00Z" },
    "2026-01-01T00:00:00Z",
  ],
  [
    "a deferred run",
    { phase: "Deferred", startTime: "2025-01-01T00:00:00Z" },
    "2025-01-01T00:00:00Z",
  ],
  [
    "a pending run",
    { phase: "Pending", startTime: "2025-01-01T00:00:00Z" },
    "2025-01-01T00:00:00Z",
  ],
  [
    "a validating run",
    { phase: "Validating", startTime: "2025-01-01T00:00:00Z" },
    "2025-01-01T00:00:00Z",
  ],
  ["a deferred run without a start", { phase: "Deferred" }, "2026-01-01T00:00:00Z"],
];

for (const [what, plannedFailover, expected] of starts) {
  Deno.test(`item 57: after ${what} a deferral starts at ${expected}`, () => {
    const known = { ...plannedFailover, completionTime: "2025-01-01T00:00:09Z", other: "x" };
    const group = healthyGroup({ status: { plannedFailover: known } });
    const change = deferredByHold(group, request, hold, NOW);
    assert.equal(change.startTime, expected);
    assert.equal(change.completionTime, null);
    assert.equal(change.other, null, "what an earlier run left is taken away");
    assert.equal(change.retryAfter, "2026-01-01T00:00:30Z");
  });
}

Deno.test("a status that says the same is not written again", () => {
  const group = healthyGroup();
  const plannedFailover = Object.fromEntries(
    Object.entries(pending(group, request, NOW)).filter(([, value]) => value !== null),
  );
  const after = healthyGroup({ status: { plannedFailover } });
  assert(changesNothing(after, pending(after, request, NOW + 60_000)));
  assert(!changesNothing(after, deferredByHold(after, request, hold, NOW)));
});
