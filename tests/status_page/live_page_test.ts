import assert from "node:assert/strict";
import type { LeaseInstant } from "../../lib/lease_time/lease_time.ts";
import { BEAT_MS, LivePage } from "../../lib/status_page/live_page.ts";
import { MOST_CHANGES } from "../../lib/status_page/changes.ts";
import { TestClock } from "../../lib/testing/mod.ts";
import { ACTIVE, healthyGroup, STANDBY } from "../group/fixtures.ts";
import { gate, gateOf, leaseOf, migration, NOW_MS } from "../status/fixtures.ts";
import { KeepingClient, named, PageView } from "./page_fixtures.ts";

/** How long the page collects, and a little. */
const COLLECTED_MS = 250;

class Rig implements AsyncDisposable {
  readonly clock = new TestClock(NOW_MS);
  readonly view = new PageView();
  readonly drawn: string[] = [];
  readonly page: LivePage;
  readonly #end = new AbortController();
  #running = Promise.resolve();

  constructor(epoch = "epoch1") {
    this.page = new LivePage({
      view: this.view,
      clock: this.clock,
      time: () => this.time(),
      replica: () => "holdfast-0",
      epoch,
      render: ({ id }) => {
        this.drawn.push(id);
        return `<p id="${id}"></p>`;
      },
    });
  }

  time(): LeaseInstant {
    const now = this.clock.wall();
    return { earliestMs: now, latestMs: now, certain: true };
  }

  run(): this {
    this.#running = this.page.run(this.#end.signal);
    return this;
  }

  /** Lets what was told go out. */
  async collect(): Promise<void> {
    await this.clock.advance(COLLECTED_MS);
  }

  connect(has: Parameters<LivePage["open"]>[1] = null): KeepingClient {
    const client = new KeepingClient();
    this.page.open(client, has);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#running;
  }
}

function lagging(seconds: number) {
  return healthyGroup({
    status: { sites: [ACTIVE, { ...STANDBY, secondsBehindSource: seconds }] },
  });
}

const mutex = [gateOf(gate()), leaseOf(migration())];

/** What the messages are about. */
function subjects(client: KeepingClient): readonly unknown[] {
  return client.take().map(({ id, keep, into }) =>
    id ?? (keep === undefined ? "version" : `keep ${into}`)
  );
}

Deno.test("a client that has nothing gets the whole page, and then only what changes", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), mutex, "initial");
  await rig.collect();
  const client = rig.connect();
  assert.deepEqual(subjects(client), [
    "keep groups",
    "keep changes",
    "source",
    "summary",
    "problems",
    "group:database-ns/orders",
    "version",
  ]);
  rig.view.put(lagging(3), mutex);
  await rig.collect();
  assert.deepEqual(subjects(client), [
    "head:database-ns/orders",
    "site:database-ns/orders:pdx",
    "version",
  ]);
});

Deno.test("a change that shows nothing sends nothing", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), mutex, "initial");
  await rig.collect();
  const client = rig.connect();
  client.take();
  const touched = lagging(0);
  rig.view.put({ ...touched, metadata: { ...touched.metadata, resourceVersion: "11" } }, mutex);
  await rig.collect();
  assert.equal(client.waiting, 0);
});

Deno.test("a client that comes back gets what changed meanwhile, and nothing else", async () => {
  await using rig = new Rig().run();
  for (const name of ["a", "b", "c"]) rig.view.put(named(name), [], "initial");
  await rig.collect();
  const has = { ...rig.page.version, change: 0 };
  rig.view.put(named("b", lagging(9)));
  rig.view.put(named("d"));
  await rig.collect();
  assert.deepEqual(subjects(rig.connect(has)), [
    "summary",
    "problems",
    "group:database-ns/b",
    "group:database-ns/d",
    "version",
  ]);
  assert.deepEqual(subjects(rig.connect({ ...rig.page.version, change: 0 })), ["version"]);
});

Deno.test("a client that comes back is told which groups there are, once one is gone", async () => {
  await using rig = new Rig().run();
  for (const name of ["a", "b"]) rig.view.put(named(name), [], "initial");
  await rig.collect();
  const client = rig.connect();
  client.take();
  const has = { ...rig.page.version, change: 0 };
  rig.view.remove("database-ns/a");
  await rig.collect();
  const [gone] = client.take();
  assert.deepEqual([gone?.id, gone?.html], ["group:database-ns/a", undefined]);
  const [keep] = rig.connect(has).take();
  assert.deepEqual([keep?.into, keep?.keep], ["groups", ["group:database-ns/b"]]);
  assert.ok(!subjects(rig.connect({ ...rig.page.version, change: 0 })).includes("keep groups"));
});

Deno.test("what another process, or a later one, told is worth nothing: all is sent", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), mutex, "initial");
  await rig.collect();
  const { epoch, sequence } = rig.page.version;
  for (const has of [{ epoch: "other", sequence, change: 0 }, { epoch, sequence: 99, change: 0 }]) {
    assert.ok(subjects(rig.connect(has)).includes("group:database-ns/orders"));
  }
});

Deno.test("each change is drawn once, however many clients there are, and not at all without one", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), mutex, "initial");
  await rig.collect();
  rig.view.put(lagging(1), mutex);
  await rig.collect();
  assert.deepEqual(rig.drawn, []);
  const clients = Array.from({ length: 50 }, () => rig.connect());
  rig.drawn.length = 0;
  rig.view.put(lagging(2), mutex);
  await rig.collect();
  assert.deepEqual(rig.drawn, ["head:database-ns/orders", "site:database-ns/orders:pdx"]);
  assert.ok(clients.every((client) => client.waiting > 0));
});

Deno.test("what comes within a fifth of a second goes out together", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), mutex, "initial");
  await rig.collect();
  const before = rig.page.version.sequence;
  for (let seconds = 1; seconds < 20; seconds++) rig.view.put(lagging(seconds), mutex);
  await rig.collect();
  assert.equal(rig.page.version.sequence, before + 1);
});

Deno.test("grants and ends are in the time line, also those that came and went between two sendings", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), [gateOf(gate())], "initial");
  await rig.collect();
  const client = rig.connect();
  client.take();
  rig.view.put(lagging(0), mutex);
  rig.view.put(lagging(0), [gateOf(gate()), leaseOf(migration({ state: "released" }))]);
  await rig.collect();
  assert.deepEqual(rig.page.state.changes.map(({ kind, number }) => [number, kind]), [
    [2, "released"],
    [1, "granted"],
  ]);
  const lines = client.take().map(({ id }) => id).filter((id) => String(id).startsWith("change:"));
  assert.deepEqual(lines, ["change:1", "change:2"]);
});

Deno.test("what was there at the start is no news, and what a list found later is", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), mutex, "initial");
  await rig.collect();
  assert.deepEqual(rig.page.state.changes, []);
  rig.view.put(
    lagging(0),
    [gateOf(gate()), leaseOf(migration({ state: "revoked", reason: "operator_revoked" }))],
    "resync",
  );
  await rig.collect();
  assert.deepEqual(rig.page.state.changes.map(({ kind }) => kind), ["revoked"]);
});

Deno.test("what was there before the page began to look is shown", async () => {
  const rig = new Rig();
  rig.view.put(lagging(0), mutex);
  rig.view.unreadable.set("database-ns/broken", {
    namespace: "database-ns",
    name: "broken",
    paths: ["status.sites"],
  });
  await using running = rig.run();
  assert.deepEqual([...running.page.state.groups.keys()], [
    "database-ns/broken",
    "database-ns/orders",
  ]);
});

Deno.test("a lease that is over turns without a word of the cluster", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), mutex, "initial");
  await rig.collect();
  const client = rig.connect();
  client.take();
  await rig.clock.advance(20_500);
  const [lease] = rig.page.state.groups.get("database-ns/orders")?.leases ?? [];
  assert.deepEqual([lease?.state, lease?.stored], ["expired", false]);
  assert.deepEqual(rig.page.state.changes.map(({ kind }) => kind), ["expired"]);
  assert.ok(client.take().some(({ id }) => String(id).startsWith("lease:database-ns/orders")));
});

Deno.test("a group that cannot be read is shown as such, and harms no other", async () => {
  await using rig = new Rig().run();
  rig.view.put(named("a"), [], "initial");
  rig.view.put(named("b"), [], "initial");
  await rig.collect();
  rig.view.break({ namespace: "database-ns", name: "a", paths: ["status.activeSite"] });
  await rig.collect();
  const { groups, summary } = rig.page.state;
  assert.equal(groups.get("database-ns/a")?.readable, false);
  assert.match(groups.get("database-ns/a")?.problems[0] ?? "", /status\.activeSite/);
  assert.equal(groups.get("database-ns/b")?.readable, true);
  assert.equal(summary.closed, 1);
  rig.view.unreadable.delete("database-ns/a");
  rig.view.put(named("a"));
  await rig.collect();
  assert.equal(rig.page.state.groups.get("database-ns/a")?.readable, true);
});

Deno.test("a group that the mutex of a former group closes is shown as closed, until that is gone", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), [gateOf(gate())], "initial");
  await rig.collect();
  const former = leaseOf(migration(), {
    group: { ...healthyGroup(), metadata: { ...healthyGroup().metadata, uid: "uid-0" } },
  });
  rig.view.put(lagging(0), [gateOf(gate())], "watch", [former]);
  await rig.collect();
  const closed = rig.page.state.groups.get("database-ns/orders");
  assert.equal(closed?.closedReason, "unavailable");
  assert.match(closed?.problems[0] ?? "", /its one owner must be the group as it is now/);
  assert.deepEqual(closed?.leases, []);
  rig.view.put(lagging(0), [gateOf(gate())]);
  await rig.collect();
  assert.equal(rig.page.state.groups.get("database-ns/orders")?.closedReason, "");
});

Deno.test("the page says what the replica has not seen, and which watch fails", async () => {
  const rig = new Rig();
  rig.view.synced = false;
  await using running = rig.run();
  assert.deepEqual(running.page.state.problems, ["This replica has not seen the cluster yet"]);
  const client = running.connect();
  client.take();
  running.view.synced = true;
  running.view.troubles = ["This replica's watch of leases fails (unavailable)"];
  await running.clock.advance(BEAT_MS);
  assert.deepEqual(running.page.state.problems, running.view.troubles);
  assert.ok(subjects(client).includes("problems"));
});

Deno.test("a client hears every ten seconds that the replica is alive, and what time it is", async () => {
  await using rig = new Rig().run();
  const client = rig.connect();
  client.take();
  await rig.clock.advance(BEAT_MS);
  const [first, ...more] = client.take();
  assert.deepEqual(more, []);
  assert.deepEqual(first, { epoch: "epoch1", sequence: 0, at: NOW_MS + BEAT_MS });
  await rig.clock.advance(BEAT_MS);
  assert.equal(client.take().length, 1);
});

Deno.test("what waits for a client that does not read is bounded by what the page shows", async () => {
  await using rig = new Rig().run();
  const client = rig.connect();
  for (let round = 0; round < MOST_CHANGES + 20; round++) {
    const createdAt = new Date(NOW_MS + round * 1_000).toISOString();
    const record = migration({ createdAt, expiresAt: "2026-02-01T00:00:00Z" });
    rig.view.put(lagging(round), [gateOf(gate()), leaseOf(record)]);
    await rig.collect();
  }
  assert.ok(client.waiting > MOST_CHANGES);
  // The lines of the time line, the rows of the leases that were, and single parts.
  const lines = client.take().filter(({ id }) => String(id).startsWith("change:"));
  assert.equal(lines.length, MOST_CHANGES);
});

Deno.test("a client that is gone is forgotten, and one that came too late is not remembered", async () => {
  await using rig = new Rig().run();
  rig.view.put(lagging(0), mutex, "initial");
  await rig.collect();
  const client = rig.connect();
  const late = new KeepingClient();
  late.leave();
  rig.page.open(late, null);
  client.leave();
  client.take();
  rig.view.put(lagging(1), mutex);
  await rig.collect();
  assert.deepEqual([client.waiting, late.waiting], [0, 0]);
});

Deno.test("the page ends with its signal, and leaves no timer and no listener", async () => {
  const rig = new Rig().run();
  rig.view.put(lagging(0), mutex);
  await rig[Symbol.asyncDispose]();
  assert.equal(rig.view.listeners, 0);
  assert.equal(rig.clock.pendingTimers, 0);
  const ended = new AbortController();
  ended.abort();
  await rig.page.run(ended.signal);
  assert.equal(rig.clock.pendingTimers, 0);
});
