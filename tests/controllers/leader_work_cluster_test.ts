import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS, REVOKE_ANNOTATION } from "../../lib/group/types.ts";
import type { KubeApi, Stored } from "../../lib/kube/api.ts";
import { type Event, EVENTS, type Lease, LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYMENT_LEASE_ANNOTATION, gateName, slotName } from "../../lib/records/names.ts";
import { expiresAtMs, parseRecord } from "../../lib/records/record.ts";
import { printLine } from "../cluster/binaries.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { setStatus } from "../service/orders.ts";
import { Workplace } from "../service/workplace.ts";

const LIMIT_MS = 30_000;

/** Waits until a Lease is as it should be, as a watch tells it. @returns It, and when it was told. */
async function untilLease(
  api: KubeApi,
  name: { readonly namespace: string; readonly name: string },
  isIt: (lease: Stored<Lease>) => boolean,
): Promise<{ readonly lease: Stored<Lease>; readonly wallMs: number }> {
  const end = new AbortController();
  const limit = setTimeout(() => end.abort(), LIMIT_MS);
  try {
    const watch = api.watch(LEASES, {
      namespace: name.namespace,
      fieldSelector: `metadata.name=${name.name}`,
      signal: end.signal,
    });
    for await (const event of watch) {
      const wallMs = Date.now();
      const leases = "list" in event
        ? event.list.items
        : event.type === "added" || event.type === "modified"
        ? [event.object]
        : [];
      const lease = leases.find(isIt);
      if (lease !== undefined) return { lease, wallMs };
    }
    throw new Error(`Cannot go on as ${name.name} did not change within ${LIMIT_MS} ms`);
  } finally {
    clearTimeout(limit);
    end.abort();
  }
}

function recordOf(lease: Stored<Lease>) {
  return parseRecord(lease.metadata.annotations?.[DEPLOYMENT_LEASE_ANNOTATION] ?? "");
}

clusterTest(
  "on a real API server, expiry, a new generation and a revocation are stored without a request",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "leader-work");
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const { namespace } = place;
    const { adminApi: api } = cluster;
    const { signal } = new AbortController();
    const group = { namespace, name: "orders" };
    const slot = { namespace, name: slotName("orders") };
    const inState = (state: string) => (lease: Stored<Lease>) => recordOf(lease).state === state;
    const latencies: string[] = [];

    const short = await client.grant("op-1", "tenant", { ttlSeconds: 5 });
    assert.equal(short.status, 201, short.text);
    const expired = await untilLease(api, slot, inState("expired"));
    const record = recordOf(expired.lease);
    assert.equal(record.operationId, "op-1");
    assert.equal(expired.lease.spec?.leaseDurationSeconds, 1);
    // It is judged by the earliest that the server's clock can show, so never before its time.
    assert.ok(expired.wallMs > expiresAtMs(record));
    latencies.push(`expiry ${expired.wallMs - expiresAtMs(record)} ms after its time`);

    assert.equal((await client.grant("op-2", "tenant")).status, 201);
    const gateMoves = untilLease(
      api,
      { namespace, name: gateName("orders") },
      ({ spec }) => spec?.leaseTransitions === 8,
    );
    const leaseEnds = untilLease(api, slot, inState("revoked"));
    await setStatus(api, group, { activeSite: "pdx", topologyGeneration: 8 }, signal);
    let causedMs = Date.now();
    const [gate, changed] = await Promise.all([gateMoves, leaseEnds]);
    latencies.push(`new generation ${gate.wallMs - causedMs} ms after its status`);
    latencies.push(`its revocation ${changed.wallMs - causedMs} ms`);
    assert.equal(gate.lease.spec?.holderIdentity, "pdx");
    assert.equal(recordOf(changed.lease).reason, "topology_changed");

    await setStatus(api, group, {
      sites: [
        { name: "iad", state: "read-only", replicating: true },
        { name: "pdx", state: "writable", replicating: false },
      ],
    }, signal);
    const third = await client.grant("op-3", "tenant");
    assert.equal(third.status, 201, third.text);
    const thirdEnds = untilLease(
      api,
      slot,
      (lease) => recordOf(lease).operationId === "op-3" && inState("revoked")(lease),
    );
    await api.patch(MYSQL_FAILOVER_GROUPS, group, {
      type: "merge",
      body: { metadata: { annotations: { [REVOKE_ANNOTATION]: "true" } } },
    }, { signal });
    causedMs = Date.now();
    const revoked = await thirdEnds;
    latencies.push(`revocation ${revoked.wallMs - causedMs} ms after its annotation`);
    assert.equal(recordOf(revoked.lease).reason, "operator_revoked");
    while ((await client.grant("op-4", "tenant")).status !== 201) {
      assert.ok(Date.now() - causedMs < LIMIT_MS, "the annotation was not removed");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const after = await api.get(MYSQL_FAILOVER_GROUPS, group, { signal });
    assert.equal(after.metadata.annotations?.[REVOKE_ANNOTATION], undefined);

    // Events are written in the background.
    let told: readonly Event[] = [];
    while (told.length < 2) {
      assert.ok(Date.now() - causedMs < LIMIT_MS, "the Events were not written");
      const { items } = await api.list(EVENTS, { namespace, signal });
      told = items.filter(({ reason }) => reason === "DeploymentLeaseRevoked")
        .toSorted((a, b) => (a.eventTime ?? "") < (b.eventTime ?? "") ? -1 : 1);
    }
    assert.deepEqual(told.map(({ note, type, regarding }) => [note, type, regarding?.uid]), [
      [
        "The migration lease of operation op-2 for tenant was revoked: topology_changed",
        "Warning",
        after.metadata.uid,
      ],
      [
        "The migration lease of operation op-3 for tenant was revoked: operator_revoked",
        "Warning",
        after.metadata.uid,
      ],
    ]);
    printLine(`  stored on the real API server: ${latencies.join(", ")}`);
  },
);
