import assert from "node:assert/strict";
import { OperationInUseError } from "../../lib/client/errors.ts";
import { AuthorityLostError, NotRenewedError } from "../../lib/client/errors.ts";
import type { OwnDeadline } from "../../lib/client/rules.ts";
import { type Forecast, Rig, type Weather } from "./rig.ts";

const once = (method: string, weather: Awaited<ReturnType<Forecast>>): Forecast => {
  let done = false;
  return (sent) => {
    if (done || sent.method !== method) return "fine";
    done = true;
    return weather;
  };
};

Deno.test("a lease has its token, fence, generation, site and end, and renews itself at a third of its ttl", async () => {
  using rig = new Rig();
  const deadlines: OwnDeadline[] = [];
  const lease = await rig.until(
    rig.client().acquire({
      operationId: "op-1",
      onDeadline: (deadline) => void deadlines.push(deadline),
    }),
  );
  assert.match(lease.token, /^[0-9a-f]{64}$/);
  assert.ok(lease.fence !== null && lease.fence > 0n);
  assert.equal(lease.topologyGeneration, 7);
  assert.equal(lease.activeSite, "iad");
  assert.equal(lease.expiresAt, "2026-01-01T00:00:30Z");
  assert.deepEqual(lease.deadline, { stopAtMs: 20_000, killAtMs: 25_000, deadlineMs: 30_000 });

  await rig.pass(60_000);
  assert.equal(lease.isValid(), true);
  assert.equal(lease.signal.aborted, false);
  assert.deepEqual(
    rig.of("PUT").map(({ atMs }) => atMs),
    [1, 2, 3, 4, 5, 6].map((n) => n * 10_000),
  );
  for (const { body } of rig.of("PUT")) {
    assert.deepEqual(body, { token: lease.token, ttlSeconds: 30 });
  }
  assert.equal(lease.expiresAt, "2026-01-01T00:01:30Z");
  assert.equal(deadlines.at(-1)?.deadlineMs, 90_000);

  assert.equal(await rig.until(lease.release()), true);
  assert.equal(lease.signal.aborted, true);
  assert.equal(lease.signal.reason.reason, "released");
  await rig.pass(60_000);
  assert.equal(rig.of("PUT").length, 6);
  assert.equal(rig.clientTimers, 0);
});

Deno.test("the deadline counts from the sending of a renewal and not from its answer", async () => {
  using rig = new Rig();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  rig.forecast = async (sent): Promise<Weather> => {
    if (sent.method === "PUT") await new Promise<void>((done) => rig.clock.timer(3_000, done));
    return "fine";
  };
  await rig.pass(13_500);
  assert.equal(lease.deadline.deadlineMs, 40_000);
  rig.forecast = () => "fine";
  await rig.until(lease.release());
});

Deno.test("423 and 503 never extend the deadline: work stops two margins before it", async () => {
  for (const status of [423, 503]) {
    using rig = new Rig();
    const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
    const body = status === 423
      ? { error: "unstable", reason: "TopologyPersistencePending", retryAfterSeconds: 1 }
      : { error: "unavailable" };
    rig.forecast = ({ method }) => method === "PUT" ? Response.json(body, { status }) : "fine";
    await rig.pass(19_900);
    assert.equal(lease.isValid(), true);
    assert.equal(lease.deadline.deadlineMs, 30_000);
    const tries = rig.of("PUT").length;
    assert.ok(tries > 5 && tries < 40, String(tries));
    await rig.pass(100);
    assert.equal(lease.isValid(), false);
    assert.ok(lease.signal.reason instanceof AuthorityLostError);
    assert.equal(lease.signal.reason.reason, "deadline");
    await rig.pass(30_000);
    assert.equal(rig.of("POST").length, 1, "It never asks again after a loss");
    await rig.until(lease.release());
  }
});

Deno.test("a loss by 404, 409, a wrong token or another generation aborts at once with its reason", async () => {
  const table: readonly (readonly [Response, string])[] = [
    [Response.json({ error: "not_found" }, { status: 404 }), "not_found"],
    [new Response("<html>", { status: 404 }), "not_found"],
    [
      Response.json({ error: "revoked", reason: "operator_revoked" }, { status: 409 }),
      "operator_revoked",
    ],
    [Response.json({ error: "token_mismatch" }, { status: 403 }), "token_mismatch"],
    [
      Response.json({ expiresAt: "2026-01-01T00:00:40Z", topologyGeneration: 8 }),
      "topology_changed",
    ],
  ];
  for (const [answer, reason] of table) {
    using rig = new Rig();
    const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
    rig.forecast = once("PUT", answer);
    await rig.pass(10_000);
    assert.equal(lease.signal.reason?.reason, reason);
    assert.equal(lease.signal.reason.phase, "before-ddl");
    await assert.rejects(lease.renewNow(), { name: "AuthorityLostError", reason });
    assert.equal(rig.of("PUT").length, 1);
    await rig.until(lease.release());
  }
});

Deno.test("a real change of the topology and a real revocation end authority at the next renewal", async () => {
  for (const reason of ["topology_changed", "operator_revoked"]) {
    using rig = new Rig();
    const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
    if (reason === "topology_changed") {
      await rig.setStatus({ activeSite: "pdx", topologyGeneration: 8 });
    } else {
      await rig.annotate({ "bloodraven.shipstream.io/revoke-deployment-leases": "" });
    }
    lease.enteringDdl();
    await rig.pass(10_000);
    assert.equal(lease.signal.reason?.reason, reason);
    assert.equal(lease.signal.reason.phase, "after-ddl");
    assert.match(lease.signal.reason.message, /verify the schema by hand/);
    await rig.until(lease.release());
  }
});

Deno.test("one lost answer, one refused connection, one change of leader or one bad token does not cost the lease", async () => {
  const faults: readonly Forecast[] = [
    once("PUT", "answer_lost"),
    once("PUT", "black_hole"),
    once("PUT", "refused"),
    once("PUT", Response.json({ error: "not_leader" }, { status: 503 })),
    once("PUT", Response.json({ error: "unauthorized" }, { status: 401 })),
    once("PUT", new Response("no json", { status: 200 })),
    once("PUT", new Response("a proxy", { status: 502 })),
  ];
  for (const fault of faults) {
    using rig = new Rig();
    const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
    rig.forecast = fault;
    await rig.pass(60_000);
    assert.equal(lease.isValid(), true);
    assert.ok(rig.of("PUT").length >= 6);
    await rig.until(lease.release());
  }
});

Deno.test("a token file that cannot be read for a moment does not cost the lease, and is read each time", async () => {
  using rig = new Rig();
  const good = rig.token;
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  let reads = 0;
  rig.token = () => {
    reads++;
    if (reads < 4) throw new Error("swapped at this moment");
    return good();
  };
  await rig.pass(30_000);
  assert.equal(lease.isValid(), true);
  assert.ok(reads >= 5);
  await assert.rejects(
    (async () => {
      rig.token = () => "two\nlines";
      await lease.renewNow();
    })(),
    NotRenewedError,
  );
  rig.token = good;
  await rig.until(lease.release());
});

Deno.test("renewals never overlap: one that is asked for joins the one under way", async () => {
  using rig = new Rig();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  await rig.pass(1_000);
  await rig.until(Promise.all([lease.renewNow(), lease.renewNow(), lease.renewNow()]));
  assert.equal(rig.of("PUT").length, 1);
  assert.equal(lease.deadline.deadlineMs, 31_000);
  // The next one is due a third of the ttl later, and not before.
  await rig.pass(9_900);
  assert.equal(rig.of("PUT").length, 1);
  await rig.pass(100);
  assert.equal(rig.of("PUT").length, 2);
  await rig.until(lease.release());
});

Deno.test("a process that was stopped past its deadline finds its authority over, and begins no DDL", async () => {
  using rig = new Rig();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  rig.forecast = () => "refused";
  // All at once: no timer ran in between.
  const wake = rig.clock.advance(20_000);
  await wake;
  assert.equal(lease.isValid(), false);
  assert.throws(() => lease.enteringDdl(), { name: "AuthorityLostError", reason: "deadline" });
  assert.equal(lease.phase, "before-ddl");
  rig.forecast = () => "fine";
  await rig.until(lease.release());
});

Deno.test("a release is tried again while the service cannot be reached, and says when it was not confirmed", async () => {
  using rig = new Rig();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  rig.forecast = once("DELETE", "refused");
  assert.equal(await rig.until(lease.release()), true);
  assert.equal(rig.of("DELETE").length, 2);
  assert.equal(rig.of("DELETE").at(-1)?.headers.get("X-Lease-Token"), lease.token);

  const second = await rig.until(rig.client().acquire({ operationId: "op-2" }));
  rig.forecast = ({ method }) => method === "DELETE" ? "black_hole" : "fine";
  assert.equal(await rig.until(second.release()), false);
  rig.forecast = ({ method }) =>
    method === "DELETE" ? Response.json({ error: "token_mismatch" }, { status: 403 }) : "fine";
  await rig.pass(30_000);
  const third = await rig.until(rig.client().acquire({ operationId: "op-3" }));
  assert.equal(await rig.until(third.release()), false);
  assert.equal(rig.clientTimers, 0);
});

Deno.test("a lease is released at the end of its block", async () => {
  using rig = new Rig();
  const work = async () => {
    await using lease = await rig.client().acquire({ operationId: "op-1" });
    assert.equal(lease.isValid(), true);
  };
  await rig.until(work());
  assert.equal(rig.of("DELETE").length, 1);
  await rig.until(rig.client().acquire({ operationId: "op-2" })).then((next) =>
    rig.until(next.release())
  );
});

Deno.test("a look that shows a new generation ends the leases of the same client at once", async () => {
  using rig = new Rig();
  const client = rig.client();
  const lease = await rig.until(client.acquire({ operationId: "op-1" }));
  await rig.until(client.observe());
  assert.equal(lease.isValid(), true);
  await rig.setStatus({ activeSite: "pdx", topologyGeneration: 8 });
  const view = await rig.until(client.observe());
  assert.equal(view.topologyGeneration, 8);
  assert.equal(lease.signal.reason?.reason, "topology_changed");
  assert.equal(rig.of("PUT").length, 0);
  await rig.until(lease.release());
});

Deno.test("one client takes an operation's lease once", async () => {
  using rig = new Rig();
  const client = rig.client();
  const lease = await rig.until(client.acquire({ operationId: "op-1" }));
  await assert.rejects(client.acquire({ operationId: "op-1" }), OperationInUseError);
  assert.equal(lease.isValid(), true);
  await rig.until(lease.release());
  const again = await rig.until(client.acquire({ operationId: "op-1" }));
  await rig.until(again.release());
});
