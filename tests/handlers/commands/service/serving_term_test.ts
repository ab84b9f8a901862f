import assert from "node:assert/strict";
import { ServingTerm } from "../../../../handlers/commands/service/serving_term.ts";
import { DEFAULT_TIMING, runLeaderTasks, staticLeadership } from "../../../../lib/election/mod.ts";
import { InFlight } from "../../../../lib/host/in_flight.ts";
import { silentLogger } from "../../../../lib/runtime/log.ts";
import { TestClock } from "../../../../lib/testing/mod.ts";

Deno.test("the API is open for exactly a term, and the lead is kept until requests in flight have settled", async () => {
  const clock = new TestClock();
  const told: string[] = [];
  const inFlight = new InFlight();
  const serving = new ServingTerm({
    beginTerm: () => told.push("begin"),
    endTerm: () => told.push("end"),
  }, inFlight);
  const candidate = staticLeadership({ clock, identity: "a", leaseName: "l" });
  const leading = runLeaderTasks({
    candidate,
    tasks: [serving],
    timing: DEFAULT_TIMING,
    clock,
    logger: silentLogger,
    onTaskError: () => {},
    exit: () => {},
  });
  assert.equal(serving.serves(), false);
  candidate.start();
  await clock.advance(0);
  assert.deepEqual([serving.serves(), told], [true, ["begin"]]);

  const request = Promise.withResolvers<Response>();
  const answered = inFlight.track(() => request.promise);
  let stopped = false;
  const stopping = candidate.stop(new AbortController().signal).then(() => stopped = true);
  await clock.advance(1_000);
  assert.deepEqual([serving.serves(), stopped, told], [false, false, ["begin"]]);
  request.resolve(new Response());
  await answered;
  await stopping;
  await leading;
  assert.deepEqual(told, ["begin", "end"]);
  assert.equal(clock.pendingTimers, 0);
});
