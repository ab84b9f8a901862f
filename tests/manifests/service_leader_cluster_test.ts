/** Which pods the two Services select while the lead moves: the rendered selectors over the labels that the program writes. */

import assert from "node:assert/strict";
import { PODS } from "../../lib/kube/mod.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { member } from "../cluster/raw_client.ts";
import { eventually, ServicePlace } from "./service_place.ts";

const clusterTest = useCluster();
const { signal } = new AbortController();

/** The pods that a Service of the place selects. */
async function selected(place: ServicePlace, name: string): Promise<readonly string[]> {
  const service = place.objects.find(({ kind, metadata }) =>
    kind === "Service" && metadata.name === name
  );
  const selector: Readonly<Record<string, string>> = Object(member(service, "spec", "selector"));
  const labelSelector = Object.entries(selector).map(([key, value]) => `${key}=${value}`).join(",");
  const { items } = await place.cluster.adminApi.list(PODS, {
    namespace: place.own,
    labelSelector,
    signal,
  });
  return items.map(({ metadata }) => metadata.name);
}

clusterTest(
  "difference 27: the Service at the reference's address selects the leader alone, and the next one when it stops, and the other Service every pod",
  async (cluster) => {
    await using place = await ServicePlace.open(cluster, () => ({
      auxiliary: {
        deployAPI: { enabled: true },
        escrowTLS: { enabled: true, existingSecret: "tls" },
      },
    }));
    const first = await place.start();
    await eventually(
      "the first one is selected",
      async () => (await selected(place, "bloodraven")).length === 1,
    );
    const [old = ""] = await selected(place, "bloodraven");

    const second = await place.start();
    assert.deepEqual(await selected(place, "bloodraven"), [old]);
    const all = await selected(place, "bloodraven-all");
    assert.equal(all.length, 2);
    const [next = ""] = all.filter((name) => name !== old);
    const client = await place.client(second);
    assert.equal((await client.observe()).body.error, "not_leader");

    first.kill("SIGTERM");
    assert.equal(await first.ended(), 0);
    await eventually("the next one is selected, and alone", async () => {
      const found = await selected(place, "bloodraven");
      // Never two for longer than a write takes, and never one that does not lead.
      return found.length === 1 && found[0] === next;
    });
    assert.equal((await client.observe()).status, 200);
  },
);
