/**
 * Two versions that differ in the members of records and of the gate, side by side on one real API server, while the lead
 * goes from one to the other and back: an upgrade, a rolling update under way, and a downgrade.
 */

import assert from "node:assert/strict";
import { z } from "zod";
import { MYSQL_FAILOVER_GROUPS, REVOKE_ANNOTATION } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import {
  DEPLOYMENT_GATE_ANNOTATION,
  DEPLOYMENT_LEASE_ANNOTATION,
  gateName,
  holdName,
  slotName,
  tombstoneName,
} from "../../lib/records/names.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { type Answer, type DeploymentClient, grantedBody } from "../service/deployment_client.ts";
import type { Program, ServiceProcess } from "../service/service_process.ts";
import { Workplace } from "../service/workplace.ts";
import { GATE_MEMBER, RECORD_MEMBER } from "./newer_source.ts";
import { makeVersions, type Versions } from "./versions.ts";

const clusterTest = useCluster();
const { signal } = new AbortController();
const json = z.record(z.string(), z.unknown());
let versions: Versions;

Deno.test.beforeAll(async () => {
  versions = await makeVersions();
});

Deno.test.afterAll(async () => {
  await versions[Symbol.asyncDispose]();
});

/** Lease times that make a hand-over quick, also when the holder died. */
const QUICK = {
  HOLDFAST__KUBERNETES__LEADER_ELECTION__LEASE_DURATION_SECS: "6",
  HOLDFAST__KUBERNETES__LEADER_ELECTION__RENEW_DEADLINE_SECS: "4",
  HOLDFAST__KUBERNETES__LEADER_ELECTION__RETRY_PERIOD_SECS: "1",
  HOLDFAST__HOST__PRESTOP_GRACE_SECS: "0",
};

/** A replica and a caller of it. */
interface Replica {
  readonly service: ServiceProcess;
  readonly client: DeploymentClient;
}

/** A cluster with replicas of two versions. */
class Fleet implements AsyncDisposable {
  readonly #place: Workplace;

  constructor(place: Workplace) {
    this.#place = place;
  }

  /** Starts a replica, which leads when nobody else does. */
  async start(program: Program): Promise<Replica> {
    const service = await this.#place.startService(QUICK, program);
    return { service, client: await this.#place.client(service) };
  }

  /** Ends the leader in order, as a rolling update does, and waits until the other one serves. */
  async handOver(from: Replica, to: Replica): Promise<void> {
    assert.equal((await to.client.observe()).body.error, "not_leader");
    from.service.kill("SIGTERM");
    await this.#place.untilLeading(to.client, 20);
    assert.equal(await from.service.ended(), 0);
  }

  leads(replica: Replica): Promise<void> {
    return this.#place.untilLeading(replica.client, 20);
  }

  /** What an annotation of a Lease says. */
  async #read(name: string, annotation: string): Promise<Record<string, unknown>> {
    const address = { namespace: this.#place.namespace, name };
    const lease = await this.#place.cluster.adminApi.get(LEASES, address, { signal });
    return json.parse(JSON.parse(lease.metadata.annotations?.[annotation] ?? "null"));
  }

  record(name: string): Promise<Record<string, unknown>> {
    return this.#read(name, DEPLOYMENT_LEASE_ANNOTATION);
  }

  gate(): Promise<Record<string, unknown>> {
    return this.#read(gateName("orders"), DEPLOYMENT_GATE_ANNOTATION);
  }

  async revokeAll(): Promise<void> {
    const { cluster, namespace } = this.#place;
    const body = { metadata: { annotations: { [REVOKE_ANNOTATION]: "true" } } };
    const group = { namespace, name: "orders" };
    await cluster.adminApi.patch(MYSQL_FAILOVER_GROUPS, group, { type: "merge", body }, { signal });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#place[Symbol.asyncDispose]();
  }
}

function granted({ status, text, body, headers }: Answer) {
  assert(status === 201 || status === 200, text);
  return { ...grantedBody.parse(body), fence: Number(headers.get("X-Lease-Fence")) };
}

function answered(answer: Answer, status: number): void {
  assert.equal(answer.status, status, answer.text);
}

async function until(what: string, done: () => Promise<boolean>): Promise<void> {
  const limit = performance.now() + 30_000;
  while (!await done()) {
    if (performance.now() > limit) throw new Error(`Cannot go on: ${what} did not happen`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const hold = { kind: "failover-hold" };
const slot = slotName("orders");

clusterTest(
  "while the lead goes from the present version to a newer one and back, leases that one granted are renewed, released and revoked by the other, and no member is lost",
  async (cluster) => {
    await using fleet = new Fleet(await Workplace.open(cluster, "upgrade"));
    const first = await fleet.start(versions.present);
    await fleet.leads(first);
    const migration = granted(await first.client.grant("op-1", "tenant"));
    const held = granted(await first.client.grant("op-1", "tenant", hold));
    assert.equal((await fleet.record(slot))[RECORD_MEMBER], undefined);
    assert.equal((await fleet.gate())[GATE_MEMBER], undefined);

    // The upgrade: a newer replica comes beside, and the older leader ends in order.
    const newer = await fleet.start(versions.newer);
    await fleet.handOver(first, newer);
    answered(await newer.client.renew("op-1", migration.token), 200);
    answered(await newer.client.renew("op-1", held.token, hold), 200);
    assert.equal((await fleet.record(slot))[RECORD_MEMBER], 1);
    answered(await newer.client.release("op-1", held.token, hold), 204);
    const released = await fleet.record(holdName("orders", "op-1"));
    assert.deepEqual([released.state, released[RECORD_MEMBER]], ["released", 1]);

    // What the newer one grants, with a member that the present version does not know.
    const again = granted(await newer.client.grant("op-1", "tenant", hold));
    assert(again.fence > held.fence);
    const gateOfNewer = await fleet.gate();
    assert(Number(gateOfNewer[GATE_MEMBER]) >= 1);

    // The downgrade: the present version renews, releases and regrants, and keeps what it does not know.
    const older = await fleet.start(versions.present);
    await fleet.handOver(newer, older);
    answered(await older.client.renew("op-1", migration.token), 200);
    answered(await older.client.renew("op-1", again.token, hold), 200);
    assert.equal((await fleet.record(slot))[RECORD_MEMBER], 1);
    answered(await older.client.release("op-1", again.token, hold), 204);
    const kept = await fleet.record(holdName("orders", "op-1"));
    assert.deepEqual([kept.state, kept[RECORD_MEMBER]], ["released", 0]);
    const regranted = granted(await older.client.grant("op-1", "tenant"));
    assert(regranted.fence > again.fence);
    assert.equal((await fleet.record(slot))[RECORD_MEMBER], 1);
    const third = granted(await older.client.grant("op-1", "tenant", hold));
    assert(third.fence > regranted.fence);
    const gateOfOlder = await fleet.gate();
    assert.equal(gateOfOlder[GATE_MEMBER], gateOfNewer[GATE_MEMBER]);
    assert(
      Number(gateOfOlder.seq) > Number(gateOfNewer.seq),
      "it wrote the gate and kept the member",
    );

    // Revoked by the present version, with the member kept, and refused by the newer one.
    await fleet.revokeAll();
    await until("the revocation", async () => (await fleet.record(slot)).state === "revoked");
    const revoked = await fleet.record(slot);
    assert.deepEqual([revoked.reason, revoked[RECORD_MEMBER]], ["operator_revoked", 1]);
    const back = await fleet.start(versions.newer);
    await fleet.handOver(older, back);
    const refused = await back.client.renew("op-1", regranted.token);
    assert.deepEqual([refused.status, refused.body.error], [409, "revoked"]);
    assert.equal((await back.client.grant("op-1", "tenant")).status, 409);

    // The tombstone that the newer one writes has all that the present one kept.
    const next = granted(await back.client.grant("op-2", "tenant"));
    assert(next.fence > third.fence);
    const tombstone = await fleet.record(tombstoneName("orders", "op-1"));
    assert.deepEqual([tombstone.state, tombstone[RECORD_MEMBER]], ["revoked", 1]);
    assert.equal((await fleet.record(slot))[RECORD_MEMBER], 0, "a new grant begins its own record");
  },
);

clusterTest(
  "a lease that a newer version granted runs out under the present one, and a deployment that renews all the time lives through update and downgrade",
  async (cluster) => {
    await using fleet = new Fleet(await Workplace.open(cluster, "rolling"));
    const newer = await fleet.start(versions.newer);
    await fleet.leads(newer);
    const kept = granted(await newer.client.grant("op-1", "tenant", { ttlSeconds: 15 }));
    granted(await newer.client.grant("op-1", "tenant", { ...hold, ttlSeconds: 5 }));

    // A deployment asks whoever serves, as behind a Service, from now to the end.
    const replicas = [newer];
    const done = new AbortController();
    const told: { readonly sentMs: number; readonly answer: Answer }[] = [];
    const deployment = (async () => {
      while (!done.signal.aborted) {
        for (const { client } of replicas) {
          const sentMs = Date.now();
          const answer = await client.renew("op-1", kept.token, { ttlSeconds: 15 }).catch(() =>
            null
          );
          if (answer !== null && answer.status !== 503) told.push({ sentMs, answer });
        }
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();

    const present = await fleet.start(versions.present);
    replicas.push(present);
    await fleet.handOver(newer, present);
    const held = holdName("orders", "op-1");
    await until("the expiry", async () => (await fleet.record(held)).state === "expired");
    assert.equal((await fleet.record(held))[RECORD_MEMBER], 0);
    const later = await fleet.start(versions.newer);
    replicas.push(later);
    await fleet.handOver(present, later);
    const before = told.length;
    await until("a renewal", () => Promise.resolve(told.length > before + 2));
    done.abort();
    await deployment;

    assert.deepEqual([...new Set(told.map(({ answer }) => answer.status))], [200]);
    const shortest = Math.min(
      ...told.map(({ sentMs, answer }) => Date.parse(String(answer.body.expiresAt)) - sentMs),
    );
    assert(shortest >= 15_000, "whoever renews, the lease lasts as long as was asked");
    assert(Number((await fleet.record(slot))[RECORD_MEMBER]) > 2);
    const stopped = [newer, present].flatMap(({ service }) => service.lines);
    assert.deepEqual(stopped.filter(({ level }) => level === "ERROR"), []);
  },
);
