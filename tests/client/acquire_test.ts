import assert from "node:assert/strict";
import {
  ClientSettingsError,
  CredentialError,
  HeldError,
  InvalidRequestError,
  NotAuthorizedError,
  OperationInUseError,
  OperationRevokedError,
  UnknownGroupError,
  UnreachableError,
  UnstableError,
} from "../../lib/client/errors.ts";
import { type Forecast, Rig } from "./rig.ts";

/** Lets the first requests of a method meet these, one each. */
function first(method: string, ...weathers: Awaited<ReturnType<Forecast>>[]): Forecast {
  return (sent) => sent.method === method ? weathers.shift() ?? "fine" : "fine";
}

const notLeader = () => Response.json({ error: "not_leader" }, { status: 503 });

Deno.test("a lease that another one holds is refused with who holds it and until when, and is not asked for", async () => {
  using rig = new Rig();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  const error = await rig.until(
    rig.client({ instance: "billing" }).acquire({ operationId: "op-2" }).catch((one) => one),
  );
  assert.ok(error instanceof HeldError);
  assert.deepEqual(error.holder, {
    operationId: "op-1",
    instance: "tenant",
    expiresAt: "2026-01-01T00:00:30Z",
  });
  assert.match(error.message, /operation 'op-1' of 'tenant' holds it until 2026-01-01T00:00:30Z/);
  assert.equal(rig.of("POST").length, 1, "A grant is no probe");
  await rig.until(lease.release());
});

Deno.test("a wait ends when the lease is free, and tells meanwhile what is in the way", async () => {
  using rig = new Rig();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  const told: string[] = [];
  const next = rig.client().acquire({
    operationId: "op-2",
    waitSeconds: 60,
    onWaiting: (why) => void told.push(why.name),
  });
  await rig.pass(12_000);
  assert.ok(told.length >= 6);
  assert.deepEqual([...new Set(told)], ["HeldError"]);
  await lease.release();
  const freedMs = rig.clock.monotonic();
  const taken = await rig.until(next);
  assert.ok(rig.clock.monotonic() - freedMs <= 2_100);
  assert.equal(rig.of("POST").length, 2);
  await rig.until(taken.release());
  assert.equal(rig.clientTimers, 0);
});

Deno.test("a wait ends in time with the reason of its last look", async () => {
  using rig = new Rig();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  const startMs = rig.clock.monotonic();
  await assert.rejects(
    rig.until(rig.client().acquire({ operationId: "op-2", waitSeconds: 15 })),
    HeldError,
  );
  const tookMs = rig.clock.monotonic() - startMs;
  assert.ok(tookMs >= 15_000 && tookMs <= 15_200, String(tookMs));

  await rig.until(lease.release());
  await rig.setStatus({ activeSite: "" });
  const unstable = rig.client().acquire({ operationId: "op-2", waitSeconds: 3 });
  await assert.rejects(rig.until(unstable), { name: "UnstableError", reason: "NoPrimary" });
});

Deno.test("a holder that died keeps a waiting caller out for hardly longer than its ttl", async () => {
  for (let waitedMs = 0; waitedMs < 8_000; waitedMs += 1_300) {
    using rig = new Rig();
    const dead = rig.service.client();
    const granted = await dead.grant("op-1", "tenant", { ttlSeconds: 30 });
    const taking = rig.client({ instance: "billing" })
      .acquire({ operationId: "op-2", waitSeconds: 120 });
    // While it lived, its end was always far: nobody is asked more often than each 2 s or so.
    await rig.pass(20_000);
    const before = rig.of("GET").length;
    assert.ok(before < 18, `${before} looks`);
    await rig.pass(waitedMs);
    await dead.renew("op-1", String(granted.body.token), { ttlSeconds: 8 });
    const endMs = rig.clock.monotonic() + 8_000;
    const lease = await rig.until(taking);
    const lateMs = rig.clock.monotonic() - endMs;
    assert.ok(lateMs <= 500, `${lateMs} ms after its end`);
    assert.ok(rig.of("GET").length - before < 25, `${rig.of("GET").length - before} looks`);
    await rig.until(lease.release());
  }
});

Deno.test("a group that lags too far is refused with the figures", async () => {
  using rig = new Rig();
  await rig.setStatus({
    sites: [
      { name: "iad", state: "writable", replicating: false },
      { name: "pdx", state: "read-only", replicating: true, secondsBehindSource: 9 },
    ],
  });
  const client = rig.client();
  const error = await rig.until(
    client.acquire({ operationId: "op-1", maxLagSeconds: 5 }).catch((one) => one),
  );
  assert.ok(error instanceof UnstableError);
  assert.equal(error.reason, "ReplicationLag");
  assert.match(error.message, /9 s behind, at most 5 s/);
  const lease = await rig.until(client.acquire({ operationId: "op-1", maxLagSeconds: 9 }));
  await rig.until(lease.release());
});

Deno.test("a service that cannot be reached for a while is tried again, with short pauses", async () => {
  for (const fault of ["refused", "black_hole", notLeader()] as const) {
    using rig = new Rig();
    rig.forecast = first("GET", fault);
    const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
    assert.equal(rig.of("GET").length, 2);
    await rig.until(lease.release());
  }
});

Deno.test("an address that sends connections to the replicas in turn does not keep a grant from the leader", async () => {
  using rig = new Rig();
  // A look and a grant are two connections: every look meets the leader, and every grant that follows a look does not.
  rig.forecast = () => rig.sent.length % 2 === 1 ? "fine" : notLeader();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1", waitSeconds: 60 }));
  assert.deepEqual(rig.sent.map(({ method }) => method), ["GET", "POST", "POST"]);
  await rig.until(lease.release());
});

Deno.test("a service that stays away is an error after 10 s, or after the wait when that is longer", async () => {
  const table = [
    ["refused", "connection", /\(ECONNREFUSED\)/],
    ["black_hole", "timeout", /did not answer in time/],
  ] as const;
  for (const [fault, reason, text] of table) {
    for (const waitSeconds of [0, 15]) {
      using rig = new Rig();
      rig.forecast = () => fault;
      const taking = rig.client().acquire({ operationId: "op-1", waitSeconds });
      const error = await rig.until(taking.catch((one) => one));
      assert.ok(error instanceof UnreachableError);
      assert.equal(error.reason, reason);
      assert.match(error.message, text);
      const tookMs = rig.clock.monotonic();
      const limitMs = Math.max(10_000, waitSeconds * 1_000);
      assert.ok(tookMs >= limitMs && tookMs <= limitMs + 1_200, `${fault}: ${tookMs}`);
      assert.equal(rig.clientTimers, 0);
    }
  }
});

Deno.test("the lost answer of a first grant is recovered by the same grant once more", async () => {
  for (const weather of ["answer_lost", "refused"] as const) {
    using rig = new Rig();
    rig.forecast = first("POST", weather);
    const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
    assert.equal(rig.of("POST").length, 2);
    // It counts from the second one.
    assert.equal(lease.deadline.deadlineMs, (rig.of("POST")[1]?.atMs ?? 0) + 30_000);
    await rig.pass(15_000);
    assert.equal(lease.isValid(), true);
    await rig.until(lease.release());
  }
});

Deno.test("a grant whose answer stays lost says that a lease may be stored", async () => {
  using rig = new Rig();
  rig.forecast = ({ method }) => method === "POST" ? "answer_lost" : "fine";
  const error = await rig.until(
    rig.client().acquire({ operationId: "op-1" }).catch((one) => one),
  );
  assert.ok(error instanceof UnreachableError);
  assert.equal(error.grantLost, true);
  assert.match(error.message, /it ends with its ttl/);
});

Deno.test("a second caller with the same operation does not take the lease from the first", async () => {
  using rig = new Rig();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  await assert.rejects(rig.until(rig.client().acquire({ operationId: "op-1" })), HeldError);
  await rig.pass(15_000);
  assert.equal(lease.isValid(), true);
  await rig.until(lease.release());
});

Deno.test("of two callers that ask with one operation at the same moment one is told, and nobody else gets in", async () => {
  using rig = new Rig();
  const { body: look } = await rig.service.client().observe();
  const one = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  // Its look is from before.
  rig.forecast = first("GET", Response.json(look));
  await assert.rejects(
    rig.until(rig.client().acquire({ operationId: "op-1" })),
    OperationInUseError,
  );
  await rig.pass(10_000);
  assert.equal(one.signal.reason?.reason, "token_mismatch");
  await assert.rejects(rig.until(rig.client().acquire({ operationId: "op-2" })), HeldError);
  await rig.until(one.release());
});

Deno.test("what trying again would not change is an error of its own at once", async () => {
  using rig = new Rig();
  const startMs = rig.clock.monotonic();
  const rejects = async (
    taking: Promise<unknown>,
    type: new (...args: never[]) => Error,
    text: RegExp,
  ) => {
    const error = await rig.until(taking.catch((one) => one));
    assert.ok(error instanceof type, String(error));
    assert.match(error.message, text);
  };
  const waitSeconds = 60;
  const good = rig.token;

  await rejects(
    rig.client({ instance: "nobody" }).acquire({ operationId: "o", waitSeconds }),
    NotAuthorizedError,
    /'spec.deploymentClients' of the MysqlDatabase 'nobody'/,
  );
  await rejects(
    rig.client().acquire({ operationId: "a/b", waitSeconds }),
    InvalidRequestError,
    /current value is 'a\/b'/,
  );
  await rejects(
    rig.client().acquire({ kind: "failover-hold", operationId: "o", waitSeconds }),
    NotAuthorizedError,
    /not allowed/,
  );
  rig.token = () => "wrong";
  await rejects(
    rig.client().acquire({ operationId: "o", waitSeconds }),
    NotAuthorizedError,
    /refuses the token/,
  );
  rig.token = () => Promise.reject(new Error("no such file"));
  await rejects(
    rig.client().acquire({ operationId: "o", waitSeconds }),
    CredentialError,
    /HOLDFAST_TOKEN_FILE/,
  );
  rig.token = good;
  rig.forecast = first("GET", Response.json({ error: "not_found" }, { status: 404 }));
  await rejects(
    rig.client().acquire({ operationId: "o", waitSeconds }),
    UnknownGroupError,
    /no MysqlFailoverGroup of this name/,
  );
  assert.ok(rig.clock.monotonic() - startMs < 1_000);
  assert.equal(rig.clientTimers, 0);
});

Deno.test("an operation that was revoked stays so, and is refused at once", async () => {
  using rig = new Rig();
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  await rig.setStatus({ activeSite: "pdx", topologyGeneration: 8 });
  await rig.pass(10_000);
  await rig.until(lease.release());
  await rig.setStatus({
    sites: [
      { name: "pdx", state: "writable", replicating: false },
      { name: "iad", state: "read-only", replicating: true, secondsBehindSource: 0 },
    ],
  });
  const error = await rig.until(
    rig.client().acquire({ operationId: "op-1", waitSeconds: 60 }).catch((one) => one),
  );
  assert.ok(error instanceof OperationRevokedError, String(error));
  assert.equal(error.reason, "topology_changed");
});

Deno.test("a primary that moves between the look and the grant costs one more round", async () => {
  using rig = new Rig();
  const { body: look } = await rig.service.client().observe();
  rig.forecast = first("GET", Response.json({ ...look, topologyGeneration: 6, activeSite: "old" }));
  const lease = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  assert.deepEqual([lease.topologyGeneration, lease.activeSite], [7, "iad"]);
  assert.equal(rig.of("DELETE").length, 1);
  await rig.until(lease.release());
});

Deno.test("a wait that is called off leaves no lease behind, also when the grant is under way", async () => {
  using rig = new Rig();
  const holder = await rig.until(rig.client().acquire({ operationId: "op-1" }));
  const controller = new AbortController();
  const { signal } = controller;
  const waiting = rig.client().acquire({ operationId: "op-2", waitSeconds: 60, signal });
  await rig.pass(3_000);
  controller.abort(new Error("called off"));
  await assert.rejects(rig.until(waiting), { message: "called off" });
  await rig.until(holder.release());

  const second = new AbortController();
  rig.forecast = ({ method }) => {
    if (method === "POST") second.abort(new Error("called off again"));
    return "fine";
  };
  const late = rig.client().acquire({ operationId: "op-3", signal: second.signal });
  await assert.rejects(rig.until(late), { message: "called off again" });
  const { body } = await rig.service.client().observe();
  assert.deepEqual(body.leases, []);
  assert.equal(rig.clientTimers, 0);
});

Deno.test("options that cannot be used are refused before anything is sent", async () => {
  using rig = new Rig();
  const client = rig.client();
  const table = [
    [{ ttlSeconds: 4 }, /'ttlSeconds' must be a whole number of seconds from 5 to 120.* is 4/],
    [{ ttlSeconds: 121 }, /'ttlSeconds' must be .* is 121/],
    [{ ttlSeconds: 8.5 }, /whole number/],
    [{ ttlSeconds: 7 }, /'ttlSeconds' must be so long .* 4 s before its end: current value is 7/],
    [{ stopMarginSeconds: 1 }, /'stopMarginSeconds' must be at least twice the clock offset, 2/],
    [{ waitSeconds: -1 }, /'waitSeconds' must be a number from 0/],
    [{ waitSeconds: NaN }, /'waitSeconds' must be a number from 0/],
    [{ maxLagSeconds: -1 }, /'maxLagSeconds' must be a number of 0 or more/],
    [{ operationId: "" }, /'operationId' must be a text of 1 to 128 bytes/],
  ] as const;
  for (const [options, text] of table) {
    await assert.rejects(client.acquire({ operationId: "o", ...options }), (error) => {
      assert.ok(error instanceof ClientSettingsError);
      assert.match(error.message, text);
      return true;
    });
  }
  assert.throws(() => rig.client({ group: "Orders" }), /'group' must be a DNS-1123 subdomain/);
  assert.throws(() => rig.client({ instance: "" }), /'instance' must be a DNS-1123 subdomain/);
  assert.deepEqual(rig.sent, []);
});

Deno.test("a look at an unstable group is no error, one at a group that nobody knows is", async () => {
  using rig = new Rig();
  await rig.setStatus({ activeSite: "" });
  const view = await rig.until(rig.client().observe());
  assert.deepEqual([view.stable, view.unstableReason], [false, "NoPrimary"]);
  rig.forecast = first(
    "GET",
    Response.json({ error: "unstable", reason: "TopologyPersistencePending" }, { status: 423 }),
  );
  await assert.rejects(rig.until(rig.client().observe()), {
    name: "UnstableError",
    reason: "TopologyPersistencePending",
  });
});

Deno.test("members of an answer that are not known are passed over", async () => {
  using rig = new Rig();
  const { body: look } = await rig.service.client().observe();
  rig.forecast = first("GET", Response.json({ ...look, ofANewerService: { x: 1 } }));
  const view = await rig.until(rig.client().observe());
  assert.equal(view.topologyGeneration, 7);
  assert.equal("ofANewerService" in view, false);
});
