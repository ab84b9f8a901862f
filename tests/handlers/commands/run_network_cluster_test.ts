import assert from "node:assert/strict";
import { fromEnvironment } from "../../../handlers/commands/client.ts";
import { callerOf } from "../../client/real_caller.ts";
import { clusterTest } from "../../cluster/cluster_test_support.ts";
import { CutNetwork } from "./cut_network.ts";
import { livingOf, RunProcess } from "./run_process.ts";

const CUTS = [
  ["requests", { requestsCut: true, answersCut: false }],
  ["answers", { requestsCut: false, answersCut: true }],
  ["both", { requestsCut: true, answersCut: true }],
] as const;

clusterTest(
  "a network that is cut, one way or both, ends the command before the next grant",
  async (cluster) => {
    await using caller = await callerOf(cluster, "cut");
    const next = await fromEnvironment({ ...caller.settings, instance: "billing" });
    for (const [what, cut] of CUTS) {
      await using network = new CutNetwork(caller.settings.url);
      const deaf = "trap '' TERM; echo pid $$; while :; do sleep 1; done";
      await using process = new RunProcess(
        ["--ttl", "8s", "--wait", "20s", "--url", network.url, "--", "sh", "-c", deaf],
        caller.env,
      );
      const group = await process.commandPid();
      Object.assign(network, cut);
      const lease = await next.acquire({ operationId: `after-${what}`, waitSeconds: 60 });
      assert.deepEqual(await livingOf(group), [], what);
      await lease.release();
      const { code, stderr } = await process.ended();
      assert.equal(code, 115, stderr);
    }
  },
);
