import assert from "node:assert/strict";
import { LEASES } from "../../lib/kube/resources.ts";
import type { FakeCluster } from "../../lib/testing/fake_cluster.ts";
import { ConnectionLostError, type Fault } from "../../lib/testing/faults.ts";
import {
  ask,
  lease,
  LEASES_PATH,
  newFake,
  patch,
  watch,
  widget,
  WIDGET_CRD,
  WIDGETS_PATH,
} from "./helpers.ts";

const A = { namespace: "default", name: "a" };

/** Lets what waits on promises alone go on. */
async function settle() {
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setTimeout(resolve, 0));
}

/** Follows a promise without waiting for it. */
function follow<T>(promise: Promise<T>) {
  const followed: { state: "waits" | "done" | "failed"; value?: T; error?: unknown } = {
    state: "waits",
  };
  promise.then((value) => Object.assign(followed, { state: "done", value }), (error) => {
    Object.assign(followed, { state: "failed", error });
  });
  return followed;
}

function put(fake: FakeCluster, signal?: AbortSignal) {
  return fake.fetch(`https://fake${LEASES_PATH}/a`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(lease("a")),
    ...(signal ? { signal } : {}),
  });
}

Deno.test("a status fault answers in place of the server, as often as it is to", async () => {
  const { fake } = newFake();
  const fault = fake.faults.add({
    verb: "get",
    resource: "leases",
    count: 2,
    fault: { type: "status", code: 429, retryAfterSeconds: 3 },
  });
  for (let round = 0; round < 2; round++) {
    const answer = await ask(fake, "GET", `${LEASES_PATH}/a`);
    assert.equal(answer.status, 429);
    assert.equal(answer.headers.get("retry-after"), "3");
    assert.equal(answer.body.reason, "TooManyRequests");
  }
  assert.equal((await ask(fake, "GET", `${LEASES_PATH}/a`)).status, 404);
  assert.equal(fault.hits, 2);
});

Deno.test("without a wish of the test a fault sends no Retry-After", async () => {
  const { fake } = newFake();
  for (const code of [403, 409, 500, 503, 599]) {
    const fault = fake.faults.add({ fault: { type: "status", code } });
    const answer = await ask(fake, "GET", LEASES_PATH);
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [code, null]);
    fault.remove();
  }
  assert.equal((await ask(fake, "GET", LEASES_PATH)).status, 200);
});

Deno.test("a fault hits only the calls that it names", async () => {
  const { fake } = newFake();
  fake.apply(WIDGET_CRD);
  fake.apply(widget("w"));
  const token = fake.userToken("bob");
  const fault: Fault = { type: "status", code: 503 };
  const hit = async (
    rule: object,
    method: string,
    path: string,
    headers: Record<string, string> = {},
  ) => {
    const handle = fake.faults.add({ ...rule, fault });
    const { status } = await ask(fake, method, path, method === "PATCH" ? {} : undefined, {
      ...(method === "PATCH" ? { "content-type": "application/merge-patch+json" } : {}),
      ...headers,
    });
    handle.remove();
    return status === 503;
  };
  const list = LEASES_PATH;
  assert.equal(await hit({ verb: "list" }, "GET", list), true);
  assert.equal(await hit({ verb: "get" }, "GET", list), false);
  assert.equal(await hit({ resource: "leases.coordination.k8s.io" }, "GET", list), true);
  assert.equal(await hit({ resource: "configmaps" }, "GET", list), false);
  assert.equal(await hit({ resource: "widgets" }, "PATCH", `${WIDGETS_PATH}/w/status`), false);
  assert.equal(
    await hit({ resource: "widgets/status" }, "PATCH", `${WIDGETS_PATH}/w/status`),
    true,
  );
  assert.equal(
    await hit({ resource: "widgets.example.io/status" }, "PATCH", `${WIDGETS_PATH}/w/status`),
    true,
  );
  assert.equal(await hit({ name: "a" }, "GET", `${list}/a`), true);
  assert.equal(await hit({ name: "b" }, "GET", `${list}/a`), false);
  assert.equal(await hit({ namespace: "other" }, "GET", list), false);
  const bob = { authorization: `Bearer ${token}` };
  assert.equal(await hit({ user: "bob" }, "GET", list, bob), true);
  assert.equal(await hit({ user: "bob" }, "GET", list), false);
  assert.equal(await hit({ resource: "/version" }, "GET", "/version"), true);
});

Deno.test("skip lets the first calls pass", async () => {
  const { fake } = newFake();
  fake.faults.add({ skip: 1, count: 1, fault: { type: "status", code: 500 } });
  const statuses: number[] = [];
  for (let round = 0; round < 3; round++) {
    statuses.push((await ask(fake, "GET", LEASES_PATH)).status);
  }
  assert.deepEqual(statuses, [200, 500, 200]);
});

Deno.test("latency delays a call on the injected clock", async () => {
  const { fake, clock } = newFake();
  fake.faults.add({ fault: { type: "latency", ms: 100 } });
  const call = follow(put(fake));
  await clock.advance(99);
  assert.equal(call.state, "waits");
  assert.equal(fake.read(LEASES, A), null);
  await clock.advance(1);
  await settle();
  assert.equal(call.state, "done");
  assert.notEqual(fake.read(LEASES, A), null);
});

Deno.test("a delayed answer has stored its write already", async () => {
  const { fake, clock } = newFake();
  fake.faults.add({ fault: { type: "delayed-answer", ms: 100 } });
  const call = follow(put(fake));
  await settle();
  assert.notEqual(fake.read(LEASES, A), null);
  assert.equal(call.state, "waits");
  await clock.advance(100);
  await settle();
  assert.equal(call.value?.status, 201);
});

Deno.test("a reset fails the call as fetch does, before anything is stored", async () => {
  const { fake } = newFake();
  fake.faults.add({ count: 1, fault: { type: "reset" } });
  await assert.rejects(put(fake), (error) => error instanceof TypeError);
  assert.equal(fake.read(LEASES, A), null);
  assert.equal(fake.calls.entries[0]?.status, null);
});

Deno.test("a lost answer stores the write: as a reset, or in silence", async () => {
  const { fake } = newFake();
  fake.faults.add({ count: 1, fault: { type: "lost-answer", as: "reset" } });
  await assert.rejects(put(fake), ConnectionLostError);
  assert.notEqual(fake.read(LEASES, A), null);
  fake.remove(LEASES, A);
  const silent = fake.faults.add({ fault: { type: "lost-answer", as: "hang" } });
  const call = follow(put(fake));
  await settle();
  assert.equal(call.state, "waits");
  assert.notEqual(fake.read(LEASES, A), null);
  silent.remove();
  await settle();
  assert.equal(call.value?.status, 201);
});

Deno.test("a hang ends with the signal, with the removal of the fault, or with the cluster", async () => {
  const { fake, clock } = newFake();
  const fault = fake.faults.add({ fault: { type: "hang" } });
  const controller = new AbortController();
  const aborted = follow(put(fake, controller.signal));
  await settle();
  controller.abort(new Error("enough"));
  await settle();
  assert.match(String(aborted.error), /enough/);
  assert.equal(fake.read(LEASES, A), null);
  const thawed = follow(put(fake));
  await settle();
  fault.remove();
  await settle();
  assert.equal(thawed.value?.status, 201);
  fake.faults.add({ fault: { type: "hang" } });
  const closed = follow(put(fake));
  await settle();
  await fake.close();
  await settle();
  assert.ok(closed.error instanceof ConnectionLostError);
  await assert.rejects(put(fake), ConnectionLostError);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a body that hangs shows its head and its half, and ends like a hang", async () => {
  const { fake } = newFake();
  fake.apply(lease("a"));
  const fault = fake.faults.add({ fault: { type: "hang-body" } });
  const url = `https://fake${LEASES_PATH}/a`;
  const response = await fake.fetch(url);
  assert.equal(response.status, 200);
  const text = follow(response.text());
  await settle();
  assert.equal(text.state, "waits");
  fault.remove();
  await settle();
  assert.equal(JSON.parse(text.value ?? "").metadata.name, "a");
  fake.faults.add({ fault: { type: "hang-body" } });
  const controller = new AbortController();
  const second = await fake.fetch(url, { signal: controller.signal });
  const failing = follow(second.text());
  controller.abort(new Error("enough"));
  await settle();
  assert.match(String(failing.error), /enough/);
  await (await fake.fetch(url)).body?.cancel();
});

Deno.test("a silent watch tells what it missed when the fault is removed", async () => {
  const { fake } = newFake();
  const events = await watch(fake, LEASES_PATH, `resourceVersion=${fake.revision}`);
  const fault = fake.faults.add({ verb: "watch", fault: { type: "watch-silence" } });
  assert.equal(fault.hits, 1);
  fake.apply(lease("a"));
  const next = follow(events.next());
  await settle();
  assert.equal(next.state, "waits");
  fault.remove();
  await settle();
  assert.match(String(next.value), /^ADDED a/);
  await events.cancel();
});

Deno.test("a silent watch that is told that it is too old ends once, when it speaks again", async () => {
  const { fake } = newFake();
  const events = await watch(fake, LEASES_PATH, `resourceVersion=${fake.revision}`);
  const silence = fake.faults.add({ verb: "watch", fault: { type: "watch-silence" } });
  const next = follow(events.nextRaw());
  await settle();
  fake.faults.add({ verb: "watch", fault: { type: "watch-gone" } });
  silence.remove();
  await settle();
  assert.equal(Object(next.value).type, "ERROR");
  assert.equal(await events.next(), null);
});

Deno.test("a watch breaks, or is told that it is too old: running ones and new ones", async () => {
  const { fake, clock } = newFake();
  const from = `resourceVersion=${fake.revision}`;
  const broken = await watch(fake, LEASES_PATH, from);
  const other = await watch(fake, "/api/v1/configmaps", from);
  const once = fake.faults.add({
    resource: "leases",
    count: 1,
    fault: { type: "watch-break" },
  });
  await assert.rejects(broken.next(), ConnectionLostError);
  const second = await watch(fake, LEASES_PATH, from);
  assert.equal(once.hits, 1);
  const gone = fake.faults.add({ resource: "leases", fault: { type: "watch-gone" } });
  const event = await second.nextRaw();
  assert.deepEqual([event?.type, event?.object.code], ["ERROR", 410]);
  assert.equal(await second.next(), null);
  const third = await watch(fake, LEASES_PATH, from);
  assert.equal((await third.nextRaw())?.type, "ERROR");
  gone.remove();
  fake.faults.add({ verb: "watch", fault: { type: "watch-break" } });
  await assert.rejects(other.next(), ConnectionLostError);
  fake.faults.clear();
  const fine = await watch(fake, LEASES_PATH, from);
  fake.apply(lease("a"));
  assert.match(String(await fine.next()), /^ADDED a/);
  await fine.cancel();
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a watch fault does not hit the start of a watch, and a status fault does", async () => {
  const { fake } = newFake();
  fake.faults.add({ verb: "watch", fault: { type: "status", code: 403 } });
  const answer = await ask(fake, "GET", `${LEASES_PATH}?watch=1`);
  assert.equal(answer.status, 403);
});

Deno.test("a rule that makes no sense is refused", () => {
  const { fake } = newFake();
  const add = (rule: object, fault: Fault = { type: "reset" }) => () =>
    fake.faults.add({ ...rule, fault });
  assert.throws(add({ count: -1 }), /'count' must be a whole number of 0 or more: .* -1/);
  assert.throws(add({ skip: 0.5 }), RangeError);
  assert.throws(add({}, { type: "latency", ms: -1 }), RangeError);
  assert.throws(add({}, { type: "delayed-answer", ms: NaN }), RangeError);
  assert.throws(add({}, { type: "status", code: 200 }), RangeError);
});

Deno.test("the log names each call, and counts by any of its members", async () => {
  const { fake } = newFake();
  await put(fake);
  await put(fake);
  await patch(fake, `${LEASES_PATH}/a?dryRun=All`, {});
  await ask(fake, "GET", "/version");
  const resource = "leases.coordination.k8s.io";
  assert.deepEqual(fake.calls.entries[2], {
    verb: "patch",
    resource,
    namespace: "default",
    name: "a",
    user: "admin",
    query: "dryRun=All",
    status: 200,
  });
  assert.equal(fake.calls.count(), 4);
  assert.equal(fake.calls.count({ verb: "update", resource, status: 201 }), 1);
  assert.equal(fake.calls.count({ name: "a", namespace: "default", user: "admin" }), 3);
  assert.equal(fake.calls.count({ resource: "/version" }), 1);
  assert.equal(fake.calls.count({ resource: "leases" }), 3);
  assert.equal(fake.calls.count({ resource: "lease" }), 0);
  fake.calls.reset();
  assert.deepEqual([fake.calls.total, fake.calls.entries], [0, []]);
});

Deno.test("the log of a long run keeps the last calls and counts all", async () => {
  const { fake } = newFake();
  for (let round = 0; round < 20_001; round++) {
    fake.calls.record({ verb: "get", resource: "", namespace: "", name: "", user: "", query: "" });
  }
  await ask(fake, "GET", "/version");
  assert.equal(fake.calls.total, 20_002);
  assert.equal(fake.calls.entries.at(-1)?.resource, "/version");
  assert.ok(fake.calls.entries.length <= 20_000);
});
