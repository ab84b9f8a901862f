import assert from "node:assert/strict";
import { callerOf } from "../client/real_caller.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import {
  cutRounds,
  judge,
  playAll,
  playBeforeLeaderAhead,
  processRounds,
  QUICK_ELECTION,
} from "./lost_rounds.ts";
import { playSideBySide } from "./side_by_side.ts";

clusterTest(
  "all that a run has started is gone before the next one is granted, however authority is lost",
  async (cluster, context) => {
    await using caller = await callerOf(cluster, "lost");
    await using ahead = await callerOf(cluster, "ahead", { env: QUICK_ELECTION });
    await playSideBySide(context, [
      [
        "a network that is cut, a supervisor that is killed or stopped, a command that is stopped: all is gone before the next grant",
        async () => {
          const figures = await playAll([...cutRounds(10), ...processRounds], { caller });
          assert.equal(figures.length, 15);
        },
      ],
      [
        "a new leader whose clock is 1 s ahead grants to nobody while the command of a cut-off run lives",
        async () => {
          assert.equal((await playBeforeLeaderAhead(cutRounds(4), ahead)).length, 4);
        },
      ],
    ]);
  },
);

Deno.test("a round in which a process lives on, or says so too late, does not hold", () => {
  const last = new Map([["command", 1_000], ["child", 990], ["grandchild", 1_010]]);
  assert.equal(judge("a", last, { living: [], sentMs: 3_010 }), 2_000);
  assert.throws(() => judge("a", last, { living: [42], sentMs: 3_010 }), /processes lived/);
  assert.throws(() => judge("a", last, { living: [], sentMs: 1_000 }), /lived for 10 ms after/);
  last.delete("grandchild");
  assert.throws(() => judge("a", last, { living: [], sentMs: 3_010 }), assert.AssertionError);
});
