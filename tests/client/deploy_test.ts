import assert from "node:assert/strict";
import type { DeploymentAuthority, Loss } from "../../lib/client/deployment.ts";
import { AuthorityLostError, HeldError, UnstableError } from "../../lib/client/errors.ts";
import type { OwnDeadline } from "../../lib/client/rules.ts";
import { Rig, type Weather } from "./rig.ts";

const operationId = "op-1";

/** Works until the signal aborts, and then fails as `fetch` does. */
const untilAborted = ({ signal }: DeploymentAuthority) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

async function kinds(rig: Rig): Promise<string[]> {
  const { body } = await rig.service.client().observe();
  const leases: readonly { kind: string }[] = Array.isArray(body.leases) ? body.leases : [];
  return leases.map(({ kind }) => kind);
}

Deno.test("a deployment works under both leases, renews both, and releases both", async () => {
  using rig = new Rig();
  const deadlines: OwnDeadline[] = [];
  const onDeadline = (deadline: OwnDeadline) => void deadlines.push(deadline);
  const result = await rig.until(
    rig.client().deploy({ operationId, onDeadline }, async (authority) => {
      assert.deepEqual(await kinds(rig), ["migration", "failover-hold"]);
      assert.equal(authority.operationId, operationId);
      assert.equal(authority.topologyGeneration, 7);
      assert.equal(authority.activeSite, "iad");
      assert.equal(authority.fence, authority.migration.fence);
      await new Promise<void>((done) => rig.clock.timer(45_000, done));
      assert.equal(authority.isValid(), true);
      await authority.renewNow();
      return "done";
    }),
  );
  assert.equal(result, "done");
  assert.deepEqual(await kinds(rig), []);
  assert.ok(rig.of("PUT").length >= 10);
  // The deadline of both is that of the one that ends first.
  assert.equal(deadlines[0]?.deadlineMs, 30_000);
  assert.ok(deadlines.every((one, at) => one.deadlineMs >= (deadlines[at - 1]?.deadlineMs ?? 0)));
  assert.equal(rig.clientTimers, 0);
});

Deno.test("without a hold, a planned failover is not held off", async () => {
  using rig = new Rig();
  await rig.until(
    rig.client().deploy({ operationId, hold: false }, async (authority) => {
      assert.equal(authority.hold, null);
      assert.deepEqual(await kinds(rig), ["migration"]);
      assert.equal(authority.deadline.deadlineMs, 30_000);
      await authority.renewNow();
      authority.enteringDdl();
    }),
  );
  assert.deepEqual(await kinds(rig), []);
});

Deno.test("what is released after a failure depends on DDL and on the caller's wish", async () => {
  const table = [
    { ddl: false, releaseOnFailure: false, left: [] },
    { ddl: true, releaseOnFailure: false, left: ["migration"] },
    { ddl: true, releaseOnFailure: true, left: [] },
  ];
  for (const { ddl, releaseOnFailure, left } of table) {
    using rig = new Rig();
    await assert.rejects(
      rig.until(
        rig.client().deploy({ operationId, releaseOnFailure }, (authority) => {
          assert.equal(authority.phase, "before-ddl");
          if (ddl) authority.enteringDdl();
          throw new Error("the migration failed");
        }),
      ),
      { message: "the migration failed" },
    );
    assert.deepEqual(await kinds(rig), left);
    assert.equal(rig.clientTimers, 0);
    // Left to expire means that nobody renews it.
    await rig.pass(31_000);
    assert.deepEqual(await kinds(rig), []);
  }
});

Deno.test("a deadline that comes near aborts the work, leaves time for a cleanup, and is thrown with its phase", async () => {
  for (const phase of ["before-ddl", "after-ddl"] as const) {
    using rig = new Rig();
    const losses: Loss[] = [];
    let cutOff = -1;
    const working = rig.client().deploy({
      operationId,
      onLost: async (loss) => {
        losses.push(loss);
        await new Promise<void>((done) => loss.signal.addEventListener("abort", () => done()));
        cutOff = rig.clock.monotonic();
        throw new Error("is passed over");
      },
    }, (authority) => {
      if (phase === "after-ddl") authority.enteringDdl();
      rig.forecast = () => "black_hole";
      return untilAborted(authority);
    });
    const error = await rig.until(working.catch((one) => one));
    assert.ok(error instanceof AuthorityLostError);
    assert.deepEqual([error.reason, error.phase], ["deadline", phase]);
    assert.deepEqual(
      losses.map(({ reason, phase, remainingMs }) => [reason, phase, remainingMs]),
      [["deadline", phase, 5_000]],
    );
    assert.equal(cutOff, 25_000);
    assert.equal(rig.clientTimers, 0);
  }
});

Deno.test("a revocation leaves no time, and both leases end", async () => {
  using rig = new Rig();
  const losses: Loss[] = [];
  const working = rig.client().deploy(
    { operationId, onLost: (loss) => void losses.push(loss) },
    async (authority) => {
      await rig.setStatus({ activeSite: "pdx", topologyGeneration: 8 });
      return await untilAborted(authority);
    },
  );
  await assert.rejects(rig.until(working), {
    name: "AuthorityLostError",
    reason: "topology_changed",
    phase: "before-ddl",
  });
  assert.equal(losses.length, 1);
  assert.equal(losses[0]?.remainingMs, 0);
  assert.equal(losses[0]?.signal.aborted, true);
});

Deno.test("a loss that the work did not mind is thrown all the same, with what the work said as its cause", async () => {
  using rig = new Rig();
  const client = rig.client();
  const lose = (authority: DeploymentAuthority) => authority.migration.lose("operator_revoked");
  await assert.rejects(
    rig.until(client.deploy({ operationId }, (authority) => {
      lose(authority);
      return "finished";
    })),
    { name: "AuthorityLostError", reason: "operator_revoked" },
  );
  const error = await rig.until(
    client.deploy({ operationId: "op-2" }, (authority) => {
      lose(authority);
      assert.throws(() => authority.enteringDdl(), AuthorityLostError);
      authority.ddlHasBegun();
      throw new Error("broken off");
    }).catch((one) => one),
  );
  assert.ok(error instanceof AuthorityLostError);
  assert.equal(error.phase, "after-ddl");
  assert.ok(error.cause instanceof Error);
  assert.equal(error.cause.message, "broken off");
});

Deno.test("a caller that calls the work off gets its own reason, and both leases are released", async () => {
  using rig = new Rig();
  const controller = new AbortController();
  let lost = false;
  const working = rig.client().deploy(
    { operationId, signal: controller.signal, onLost: () => void (lost = true) },
    untilAborted,
  );
  await rig.pass(5_000);
  controller.abort(new Error("called off"));
  await assert.rejects(rig.until(working), { message: "called off" });
  assert.equal(lost, false);
  assert.deepEqual(await kinds(rig), []);
});

Deno.test("work that goes on after it was called off keeps its leases, and is told their deadlines", async () => {
  using rig = new Rig();
  const controller = new AbortController();
  let told = 0;
  const onDeadline = () => void told++;
  const working = rig.client().deploy(
    { operationId, signal: controller.signal, onDeadline },
    async (authority) => {
      controller.abort(new Error("called off"));
      const before = told;
      await new Promise<void>((done) => rig.clock.timer(25_000, done));
      assert.ok(told > before);
      assert.equal(authority.isLost, false);
      return "cleaned up";
    },
  );
  assert.equal(await rig.until(working), "cleaned up");
});

Deno.test("a hold that is refused gives the migration lease back", async () => {
  using rig = new Rig();
  let worked = false;
  rig.forecast = ({ method, body }) =>
    method === "POST" && JSON.stringify(body).includes("failover-hold")
      ? Response.json({ error: "unstable", reason: "PlannedFailover" }, { status: 423 })
      : "fine";
  await assert.rejects(
    rig.until(rig.client().deploy({ operationId }, () => void (worked = true))),
    UnstableError,
  );
  assert.equal(worked, false);
  assert.deepEqual(await kinds(rig), []);
});

Deno.test("a group that turns unstable between the two leases is waited for, without the first one", async () => {
  using rig = new Rig();
  let refusals = 2;
  const told: string[] = [];
  rig.forecast = ({ method, body }) =>
    method === "POST" && JSON.stringify(body).includes("failover-hold") && refusals-- > 0
      ? Response.json({ error: "unstable", reason: "PlannedFailover" }, { status: 423 })
      : "fine";
  const onWaiting = (why: Error) => void told.push(why.name);
  await rig.until(rig.client().deploy({ operationId, waitSeconds: 30, onWaiting }, () => {}));
  assert.deepEqual(told, ["UnstableError", "UnstableError"]);
  assert.equal(rig.of("POST").length, 6);
});

Deno.test("a topology that changes between the two leases ends the deployment before its work", async () => {
  using rig = new Rig();
  let worked = false;
  rig.forecast = async ({ method, body }): Promise<Weather> => {
    if (method === "POST" && JSON.stringify(body).includes("failover-hold")) {
      await rig.setStatus({ activeSite: "pdx", topologyGeneration: 8 });
    }
    return "fine";
  };
  const working = rig.client().deploy({ operationId }, () => void (worked = true));
  const error = await rig.until(working.catch((one) => one));
  assert.match(String(error), /topology_changed|revoked|topology changed|not stable|not allowed/);
  assert.equal(worked, false);
  assert.deepEqual(await kinds(rig), []);
  assert.equal(rig.clientTimers, 0);
});

Deno.test("two deployments at once: the second one works after the first", async () => {
  using rig = new Rig();
  const order: string[] = [];
  const deploy = (instance: string, operation: string) =>
    rig.client({ instance }).deploy({ operationId: operation, waitSeconds: 60 }, async () => {
      order.push(`${operation} begins`);
      await new Promise<void>((done) => rig.clock.timer(12_000, done));
      order.push(`${operation} ends`);
    });
  const first = deploy("tenant", "a");
  await rig.pass(500);
  await rig.until(Promise.all([first, deploy("billing", "b")]));
  assert.deepEqual(order, ["a begins", "a ends", "b begins", "b ends"]);
  await assert.rejects(
    rig.until(Promise.all([
      rig.client().deploy(
        { operationId: "c" },
        () => new Promise<void>((done) => rig.clock.timer(5_000, done)),
      ),
      rig.pass(500).then(() => rig.client().deploy({ operationId: "d" }, () => {})),
    ])),
    HeldError,
  );
  await rig.pass(6_000);
});

Deno.test("a process that was stopped past its deadline while its work ended has lost its authority all the same", async () => {
  for (const fails of [false, true]) {
    using rig = new Rig();
    // No timer of the client fires: it is as if the work ended first after the process went on.
    const frozen: { ended?: () => void } = {};
    const working = rig.client().deploy({ operationId }, async (authority) => {
      const monotonic = rig.clock.monotonic.bind(rig.clock);
      rig.clock.monotonic = () => monotonic() + 60_000;
      frozen.ended = () => void (rig.clock.monotonic = monotonic);
      assert.equal(authority.signal.aborted, false);
      assert.equal(authority.isValid(), false);
      await Promise.resolve();
      if (fails) throw new Error("killed meanwhile");
    });
    const outcome = working.catch((one) => one).finally(() => frozen.ended?.());
    const error = await rig.until(outcome);
    assert.ok(error instanceof AuthorityLostError);
    assert.equal(error.reason, "deadline");
  }
});
