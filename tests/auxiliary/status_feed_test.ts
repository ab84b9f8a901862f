import assert from "node:assert/strict";
import { StatusFeed } from "../../lib/auxiliary/status_feed.ts";
import type { WebSocketClient } from "../../lib/host/web_socket_client.ts";
import { TestClock } from "../../lib/testing/mod.ts";
import { FakeView, groupNamed } from "./support.ts";

/** A client that notes what is put for it. */
class NotingClient implements WebSocketClient {
  readonly #end = new AbortController();
  readonly puts: (readonly [string, string])[] = [];

  get gone(): AbortSignal {
    return this.#end.signal;
  }

  put(key: string, text: string): void {
    this.puts.push([key, text]);
  }

  /** What came since the last time: the active site of each message, by group. */
  take(): readonly string[] {
    return this.puts.splice(0).map(([key, text]) => `${key} ${JSON.parse(text).activeSite}`);
  }

  leave(): void {
    this.#end.abort();
  }
}

function rig() {
  const groups = new FakeView();
  const clock = new TestClock();
  groups.put(groupNamed("a"));
  groups.put(groupNamed("b"));
  return { groups, clock, feed: new StatusFeed({ groups, clock }) };
}

Deno.test("a client gets one message for each group when it comes, and one for each change", () => {
  const { groups, feed } = rig();
  const client = new NotingClient();
  feed.open(client);
  assert.deepEqual(client.take(), ["database-ns/a iad", "database-ns/b iad"]);
  groups.put(groupNamed("a", { activeSite: "pdx" }));
  groups.put(groupNamed("c"));
  assert.deepEqual(client.take(), ["database-ns/a pdx", "database-ns/c iad"]);
});

Deno.test("a message is the whole state of its group, so that the newest one is enough", () => {
  const { groups, feed } = rig();
  const client = new NotingClient();
  feed.open(client);
  groups.put(groupNamed("a", { updatePhase: "UpdatingReplicas" }));
  const [, text] = client.puts.at(-1) ?? [];
  const message = JSON.parse(text ?? "");
  assert.deepEqual(
    [
      message.namespace,
      message.group,
      message.activeSite,
      message.sites.length,
      message.updatePhase,
    ],
    ["database-ns", "a", "iad", 2, "UpdatingReplicas"],
  );
});

Deno.test("a change of what is not told brings no message", () => {
  const { groups, feed } = rig();
  const client = new NotingClient();
  feed.open(client);
  client.take();
  groups.put(groupNamed("a", { topologyGeneration: 8 }));
  assert.deepEqual(client.take(), []);
});

Deno.test("every group is told again every 30 s, and not all of them at once", async () => {
  const { clock, feed, groups } = rig();
  for (let index = 0; index < 58; index++) groups.put(groupNamed(`g${index}`));
  const client = new NotingClient();
  feed.open(client);
  assert.equal(client.take().length, 60);
  for (const _ of [1, 2]) {
    const seen: string[] = [];
    for (let second = 0; second < 30; second++) {
      await clock.advance(1_000);
      const now = client.take();
      assert.equal(now.length, 2);
      seen.push(...now);
    }
    assert.equal(new Set(seen).size, 60);
  }
  groups.remove("database-ns/a");
  await clock.advance(30_000);
  const left = client.take();
  assert.equal(left.length, 59);
  assert.ok(!left.includes("database-ns/a iad"));
  client.leave();
});

Deno.test("a message is made once, however many clients there are", () => {
  const { groups, feed } = rig();
  const clients = Array.from({ length: 100 }, () => new NotingClient());
  for (const client of clients) feed.open(client);
  assert.equal(groups.listeners.size, 1);
  let shown = 0;
  const sight = groups.sight.bind(groups);
  groups.sight = (key) => {
    shown++;
    return sight(key);
  };
  groups.put(groupNamed("a", { activeSite: "pdx" }));
  // Once by the fake view itself, for how the group was.
  assert.equal(shown, 2);
  for (const client of clients) assert.equal(client.take().at(-1), "database-ns/a pdx");
});

Deno.test("a client that is gone gets nothing more, and without clients nothing is done", async () => {
  const { groups, clock, feed } = rig();
  const [one, two] = [new NotingClient(), new NotingClient()];
  feed.open(one);
  feed.open(two);
  one.leave();
  one.take();
  groups.put(groupNamed("a", { activeSite: "pdx" }));
  assert.deepEqual([one.take().length, two.take().at(-1)], [0, "database-ns/a pdx"]);
  two.leave();
  assert.deepEqual([groups.listeners.size, clock.pendingTimers], [0, 0]);
  groups.put(groupNamed("a", { activeSite: "sfo" }));
  await clock.advance(60_000);
  const late = new NotingClient();
  feed.open(late);
  assert.deepEqual(late.take(), ["database-ns/a sfo", "database-ns/b iad"]);
  late.leave();
});

Deno.test("a client that is gone before it begins is not kept", () => {
  const { groups, clock, feed } = rig();
  const client = new NotingClient();
  client.leave();
  feed.open(client);
  assert.deepEqual([client.take(), groups.listeners.size, clock.pendingTimers], [[], 0, 0]);
});
