import assert from "node:assert/strict";
import { LEASES } from "../../lib/kube/resources.ts";
import { ConnectionLostError } from "../../lib/testing/faults.ts";
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

Deno.test("a watch without a version begins with the state of now", async () => {
  const { fake, clock } = newFake();
  fake.apply(lease("a"));
  for (const query of ["", "resourceVersion=0"]) {
    const events = await watch(fake, LEASES_PATH, query);
    assert.equal(await events.next(), "ADDED a@3");
    await events.cancel();
  }
  await fake.close();
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a watch from a version tells what came after it", async () => {
  const { fake, clock } = newFake();
  fake.apply(lease("a"));
  const from = fake.revision;
  await ask(fake, "POST", LEASES_PATH, lease("b"));
  const events = await watch(fake, LEASES_PATH, `resourceVersion=${from}`);
  await patch(fake, `${LEASES_PATH}/b`, { spec: { holderIdentity: "z" } });
  await ask(fake, "DELETE", `${LEASES_PATH}/b`);
  fake.apply(lease("c", { namespace: "other" }));
  await ask(fake, "POST", LEASES_PATH, lease("d"));
  assert.equal(await events.next(), "ADDED b@4");
  assert.equal(await events.next(), "MODIFIED b@5");
  assert.equal(await events.next(), "DELETED b@6");
  assert.match(String(await events.next()), /^ADDED d@/);
  await events.cancel();
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("an object that stops matching is told as DELETED, as it matched last", async () => {
  const { fake } = newFake();
  const created = await ask(fake, "POST", LEASES_PATH, lease("a", { labels: { app: "1" } }));
  const query = `labelSelector=app%3D1&resourceVersion=${created.body.metadata?.resourceVersion}`;
  const events = await watch(fake, LEASES_PATH, query);
  for (const app of ["2", "1", "1b"]) {
    await patch(fake, `${LEASES_PATH}/a`, { metadata: { labels: { app } } });
  }
  const left = await events.nextRaw();
  assert.equal(left?.type, "DELETED");
  assert.deepEqual(left?.object.metadata?.labels, { app: "1" });
  assert.equal(left?.object.metadata?.resourceVersion, "4");
  assert.equal(await events.next(), "ADDED a@5");
  assert.equal(await events.next(), "DELETED a@6");
  await events.cancel();
});

Deno.test("a version that is forgotten is told as a 410 ERROR event, and the watch ends", async () => {
  const { fake, clock } = newFake({ historyLimit: 10 });
  for (let round = 0; round < 20; round++) {
    fake.apply(lease("a", {}, { holderIdentity: String(round) }));
  }
  const events = await watch(fake, LEASES_PATH, "resourceVersion=2");
  const event = await events.nextRaw();
  assert.deepEqual([event?.type, event?.object.code, event?.object.reason], [
    "ERROR",
    410,
    "Expired",
  ]);
  assert.equal(await events.next(), null);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a version of the future is waited for in silence", async () => {
  const { fake } = newFake();
  const events = await watch(fake, LEASES_PATH, `resourceVersion=${fake.revision + 2}`);
  for (const name of ["a", "b", "c"]) await ask(fake, "POST", LEASES_PATH, lease(name));
  assert.match(String(await events.next()), /^ADDED c@/);
  await events.cancel();
});

Deno.test("bookmarks come at their interval, and on demand, to those who asked", async () => {
  const { fake, clock } = newFake();
  const from = `resourceVersion=${fake.revision}`;
  const events = await watch(fake, LEASES_PATH, `allowWatchBookmarks=true&${from}`);
  const without = await watch(fake, LEASES_PATH, from);
  fake.apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" } });
  await clock.advance(60_000);
  assert.equal(await events.next(), `BOOKMARK @${fake.revision}`);
  fake.sendBookmarks();
  assert.equal(await events.next(), `BOOKMARK @${fake.revision}`);
  fake.apply(lease("a"));
  assert.match(String(await without.next()), /^ADDED a/);
  await events.cancel();
  await without.cancel();
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("sendInitialEvents marks the end of the state with an annotated bookmark", async () => {
  const { fake } = newFake();
  fake.apply(lease("a"));
  const events = await watch(
    fake,
    LEASES_PATH,
    "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
  );
  assert.equal(await events.next(), "ADDED a@3");
  const end = await events.nextRaw();
  assert.deepEqual(end?.object.metadata?.annotations, { "k8s.io/initial-events-end": "true" });
  await events.cancel();
});

Deno.test("timeoutSeconds ends a watch; without it half an hour to an hour does", async () => {
  const { fake, clock } = newFake();
  const short = await watch(fake, LEASES_PATH, "timeoutSeconds=5");
  const long = await watch(fake, LEASES_PATH);
  await clock.advance(5_000);
  assert.equal(await short.next(), null);
  await clock.advance(3_600_000);
  assert.equal(await long.next(), null);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a watch ends with its signal, and one that is aborted before never starts", async () => {
  const { fake, clock } = newFake();
  const controller = new AbortController();
  const events = await watch(fake, LEASES_PATH, "", controller.signal);
  controller.abort(new Error("enough"));
  await assert.rejects(events.next(), /enough/);
  await assert.rejects(watch(fake, LEASES_PATH, "", controller.signal), /enough/);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a rewind breaks running watches and gives versions again", async () => {
  const { fake } = newFake();
  fake.apply(WIDGET_CRD);
  fake.apply(lease("a"));
  const snapshot = fake.snapshot();
  fake.apply(lease("b"));
  fake.apply(widget("w"));
  const events = await watch(fake, LEASES_PATH, `resourceVersion=${fake.revision}`);
  fake.restore(snapshot);
  await assert.rejects(events.next(), ConnectionLostError);
  assert.equal(fake.revision, snapshot.revision);
  assert.deepEqual(fake.readAll(LEASES).map((one) => one.metadata.name), ["a"]);
  assert.equal((await ask(fake, "GET", WIDGETS_PATH)).status, 200);
  const again = await ask(fake, "POST", LEASES_PATH, lease("c"));
  assert.equal(again.body.metadata?.resourceVersion, String(snapshot.revision + 1));
  const old = await watch(fake, LEASES_PATH, `resourceVersion=${snapshot.revision - 1}`);
  assert.equal((await old.nextRaw())?.type, "ERROR");
});

Deno.test("a CRD that is removed tells its objects as deleted", async () => {
  const { fake } = newFake();
  fake.apply(WIDGET_CRD);
  fake.apply(widget("w"));
  const events = await watch(fake, WIDGETS_PATH, `resourceVersion=${fake.revision}`);
  await ask(
    fake,
    "DELETE",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.io",
  );
  assert.match(String(await events.next()), /^DELETED w/);
  await events.cancel();
});

Deno.test("a watch can be asked for tables", async () => {
  const { fake } = newFake();
  fake.apply(lease("a"));
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const response = await fake.fetch(`https://fake${LEASES_PATH}?watch=1`, { headers: { accept } });
  const reader = response.body?.getReader();
  const first = new TextDecoder().decode((await reader?.read())?.value);
  assert.equal(JSON.parse(first).object.kind, "Table");
  await reader?.cancel();
});

Deno.test("a reader that falls far behind is cut off", async () => {
  const { fake, clock } = newFake();
  const response = await fake.fetch(`https://fake${LEASES_PATH}?watch=1`);
  for (let round = 0; round < 10_010; round++) {
    fake.apply(lease("a", {}, { holderIdentity: String(round) }));
  }
  const reader = response.body?.getReader();
  await assert.rejects(async () => {
    while (!(await reader?.read())?.done);
  }, ConnectionLostError);
  assert.equal(clock.pendingTimers, 0);
});
