/** The status page as a service process serves it, of a real API server: what callers and an operator do shows by itself. */

import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS, REVOKE_ANNOTATION } from "../../lib/group/types.ts";
import { ensureBinaries } from "../cluster/binaries.ts";
import { startCluster } from "../cluster/cluster.ts";
import { hasCluster } from "../cluster/cluster_test_support.ts";
import { grantedBody } from "../service/deployment_client.ts";
import { setStatus } from "../service/orders.ts";
import { Workplace } from "../service/workplace.ts";
import { browserTest } from "./chromium.ts";
import { WatchedPage } from "./watched_page.ts";

const { signal } = new AbortController();
/** What the operator writes when `pdx` is the primary. */
const switchedStatus = {
  activeSite: "pdx",
  topologyGeneration: 8,
  sites: [
    { name: "iad", state: "read-only", replicating: true, secondsBehindSource: 0 },
    { name: "pdx", state: "writable", replicating: false },
  ],
};

browserTest(
  "on a real API server the page of a service follows grants, a countdown, a switch of the primary and a revocation",
  async (browser) => {
    const binaries = await ensureBinaries();
    assert.ok(binaries);
    const cluster = await startCluster({ binaries });
    try {
      await using place = await Workplace.open(cluster, "page");
      const service = await place.startService({ HOLDFAST__AUXILIARY__STATUS_PAGE: "true" });
      const client = await place.client(service);
      await place.untilLeading(client);
      const watched = await WatchedPage.open(browser, `http://${service.address("auxiliary")}/`);
      await watched.live();
      await watched.page.evaluate("globalThis.neverReloaded = true");
      await watched.sees("#groups .none", "No lease is held.");

      const grant = await client.grant("release-1", "tenant", { ttlSeconds: 60 });
      assert.equal(grant.status, 201);
      const row = 'tr[id*=":migration:"][id$=":release-1"]';
      await watched.sees(`${row} time[data-until]`, /^(60|5\ds)|1m/);
      await watched.sees("#changes .granted", "release-1");
      const { token } = grantedBody.parse(grant.body);
      assert.equal((await client.renew("release-1", token, { ttlSeconds: 120 })).status, 200);
      await watched.sees(`${row} time[data-until]`, /^(2m|1m)/);

      const group = { namespace: place.namespace, name: "orders" };
      await setStatus(cluster.adminApi, group, switchedStatus, signal);
      await watched.sees(`${row} .end.revoked`, "the primary moved");
      await watched.sees("#changes .switched", "from iad to pdx, generation 8");

      assert.equal((await client.grant("release-2", "billing")).status, 201);
      await watched.sees("#changes .granted", "release-2");
      await cluster.adminApi.patch(MYSQL_FAILOVER_GROUPS, group, {
        type: "merge",
        body: { metadata: { annotations: { [REVOKE_ANNOTATION]: "incident" } } },
      }, { signal });
      await watched.sees("#changes .revoked", "release-2");
      await watched.sees("#groups .end.revoked", "somebody took it back");

      assert.equal(await watched.page.evaluate("globalThis.neverReloaded"), true);
      assert.deepEqual(await watched.faults(), []);
    } finally {
      await cluster.stop();
    }
  },
  { ignore: !hasCluster },
);
