/**
 * The checks of an administrator on the real API server: the service is installed from its own manifests, and then broken
 * in one place after the other.
 */

import assert from "node:assert/strict";
import { placeOf } from "../../lib/doctor/place.ts";
import type { Finding } from "../../lib/doctor/finding.ts";
import { formatMicroTime } from "../../lib/election/lease_codec.ts";
import { renderService } from "../../lib/manifests/service/render.ts";
import { readServiceValues } from "../../lib/manifests/service/read_values.ts";
import type { Manifest } from "../../lib/manifests/service/objects.ts";
import { type Authority, createAuthority } from "../../lib/testing/mod.ts";
import type { Credentials } from "../cluster/access.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { member, mustSucceed } from "../cluster/raw_client.ts";
import { examine, machine } from "./examination.ts";

const clusterTest = useCluster();
const MERGE = "application/merge-patch+json";

const kindOf = (kind: string) => ({ apiVersion: "shipstream.io/v1alpha1", kind });

const base64 = (text: string) => new TextEncoder().encode(text).toBase64();

/** A service in a namespace, installed, with a leader, a client and an encrypted group. No process runs. */
class Installed implements AsyncDisposable {
  readonly namespace: string;
  readonly clientNamespace: string;
  readonly cluster: Cluster;
  readonly authority: Authority;
  readonly folder: string;

  private constructor(cluster: Cluster, authority: Authority, folder: string, suffix: string) {
    this.cluster = cluster;
    this.authority = authority;
    this.folder = folder;
    this.namespace = `service-${suffix}`;
    this.clientNamespace = `client-${suffix}`;
  }

  static async install(cluster: Cluster): Promise<Installed> {
    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    const folder = await Deno.makeTempDir({ prefix: "holdfast-doctor-" });
    const place = new Installed(cluster, authority, folder, crypto.randomUUID().slice(0, 8));
    const { namespace, clientNamespace } = place;
    await cluster.createNamespace(namespace);
    await cluster.createServiceAccount(namespace, "default");
    await place.send("POST", "/api/v1/namespaces", {
      metadata: { name: clientNamespace, labels: { "shipstream.io/mysql-client": "true" } },
    });
    await cluster.createServiceAccount(clientNamespace, "default");
    const values = readServiceValues([place.values]);
    for (const manifest of renderService(values, { version: "0.0.0" }).objects) {
      await place.apply(manifest);
    }
    await place.certificate({ dnsNames: place.names });
    await place.pod(namespace, "holdfast-a", {
      ...place.podLabels,
      "holdfast.shipstream.io/leader": "true",
    });
    await place.elect("holdfast.shipstream.io", "holdfast-a");
    await cluster.createServiceAccount(clientNamespace, "deployer");
    await place.pod(clientNamespace, "migrate", {
      "bloodraven.shipstream.io/deploy-client": "true",
    }, { serviceAccountName: "deployer" });
    await place.send(
      "POST",
      `/apis/shipstream.io/v1alpha1/namespaces/${clientNamespace}/mysqldatabases`,
      {
        ...kindOf("MysqlDatabase"),
        metadata: { name: "orders-app" },
        spec: {
          groupRef: { name: `orders-${namespace}` },
          deploymentClients: [{ namespace: clientNamespace, serviceAccount: "deployer" }],
        },
      },
    );
    return place;
  }

  /** The values that the manifests are made from. */
  get values() {
    return {
      name: this.namespace,
      namespace: this.namespace,
      auxiliary: {
        deployAPI: { enabled: true, networkPolicy: { enabled: true } },
        escrowTLS: { enabled: true, existingSecret: "serving" },
      },
    };
  }

  get names(): string[] {
    return [`bloodraven.${this.namespace}.svc`, `bloodraven.${this.namespace}.svc.cluster.local`];
  }

  get podLabels() {
    return {
      "app.kubernetes.io/name": "holdfast",
      "app.kubernetes.io/instance": this.namespace,
    };
  }

  async send(method: string, path: string, body?: unknown) {
    return mustSucceed(await this.cluster.admin(method, path, { body }), `${method} ${path}`);
  }

  async patch(path: string, body: unknown) {
    const request = { body, contentType: MERGE };
    return mustSucceed(await this.cluster.admin("PATCH", path, request), `patch ${path}`);
  }

  apply(manifest: Manifest) {
    const { apiVersion, kind, metadata } = manifest;
    const prefix = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const plural = kind.toLowerCase().replace(/y$/, "ie") + "s";
    const where = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
    return this.send("POST", `${prefix}${where}/${plural}`, manifest);
  }

  secretPath = () => `/api/v1/namespaces/${this.namespace}/secrets/serving`;

  /** Puts a certificate into the Secret. */
  async certificate(request: Parameters<Authority["issue"]>[0], from = this.authority) {
    const { certPem, keyPem } = await from.issue(request);
    const data = { "tls.crt": base64(certPem), "tls.key": base64(keyPem) };
    await this.cluster.admin("DELETE", this.secretPath());
    await this.send("POST", this.secretPath().replace(/\/serving$/, ""), {
      metadata: { name: "serving" },
      data,
    });
    return { certPem, keyPem };
  }

  pod(namespace: string, name: string, labels: object, spec: object = {}) {
    return this.send("POST", `/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name, labels },
      // No controller publishes the authority that a mounted token comes with.
      spec: {
        automountServiceAccountToken: false,
        containers: [{ name: "one", image: "none" }],
        ...spec,
      },
    });
  }

  /** Writes a Lease of an election, as its holder would. */
  async elect(name: string, holder: string, renewedMs = Date.now()) {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${this.namespace}/leases`;
    await this.cluster.admin("DELETE", `${path}/${name}`);
    await this.send("POST", path, {
      metadata: { name },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: 60,
        renewTime: formatMicroTime(renewedMs * 1_000),
      },
    });
  }

  /** Looks, as the administrator or as somebody else. */
  async look(
    { args = [], as }: { readonly args?: readonly string[]; readonly as?: Credentials } = {},
  ) {
    const kubeconfig = `${this.folder}/kubeconfig`;
    const values = `${this.folder}/values.yaml`;
    await Deno.writeTextFile(kubeconfig, this.cluster.kubeconfig(as));
    await Deno.writeTextFile(values, JSON.stringify(this.values));
    return await examine(
      ["--from", "cluster", "-f", values, "--json", "--group", `orders-${this.namespace}`, ...args],
      machine({ KUBECONFIG: kubeconfig }),
    );
  }

  async [Symbol.asyncDispose]() {
    await Deno.remove(this.folder, { recursive: true });
  }
}

function faults(findings: readonly Finding[]): string[] {
  return findings.filter(({ verdict, check }) => verdict !== "ok" && !check.startsWith("sidecar"))
    .map(({ check, verdict }) => `${verdict} ${check}`);
}

clusterTest(
  "a service that is installed from its own manifests has nothing wrong",
  async (cluster) => {
    await using place = await Installed.install(cluster);
    const { code, findings, stdout } = await place.look();
    assert.deepEqual(faults(findings), []);
    assert.equal(code, 0, stdout);
  },
);

clusterTest("the Secret: each fault is seen, and no key is in the output", async (cluster) => {
  await using place = await Installed.install(cluster);
  const stranger = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });

  const wrongName = await place.certificate({
    dnsNames: ["other.svc"],
    commonName: place.names[0],
  });
  const names = await place.look();
  assert.deepEqual(faults(names.findings), ["wrong certificate-name"]);
  assert.match(names.find("certificate-name").says, new RegExp(place.names.join("' and '")));
  assert(!names.stdout.includes(wrongName.keyPem.split("\n")[1] ?? "?"));

  await place.certificate({ dnsNames: place.names, notAfterMs: Date.now() - 1_000 });
  assert.deepEqual(faults((await place.look()).findings), ["wrong certificate-expiry"]);

  await place.certificate({ dnsNames: place.names });
  const { keyPem } = await stranger.issue({ dnsNames: place.names });
  await place.patch(place.secretPath(), { data: { "tls.key": base64(keyPem) } });
  assert.deepEqual(faults((await place.look()).findings), ["wrong certificate-key"]);

  await place.patch(place.secretPath(), { data: { "tls.key": null, "tls.crt": base64("hello") } });
  const lacking = await place.look();
  assert.match(lacking.find("secret").says, /lacks 'tls.key'/);
  await place.send("DELETE", place.secretPath());
  assert.match((await place.look()).find("secret").says, /no Secret/);
});

clusterTest("rights: every single verb that is taken from a role is named", async (cluster) => {
  await using place = await Installed.install(cluster);
  const { namespace } = place;
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const path = `${rbac}/clusterroles/${namespace}`;
  // It allows a part of the same.
  await place.send("DELETE", `${rbac}/clusterrolebindings/${namespace}-auxiliary`);
  const [role] = placeOf(readServiceValues([place.values])).roles;
  assert(role !== undefined && role.scope === "cluster" && role.rules.length >= 5);
  const { rules } = role;
  for (const [at, { verbs, resources: [resource] }] of rules.entries()) {
    const [verb, ...others] = verbs.toReversed();
    const left = others.length > 0 ? others : ["nothing"];
    await place.patch(path, {
      rules: rules.map((rule, index) => index === at ? { ...rule, verbs: left } : rule),
    });
    const { find } = await until(
      () => place.look(),
      ({ find }) => find("rights").says.includes(` ${verb} ${resource}`),
    );
    assert.equal(find("rights").verdict, "wrong");
    assert.match(find("rights").todo, /holdfast manifests service/);
  }
  await place.patch(path, { rules });
  // What the role in the whole cluster allows, is allowed all the same.
  await place.send("DELETE", `${rbac}/namespaces/${namespace}/rolebindings/${namespace}`);
  const { find } = await until(
    () => place.look(),
    ({ find }) => find("rights").verdict === "ok" && find("rights-own").verdict === "wrong",
  );
  assert.match(
    find("rights-own").says,
    /may not patch pods in/,
  );
});

clusterTest(
  "the service account itself asks about itself, and somebody without rights is told what cannot be seen",
  async (cluster) => {
    await using place = await Installed.install(cluster);
    const { namespace } = place;
    const own = await cluster.token({ namespace, serviceAccount: namespace });
    const self = await place.look({ as: { token: own } });
    assert.equal(self.find("rights").verdict, "ok");
    assert.equal(self.find("rights-own").verdict, "ok");
    assert.match(self.find("secret").todo, /"get" on secrets/);

    const nobody = await cluster.token({
      namespace: place.clientNamespace,
      serviceAccount: "deployer",
    });
    const { code, findings, find } = await place.look({ as: { token: nobody } });
    assert.equal(code, 0, "What cannot be seen is not wrong");
    assert.match(find("rights").todo, /subjectaccessreviews/);
    const verdicts = new Set(findings.map(({ verdict }) => verdict));
    assert.deepEqual([...verdicts].sort(), ["ok", "unseen"]);

    const expired = await place.look({ as: { token: "nonsense" } });
    assert.equal(expired.code, 1);
    assert.deepEqual(expired.findings.map(({ check, verdict }) => [check, verdict]), [[
      "cluster",
      "wrong",
    ]]);
  },
);

clusterTest(
  "the leader, the reference operator's Lease, the Services and the network: each fault is seen",
  async (cluster) => {
    await using place = await Installed.install(cluster);
    const { namespace, clientNamespace } = place;
    const client = `${clientNamespace}/deployer`;

    await place.elect("holdfast.shipstream.io", "holdfast-a", Date.now() - 120_000);
    assert.match((await place.look()).find("leader").says, /'holdfast-a' led, .* ended (59s|1m)/);
    await place.send(
      "DELETE",
      `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/holdfast.shipstream.io`,
    );
    assert.match((await place.look()).find("leader").says, /no replica has ever led/);
    await place.elect("holdfast.shipstream.io", "holdfast-a");

    await place.elect("bloodraven.shipstream.io", "bloodraven-77");
    const beside = await place.look();
    assert.equal(beside.code, 0, "A warning is not wrong");
    assert.match(beside.find("reference-operator").says, /leads here too \('bloodraven-77'\)/);
    await place.elect("bloodraven.shipstream.io", "holdfast-a");
    assert.match(
      (await place.look()).find("reference-operator").says,
      /A pod of this service holds/,
    );
    await place.send(
      "DELETE",
      `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/bloodraven.shipstream.io`,
    );

    const pod = `/api/v1/namespaces/${namespace}/pods/holdfast-a`;
    await place.patch(pod, { metadata: { labels: { "holdfast.shipstream.io/leader": null } } });
    const unlabelled = await place.look();
    assert.deepEqual(faults(unlabelled.findings), ["wrong service"]);
    assert.match(unlabelled.find("service").todo, /labelled as the leader/);
    await place.patch(pod, { metadata: { labels: { "holdfast.shipstream.io/leader": "true" } } });

    await place.patch(`/api/v1/namespaces/${clientNamespace}`, {
      metadata: { labels: { "shipstream.io/mysql-client": null } },
    });
    assert.deepEqual(faults((await place.look()).findings), [`wrong network-${client}`]);
    await place.patch(`/api/v1/namespaces/${clientNamespace}`, {
      metadata: { labels: { "shipstream.io/mysql-client": "true" } },
    });
    await place.pod(clientNamespace, "plain", {}, { serviceAccountName: "deployer" });
    assert.match(
      (await place.look()).find(`network-${client}`).says,
      /No NetworkPolicy lets 'plain'/,
    );
    await place.send("DELETE", `/api/v1/namespaces/${clientNamespace}/serviceaccounts/deployer`);
    assert.match((await place.look()).find(`client-${client}`).says, /is not there/);
  },
);

clusterTest(
  "sidecars of an encrypted group: the authority that its pods mount is compared",
  async (cluster) => {
    await using place = await Installed.install(cluster);
    const { namespace, clientNamespace } = place;
    const group = `orders-${namespace}`;
    const groups = `/apis/shipstream.io/v1alpha1/namespaces/${clientNamespace}/mysqlfailovergroups`;
    await place.send("POST", groups, {
      ...kindOf("MysqlFailoverGroup"),
      metadata: { name: group },
      spec: {
        sites: [{ name: "iad", role: "primary-candidate" }, {
          name: "pdx",
          role: "primary-candidate",
        }],
      },
    });
    await place.patch(`${groups}/${group}/status`, {
      status: {
        conditions: [{
          type: "EncryptionAtRestReady",
          status: "True",
          reason: "Ready",
          message: "",
          lastTransitionTime: "2026-01-01T00:00:00Z",
        }],
      },
    });
    const check = `sidecar-trust-${clientNamespace}/${group}`;
    assert.equal((await place.look()).find(check).verdict, "unseen");

    const maps = `/api/v1/namespaces/${clientNamespace}/configmaps`;
    const stranger = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    await place.send("POST", maps, {
      metadata: { name: "trust" },
      data: { "ca.crt": stranger.caPem },
    });
    await place.pod(clientNamespace, "mysql-0", {
      "app.kubernetes.io/name": "mysql",
      "app.kubernetes.io/managed-by": "bloodraven",
    }, { volumes: [{ name: "trust", configMap: { name: "trust" } }] });
    assert.equal((await place.look()).find(check).verdict, "warning");
    await place.patch(`${maps}/trust`, { data: { "ca.crt": place.authority.caPem } });
    assert.equal((await place.look()).find(check).verdict, "ok");
  },
);

clusterTest(
  "definitions: one without the selectable field is a warning, and one that is not there is wrong",
  async (cluster) => {
    await using place = await Installed.install(cluster);
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const name = "mysqldatabases.shipstream.io";
    const { body: crd } = await place.send("GET", `${path}/${name}`);
    const versions = member(crd, "spec", "versions");
    assert(Array.isArray(versions));
    await place.patch(`${path}/${name}`, {
      spec: { versions: versions.map((one) => ({ ...one, selectableFields: undefined })) },
    });
    const slow = await place.look();
    assert.equal(slow.find("definition-mysqldatabases").verdict, "warning");
    assert.equal(slow.code, 0);
    await place.send("DELETE", `${path}/${name}`);
    const gone = await until(
      () => place.look(),
      ({ find }) => find("definition-mysqldatabases").verdict === "wrong",
    );
    assert.equal(gone.code, 1);
  },
);

/** The authorizer and the registry take a moment to see what was written. */
async function until<T>(look: () => Promise<T>, right: (seen: T) => boolean): Promise<T> {
  const endMs = performance.now() + 10_000;
  for (;;) {
    const seen = await look();
    if (right(seen)) return seen;
    if (performance.now() > endMs) throw new Error(`Cannot go on: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
