/**
 * The contract, three times over: a real API server, the one in memory over HTTPS, and the one in memory by itself.
 *
 * @module
 */

import { useCluster } from "../cluster/cluster_test_support.ts";
import { CONTRACT } from "./contract.ts";
import { openScope } from "./scope.ts";

const clusterTest = useCluster();

for (const [index, { name, check }] of CONTRACT.entries()) {
  clusterTest(`real API server: ${name}`, async (cluster) => {
    const target = {
      admin: cluster.adminCaller,
      caller: (token: string) => cluster.caller({ token }),
      grant: cluster.grant.bind(cluster),
    };
    await check(await openScope(target, `contract-${index}`));
  });
}
