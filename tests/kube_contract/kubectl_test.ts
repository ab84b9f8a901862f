/**
 * What a person does with kubectl, on the real API server and on the one in memory over HTTPS.
 *
 * @module
 */

import assert from "node:assert/strict";
import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { createAuthority, FakeCluster } from "../../lib/testing/mod.ts";
import { kubeconfig } from "../cluster/access.ts";
import { ensureBinaries } from "../cluster/binaries.ts";
import { Caller } from "../cluster/caller.ts";
import { hasCluster, useCluster } from "../cluster/cluster_test_support.ts";
import { applyCrds } from "../cluster/crds.ts";
import { mustSucceed, type RawClient } from "../cluster/raw_client.ts";
import { database, group, lease, MERGE } from "./scope.ts";

const clusterTest = useCluster();
const binaries = hasCluster ? await ensureBinaries({ programs: ["kubectl"] }) : null;

/** kubectl with a kubeconfig, in a folder of its own so that it caches no discovery of another server. */
class Kubectl implements AsyncDisposable {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(config: string): Promise<Kubectl> {
    const folder = await Deno.makeTempDir();
    await Deno.writeTextFile(`${folder}/config`, config, { mode: 0o600 });
    return new Kubectl(folder);
  }

  command(args: readonly string[]): Deno.Command {
    if (binaries === null) throw new Error("Cannot run kubectl as it was not built");
    return new Deno.Command(binaries.path("kubectl"), {
      args: [...args],
      clearEnv: true,
      env: { HOME: this.#folder, KUBECONFIG: `${this.#folder}/config` },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    });
  }

  /** @returns Standard output. */
  async run(...args: readonly string[]): Promise<string> {
    const { success, stdout, stderr } = await this.command(args).output();
    assert(success, new TextDecoder().decode(stderr));
    return new TextDecoder().decode(stdout);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true });
  }
}

/** The words of a table's lines, without the age at their end. */
function rows(table: string): string[][] {
  return table.trimEnd().split("\n").map((line) => line.trim().split(/\s{2,}/).slice(0, -1));
}

async function seed(raw: RawClient): Promise<void> {
  const groups = "/apis/shipstream.io/v1alpha1/namespaces/default/mysqlfailovergroups";
  mustSucceed(await raw("POST", groups, { body: group("orders") }), "create the group");
  const status = {
    activeSite: "iad",
    topologyGeneration: 7,
    conditions: [{ type: "Ready", status: "True" }],
    plannedFailover: { phase: "Succeeded" },
  };
  mustSucceed(
    await raw("PATCH", `${groups}/orders/status`, { body: { status }, contentType: MERGE }),
    "write the group's status",
  );
  mustSucceed(
    await raw("POST", "/apis/shipstream.io/v1alpha1/namespaces/default/mysqldatabases", {
      body: database("orders-app", "orders", {
        deploymentClients: [
          { namespace: "app", serviceAccount: "deployer" },
          { namespace: "web", serviceAccount: "deployer" },
        ],
      }),
    }),
    "create the database",
  );
  mustSucceed(
    await raw("POST", "/apis/shipstream.io/v1alpha1/namespaces/default/mysqlbackups", {
      body: {
        apiVersion: "shipstream.io/v1alpha1",
        kind: "MysqlBackup",
        metadata: {
          name: "nightly-1",
          labels: {
            "shipstream.io/failover-group": "orders",
            "shipstream.io/backup-profile": "nightly",
          },
        },
      },
    }),
    "create the backup",
  );
  mustSucceed(
    await raw("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/slot", {
      body: lease("slot", {}, { holderIdentity: "release-42", leaseDurationSeconds: 30 }),
    }),
    "create the Lease",
  );
}

async function play(kubectl: Kubectl, raw: RawClient): Promise<void> {
  await seed(raw);
  assert.deepEqual(rows(await kubectl.run("get", "mfg")), [
    ["NAME", "ACTIVE", "GENERATION", "READY", "PLANNED", "UPDATE"],
    ["orders", "iad", "7", "True", "Succeeded"],
  ]);
  assert.deepEqual(rows(await kubectl.run("get", "mysqldatabases")), [
    ["NAME", "GROUP"],
    ["orders-app", "orders"],
  ]);
  const clients = await kubectl.run("get", "mysqldatabases", "-o", "wide");
  assert.match(clients, /"namespace":"app","serviceAccount":"deployer"/);
  assert.match(clients, /"namespace":"web"/);
  assert.deepEqual(rows(await kubectl.run("get", "mysqlbackup", "nightly-1")), [
    ["NAME", "GROUP", "PROFILE", "PHASE", "COMPLETED"],
    ["nightly-1", "orders", "nightly"],
  ]);
  assert.deepEqual(rows(await kubectl.run("get", "lease", "slot")), [
    ["NAME", "HOLDER"],
    ["slot", "release-42"],
  ]);
  assert.equal(
    await kubectl.run("annotate", "mysqlfailovergroup", "orders", "example.com/note=now"),
    "mysqlfailovergroup.shipstream.io/orders annotated\n",
  );
  const note = ["-o", "jsonpath={.metadata.annotations.example\\.com/note}"];
  assert.equal(await kubectl.run("get", "mfg", "orders", ...note), "now");
  assert.equal(
    await kubectl.run("label", "lease", "slot", "state=active"),
    "lease.coordination.k8s.io/slot labeled\n",
  );
  assert.equal(
    await kubectl.run("get", "lease", "-l", "state=active", "-o", "name"),
    "lease.coordination.k8s.io/slot\n",
  );
  await watchLease(kubectl);
  assert.match(
    await kubectl.run("delete", "lease", "slot"),
    /lease\.coordination\.k8s\.io "slot" deleted/,
  );
}

/** `kubectl get lease -w` shows a change when it comes. */
async function watchLease(kubectl: Kubectl): Promise<void> {
  const watching = kubectl.command(["get", "lease", "slot", "-w", "--no-headers"]).spawn();
  const lines = watching.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let seen = "";
  const until = async (wanted: string) => {
    while (!seen.includes(wanted)) {
      const { value, done } = await lines.read();
      assert(!done, `the watch ended after: ${seen}`);
      seen += value;
    }
  };
  await until("release-42");
  await kubectl.run(
    "patch",
    "lease",
    "slot",
    "--type=merge",
    "-p",
    '{"spec":{"holderIdentity":"release-43"}}',
  );
  await until("release-43");
  watching.kill("SIGTERM");
  await Promise.all([watching.status, lines.cancel(), watching.stderr.cancel()]);
}

clusterTest(
  "real API server: kubectl gets, watches, annotates, labels, patches and deletes",
  async (cluster) => {
    await using kubectl = await Kubectl.open(cluster.kubeconfig());
    await play(kubectl, cluster.admin);
  },
);

Deno.test({
  name: "in memory over HTTPS: kubectl gets, watches, annotates, labels, patches and deletes",
  ignore: binaries === null,
  async fn() {
    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    await using fake = new FakeCluster({ clock: systemClock, entropy: systemEntropy, rbac: true });
    const { raw } = new Caller("https://fake", fake.fetch, fake.adminToken);
    await applyCrds(raw);
    const { certPem: cert, keyPem: key } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
    const { url } = await fake.listen({ cert, key });
    const config = kubeconfig(url, authority.caPem, { token: fake.adminToken });
    await using kubectl = await Kubectl.open(config);
    await play(kubectl, raw);
  },
});
