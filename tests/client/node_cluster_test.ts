import assert from "node:assert/strict";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { NodeProject } from "../package/node_project.ts";
import { callerOf } from "./real_caller.ts";

const PROGRAM = `
import { fromEnvironment, HeldError } from "@holdfast/holdfast/client";

const client = await fromEnvironment();
const view = await client.observe();
const lease = await client.acquire({ operationId: "from-node", ttlSeconds: 8 });
await lease.renewNow();
const other = await fromEnvironment({ instance: "billing" });
const refused = await other.acquire({ operationId: "second" }).catch((error) => error);
await lease.release();
const fence = await other.deploy({ operationId: "third" }, (authority) => authority.fence);
console.log(JSON.stringify({
  site: view.activeSite,
  held: refused instanceof HeldError && refused.holder.operationId,
  rises: fence > lease.fence,
}));
`;

clusterTest("the client runs under Node, from the package", async (cluster) => {
  await using caller = await callerOf(cluster, "sdk-node");
  await using project = await NodeProject.create();
  await project.write("main.js", PROGRAM);
  const child = project.start("main.js", caller.env);
  const { code, stdout } = await child.output();
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), {
    site: "iad",
    held: "from-node",
    rises: true,
  });
});
