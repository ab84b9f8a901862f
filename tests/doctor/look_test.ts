/**
 * The look at a cluster, on the API server in memory: what is read, and what is not.
 */

import assert from "node:assert/strict";
import { createAuthority, FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import type { ClusterFacts } from "../../lib/doctor/cluster_facts.ts";
import { lookAtCluster } from "../../lib/doctor/cluster_look.ts";
import { clusterFindings } from "../../lib/doctor/cluster_rules.ts";
import { placeOf } from "../../lib/doctor/place.ts";
import { see } from "../../lib/doctor/sight.ts";
import { HttpApi, staticToken } from "../../lib/kube/mod.ts";
import { readServiceValues } from "../../lib/manifests/service/read_values.ts";
import { seedCluster } from "../service/in_process.ts";
import { found } from "./facts.ts";

const { signal } = new AbortController();
const base64 = (text: string) => new TextEncoder().encode(text).toBase64();

/** A cluster with the group `orders`, which is encrypted, and a client of it. */
class World {
  readonly clock = new TestClock();
  readonly fake = new FakeCluster({ clock: this.clock, entropy: seededEntropy(1), rbac: true });
  readonly values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>> = {}) {
    this.values = values;
    seedCluster(this.fake);
  }

  apply(...objects: readonly object[]): void {
    for (const object of objects) this.fake.apply(object);
  }

  async look(token = this.fake.adminToken): Promise<ClusterFacts> {
    const now = this.clock.wall();
    return await lookAtCluster({
      api: new HttpApi({
        baseUrl: "https://fake",
        fetch: this.fake.fetch,
        credentials: staticToken(token),
        clock: this.clock,
        entropy: seededEntropy(2),
        defaultNamespace: "default",
      }),
      place: placeOf(readServiceValues([this.values])),
      group: "orders",
      now: () => ({ earliestMs: now, latestMs: now, certain: true }),
      signal,
    });
  }
}

function object(apiVersion: string, kind: string, namespace: string, name: string, rest: object) {
  const { metadata, ...members } = { metadata: {}, ...rest };
  return { apiVersion, kind, metadata: { name, namespace, ...metadata }, ...members };
}

Deno.test("an empty namespace: all that is not there is said, and nothing throws", async () => {
  const world = new World();
  const findings = clusterFindings(await world.look());
  for (const check of ["secret", "service", "service-all", "leader", "rights", "rights-own"]) {
    assert.equal(found(findings, check).verdict, "wrong", check);
  }
  assert.match(found(findings, "rights").says, /may not create tokenreviews.authentication.k8s.io/);
  assert.equal(found(findings, "client-app-ns/deployer").verdict, "warning");
  assert.equal(found(findings, "network-app-ns/deployer").verdict, "unseen");
});

Deno.test("without Services there is nothing to select, and a Service without a selector selects nothing", async () => {
  const none = await new World({ auxiliary: { service: { enabled: false } } }).look();
  assert.deepEqual([none.services, none.pods], [[], { type: "absent" }]);
  const world = new World();
  world.apply(
    ...["bloodraven", "bloodraven-all"].map((name) =>
      object("v1", "Service", "bloodraven", name, { spec: { ports: [{ port: 8443 }] } })
    ),
    object("v1", "Pod", "bloodraven", "stranger", { spec: {} }),
  );
  assert.deepEqual((await world.look()).pods, { type: "absent" });
});

Deno.test("a Secret that holds no base64, and a Lease without times, are facts", async () => {
  const world = new World();
  world.apply(
    object("v1", "Secret", "bloodraven", "holdfast-tls", {
      data: { "tls.crt": base64("no"), "tls.key": "" },
    }),
    object("coordination.k8s.io/v1", "Lease", "bloodraven", "holdfast.shipstream.io", {
      spec: { holderIdentity: "one" },
    }),
  );
  const { secret, election } = await world.look();
  assert(secret.type === "seen" && election.type === "seen");
  assert.deepEqual([secret.value.certificate, secret.value.keyFits], [null, false]);
  assert.deepEqual(election.value, { holder: "one", endsMs: null });
});

Deno.test("sidecars: authorities in ConfigMaps and in named keys of Secrets count, and no other Secret is read", async () => {
  const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const { certPem, keyPem } = await authority.issue({ dnsNames: ["bloodraven.bloodraven.svc"] });
  const pod = (name: string, volumes: readonly object[], labels = {}) =>
    object("v1", "Pod", "database-ns", name, {
      metadata: {
        labels: {
          "app.kubernetes.io/name": "mysql",
          "app.kubernetes.io/managed-by": "bloodraven",
          ...labels,
        },
      },
      spec: { volumes },
    });
  const trust = async (...volumes: readonly object[]) => await trustOf({}, volumes);
  const trustOf = async (spec: object, volumes: readonly object[]) => {
    const world = new World();
    world.fake.apply(object("v1", "Secret", "bloodraven", "holdfast-tls", {
      data: { "tls.crt": base64(certPem), "tls.key": base64(keyPem) },
    }));
    const group = { apiVersion: "shipstream.io/v1alpha1", kind: "MysqlFailoverGroup" };
    world.fake.apply({
      ...group,
      metadata: { name: "encrypted", namespace: "database-ns" },
      spec: {
        ...spec,
        sites: [{ name: "iad", role: "primary-candidate" }, {
          name: "pdx",
          role: "primary-candidate",
        }],
      },
      status: { conditions: [{ type: "EncryptionAtRestReady", status: "False" }] },
    });
    world.apply(
      object("v1", "ConfigMap", "database-ns", "trust", { data: { "ca.crt": authority.caPem } }),
      object("v1", "ConfigMap", "database-ns", "kube-root-ca.crt", {
        data: { "ca.crt": authority.caPem },
      }),
      object("v1", "Secret", "database-ns", "tls", { data: { "ca.crt": base64(authority.caPem) } }),
      object("v1", "Secret", "database-ns", "password", {
        data: { "password": base64("hunter2") },
      }),
      pod("mysql-0", volumes),
      pod("other-0", [{ configMap: { name: "trust" } }], {
        "shipstream.io/failover-group": "other",
      }),
    );
    const { sidecars } = await world.look();
    assert(sidecars.type === "seen" && sidecars.value.length === 1);
    const read = world.fake.calls.entries.filter(({ verb, resource }) =>
      verb === "get" && resource === "secrets"
    )
      .map(({ name }) => name);
    const [facts] = sidecars.value;
    return { trusted: facts?.isTrusted, authorities: facts?.authorities, read };
  };
  const items = [{ key: "ca.crt", path: "ca.crt" }];
  assert.deepEqual((await trust({ configMap: { name: "trust" } })).trusted, true);
  assert.deepEqual(
    (await trust({ projected: { sources: [{ configMap: { name: "trust" } }] } })).trusted,
    true,
  );
  assert.deepEqual((await trust({ secret: { secretName: "tls", items } })).trusted, true);
  assert.deepEqual(
    (await trust({ projected: { sources: [{ secret: { name: "tls", items } }] } })).trusted,
    true,
  );
  for (const tls of [{ secretName: "tls" }, { secretRef: { name: "tls" } }]) {
    assert.equal((await trustOf({ tls, encryptionAtRest: { enabled: true } }, [])).trusted, true);
  }
  const mounted = [{ configMap: { name: "trust" } }];
  const other = await trustOf({ tls: { secretName: "password" } }, mounted);
  assert.deepEqual(
    [other.trusted, other.authorities],
    [false, 0],
    "The Secret of spec.tls decides",
  );
  const none = await trust(
    { configMap: { name: "kube-root-ca.crt" } },
    { configMap: { name: "gone" } },
    { secret: { secretName: "password" } },
    { secret: { secretName: "tls" } },
    { secret: { secretName: "gone", items } },
    { emptyDir: {} },
  );
  assert.deepEqual([none.trusted, none.authorities], [false, 0]);
  assert.deepEqual(none.read, ["holdfast-tls", "gone"]);
});

Deno.test("with the keyring escrow the certificate needs the names of the Service that selects all pods too", async () => {
  const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const first = ["bloodraven.bloodraven.svc", "bloodraven.bloodraven.svc.cluster.local"];
  const { certPem, keyPem } = await authority.issue({ dnsNames: first });
  const missing = async (enabled: boolean) => {
    const world = new World({ keyringEscrow: { enabled } });
    world.apply(object("v1", "Secret", "bloodraven", "holdfast-tls", {
      data: { "tls.crt": base64(certPem), "tls.key": base64(keyPem) },
    }));
    const { secret } = await world.look();
    return secret.type === "seen" ? secret.value.missingNames : null;
  };
  assert.deepEqual(await missing(false), []);
  assert.deepEqual(await missing(true), [
    "bloodraven-all.bloodraven.svc",
    "bloodraven-all.bloodraven.svc.cluster.local",
  ]);
});

Deno.test("a fault of this program is no fact", async () => {
  await assert.rejects(see(() => Promise.reject(new TypeError("a bug"))), TypeError);
});
