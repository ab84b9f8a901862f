import assert from "node:assert/strict";
import fc from "fast-check";
import { type Sender, SendTurns } from "../../lib/host/send_turns.ts";
import { TestClock } from "../../lib/testing/mod.ts";

/** A sender with so many parts to send. It notes each. */
function sender(name: string, parts: number, turns: SendTurns, sent: string[]): Sender {
  const self: Sender = {
    send() {
      sent.push(name);
      parts--;
      if (parts > 0) turns.add(self);
    },
  };
  return self;
}

Deno.test("a few senders have a turn, then everything else has its own, and nobody sends twice before the others sent once", async () => {
  const clock = new TestClock();
  const turns = new SendTurns(clock);
  const sent: string[] = [];
  const bursts: string[] = [];
  for (let index = 0; index < 6; index++) turns.add(sender(String(index), 2, turns, sent));
  assert.deepEqual(sent, []);
  while (clock.pendingTimers > 0) {
    await clock.advance(1);
    bursts.push(sent.splice(0).join(""));
  }
  assert.deepEqual(bursts, ["0123", "4501", "2345"]);
});

Deno.test("one that waits already keeps its place", async () => {
  const clock = new TestClock();
  const turns = new SendTurns(clock);
  const sent: string[] = [];
  const first = sender("a", 1, turns, sent);
  turns.add(first);
  turns.add(sender("b", 1, turns, sent));
  turns.add(first);
  await clock.advance(1);
  assert.deepEqual(sent, ["a", "b"]);
});

Deno.test("one that is taken out does not send, and the last one leaves no timer behind", async () => {
  const clock = new TestClock();
  const turns = new SendTurns(clock);
  const sent: string[] = [];
  const [a, b] = [sender("a", 1, turns, sent), sender("b", 1, turns, sent)];
  turns.add(a);
  turns.add(b);
  turns.remove(a);
  assert.equal(clock.pendingTimers, 1);
  await clock.advance(1);
  assert.deepEqual(sent, ["b"]);
  turns.add(a);
  turns.remove(a);
  turns.remove(b);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("everything is sent, however much each has", async () => {
  await fc.assert(fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 5 })), async (loads) => {
    const clock = new TestClock();
    const turns = new SendTurns(clock);
    const sent: string[] = [];
    for (const [index, load] of loads.entries()) {
      turns.add(sender(String(index), load, turns, sent));
    }
    while (clock.pendingTimers > 0) await clock.advance(1);
    const counts = loads.map((_, index) => sent.filter((name) => name === String(index)).length);
    assert.deepEqual(counts, loads);
  }));
});
