import assert from "node:assert/strict";
import { callerOf } from "../client/real_caller.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { QUICK_ELECTION } from "./lost_rounds.ts";
import { upsetRun } from "./upset_run.ts";

clusterTest(
  "a run goes on while the service is restarted, its leader changes and the API server is restarted",
  async (cluster) => {
    await using caller = await callerOf(cluster, "upset", { env: QUICK_ELECTION });
    // Whatever is disturbed must be back within half of the ttl, also on a busy machine.
    const { disturbances } = await upsetRun(caller, { ttlSeconds: 45, forMs: 0 });
    assert.equal(disturbances, 3);
  },
);
