import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS, REVOKE_ANNOTATION } from "../../../lib/group/types.ts";
import { EVENTS } from "../../../lib/kube/resources.ts";
import type { RoleRule } from "../../cluster/access.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { clusterTest } from "../../cluster/cluster_test_support.ts";
import { grantedBody } from "../../service/deployment_client.ts";
import { Workplace } from "../../service/workplace.ts";
import { HoldfastProcess } from "./holdfast_process.ts";

const { signal } = new AbortController();

/** The rights that docs/commands.md names for somebody who looks and revokes. */
const administratorRules: readonly RoleRule[] = [
  {
    apiGroups: ["shipstream.io"],
    resources: ["mysqlfailovergroups"],
    verbs: ["get", "list", "patch", "watch"],
  },
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    verbs: ["create", "get", "list", "patch", "update", "watch"],
  },
  { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create"] },
];

/** A kubeconfig of a user with these rights in the namespace of a place; it goes with the test. */
async function administratorOf(cluster: Cluster, place: Workplace) {
  const { namespace } = place;
  const user = `alice-${namespace}`;
  await cluster.grant({ subject: { user }, rules: administratorRules, namespace });
  const file = await Deno.makeTempFile({ prefix: "holdfast-" });
  const credentials = await cluster.clientCertificate(user);
  await Deno.writeTextFile(file, cluster.kubeconfig(credentials, namespace));
  return {
    user,
    env: { KUBECONFIG: file },
    [Symbol.asyncDispose]: () => Deno.remove(file),
  };
}

async function notesOf(cluster: Cluster, namespace: string): Promise<readonly string[]> {
  const { items } = await cluster.adminApi.list(EVENTS, { namespace, signal });
  return items.filter(({ reason }) => reason === "DeploymentRevocationRequested")
    .map(({ note = "" }) => note);
}

clusterTest(
  "revoke asks the service, waits for it, and records the user as the API server knows it",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "revoke-group");
    const { namespace } = place;
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const { token } = grantedBody.parse((await client.grant("op-1", "tenant")).body);
    assert.equal((await client.grant("op-1", "tenant", { kind: "failover-hold" })).status, 201);

    await using admin = await administratorOf(cluster, place);
    const refused = await HoldfastProcess.run(["revoke", "--group", "orders"], admin.env);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /look at the list and give --yes\n$/);
    assert.equal((await client.renew("op-1", token)).status, 200);

    const args = ["revoke", "--group", "orders", "--reason", "stuck since noon", "--yes"];
    const { code, stdout, stderr } = await HoldfastProcess.run(args, admin.env);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^revoked: migration of operation op-1 for tenant$/m);
    assert.match(stdout, /^revoked: failover-hold of operation op-1 for tenant$/m);
    assert.match(stdout, /^Done: 2 leases revoked/m);
    const renewed = await client.renew("op-1", token);
    assert.deepEqual([renewed.status, renewed.body.error], [409, "revoked"]);
    assert.equal((await client.grant("op-2", "billing")).status, 201);
    assert.deepEqual(await notesOf(cluster, namespace), [
      `${admin.user} asked to revoke all leases: stuck since noon`,
    ]);
  },
);

clusterTest(
  "revoke of one operation writes its records beside a service that leads",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "revoke-operation");
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const { token } = grantedBody.parse((await client.grant("op-1", "tenant")).body);
    assert.equal((await client.grant("op-1", "tenant", { kind: "failover-hold" })).status, 201);

    await using admin = await administratorOf(cluster, place);
    const args = ["revoke", "--group", "orders", "--operation", "op-1", "--yes"];
    const { code, stdout, stderr } = await HoldfastProcess.run(args, admin.env);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^Done: 2 leases revoked/m);
    assert.equal((await client.renew("op-1", token)).status, 409);
    assert.equal((await client.grant("op-1", "tenant")).status, 409);
    assert.equal((await client.grant("op-2", "billing")).status, 201);
    assert.deepEqual(await notesOf(cluster, place.namespace), [
      `${admin.user} asked to revoke operation op-1: no reason was given`,
    ]);
  },
);

clusterTest(
  "a service that is gone leaves the request on the group, and the next one serves it",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "revoke-later");
    const { namespace } = place;
    const first = await place.startService();
    const client = await place.client(first);
    await place.untilLeading(client);
    assert.equal((await client.grant("op-1", "tenant", { ttlSeconds: 120 })).status, 201);
    first.kill("SIGTERM");
    await first.ended();

    await using admin = await administratorOf(cluster, place);
    const args = ["revoke", "--group", "orders", "--yes"];
    const late = await HoldfastProcess.run([...args, "--timeout", "1s"], admin.env);
    assert.equal(late.code, 3);
    assert.match(late.stderr, /The revocation is not done yet, and the wait lasted 1 s/);
    const name = { namespace, name: "orders" };
    const { metadata } = await cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, name, { signal });
    assert.match(metadata.annotations?.[REVOKE_ANNOTATION] ?? "", /^holdfast-/);

    await using waiting = HoldfastProcess.start(args, admin.env);
    await waiting.printed(/Somebody has asked for it already/);
    await place.startService();
    const { code, stdout } = await waiting.ended();
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^revoked: migration of operation op-1 for tenant$/m);
  },
);
