/**
 * The escrow as processes over TLS, against a real API server, with the generated role of one namespace and no more.
 */

import assert from "node:assert/strict";
import { z } from "zod";
import { keyringSelector, type KeyringSite } from "../../lib/escrow/names.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import type { Stored } from "../../lib/kube/api.ts";
import { InvalidError } from "../../lib/kube/errors.ts";
import { type Secret, SECRETS } from "../../lib/kube/resources.ts";
import { serviceRoles } from "../../lib/manifests/service/roles.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import type { ServiceProcess } from "../service/service_process.ts";
import { Workplace } from "../service/workplace.ts";
import { keyringOf, OTHER_TOKEN, TOKEN, tokenSecret } from "./support.ts";

const clusterTest = useCluster({ audit: true });
const { signal } = new AbortController();
const stored = z.object({ version: z.number(), digest: z.string(), secret: z.string() });

/** A namespace whose group encrypts, with the tokens of its sites and the rights of the escrow. */
async function openEscrow(cluster: Cluster, name: string) {
  const place = await Workplace.open(cluster, name);
  const { namespace } = place;
  const site: KeyringSite = { namespace, group: "orders", site: "iad" };
  const { adminApi } = cluster;
  const body = { spec: { encryptionAtRest: { enabled: true } } };
  const group = { namespace, name: "orders" };
  await adminApi.patch(MYSQL_FAILOVER_GROUPS, group, { type: "merge", body }, { signal });
  await adminApi.create(SECRETS, tokenSecret(site, TOKEN), { signal });
  await adminApi.create(SECRETS, tokenSecret({ ...site, site: "pdx" }, OTHER_TOKEN), { signal });
  const needs = { deployApi: false, plannedOperations: false, auxiliary: false, statusPage: false };
  const roles = serviceRoles({ ...needs, keyringEscrow: [namespace], own: {} });
  const subject = { namespace, serviceAccount: "holdfast" };
  await cluster.grant({ subject, namespace, rules: roles.flatMap(({ rules }) => rules) });
  return { place, site };
}

async function push(place: Workplace, service: ServiceProcess, site: KeyringSite, text: string) {
  const response = await place.send(service, "/keyring/escrow", {
    method: "POST",
    headers: { Authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ ...site, keyring: keyringOf(text) }),
  });
  return { status: response.status, text: await response.text() };
}

async function versions(cluster: Cluster, site: KeyringSite): Promise<readonly Stored<Secret>[]> {
  const selection = { namespace: site.namespace, labelSelector: keyringSelector(site) };
  return (await cluster.adminApi.list(SECRETS, { ...selection, signal })).items;
}

clusterTest(
  "two replicas that are sent different keyrings at once store both, under different versions, and nothing is lost",
  async (cluster) => {
    const { place, site } = await openEscrow(cluster, "escrow-race");
    await using _ = place;
    const services = await Promise.all([place.startService(), place.startService()]);
    for (let round = 0; round < 10; round++) {
      const texts = services.map((_, index) => `round ${round} of replica ${index}`);
      const answers = await Promise.all(services.map(async (service, index) => {
        const response = await push(place, service, site, texts[index] ?? "");
        assert.equal(response.status, 200);
        return stored.parse(JSON.parse(response.text));
      }));
      assert.notEqual(answers[0]?.version, answers[1]?.version);
      const secrets = await versions(cluster, site);
      for (const [index, { version, secret, digest }] of answers.entries()) {
        const found = secrets.find(({ metadata }) => metadata.name === secret);
        assert.equal(found?.data?.keyring, keyringOf(texts[index] ?? ""));
        assert.equal(found?.immutable, true);
        assert.equal(found?.metadata.labels?.["shipstream.io/keyring-version"], String(version));
        assert.equal(found?.metadata.annotations?.["shipstream.io/keyring-digest"], digest);
        assert.equal(found?.metadata.ownerReferences?.[0]?.controller, true);
      }
    }
    const numbers = (await versions(cluster, site)).map(({ metadata }) =>
      Number(metadata.labels?.["shipstream.io/keyring-version"])
    );
    assert.deepEqual(numbers.toSorted((a, b) => a - b), [16, 17, 18, 19, 20]);

    const again = await Promise.all(
      services.map((service) => push(place, service, site, "the same")),
    );
    const answers = again.map(({ text }) => stored.parse(JSON.parse(text)));
    assert.deepEqual(answers.map(({ version }) => version), [21, 21]);

    const followers = services.filter(({ lines }) =>
      !lines.some(({ msg }) => msg === "This replica leads")
    );
    assert.equal(followers.length, 1, "one of the two does not lead, and serves all the same");
    for (const { lines } of services) {
      const log = lines.map((line) => JSON.stringify(line)).join("\n");
      assert(!log.includes(TOKEN) && !log.includes(keyringOf("the same")));
    }

    const [newest] = await versions(cluster, site);
    assert(newest !== undefined);
    const changed = { ...newest, data: { keyring: keyringOf("changed") } };
    await assert.rejects(cluster.adminApi.replace(SECRETS, changed, { signal }), InvalidError);
  },
);

clusterTest(
  "the escrow is served while the deployment API is off, a body over the limit is refused over TLS, and each token is useless where the other counts",
  async (cluster) => {
    const { place, site } = await openEscrow(cluster, "escrow-off");
    await using _ = place;
    const [off, on] = await Promise.all([
      // It takes part in an election of its own, or it could lead and serve nothing.
      place.startService({
        HOLDFAST__DEPLOY_API__ENABLED: "false",
        HOLDFAST__KUBERNETES__LEADER_ELECTION__LEASE_NAME: "without-the-api",
      }),
      place.startService(),
    ]);
    assert.equal((await push(place, off, site, "while the API is off")).status, 200);
    const closed = await place.send(off, "/deploy/v1/groups/orders", { method: "GET" });
    assert.deepEqual([closed.status, await closed.text()], [404, '{"error":"not_found"}\n']);

    const large = await place.send(on, "/keyring/escrow", {
      method: "POST",
      body: " ".repeat(300 * 1024),
    });
    const text = '{"error":"keyring payload too large"}\n';
    assert.deepEqual([large.status, await large.text()], [413, text]);

    const client = await place.client(on);
    await place.untilLeading(client);
    const escrowToken = await place.send(on, "/deploy/v1/groups/orders", {
      headers: { Authorization: `Bearer ${TOKEN}` },
    });
    assert.deepEqual([escrowToken.status, await escrowToken.text()], [
      401,
      '{"error":"unauthorized"}\n',
    ]);
    const { namespace } = place;
    const wish = { namespace, serviceAccount: "deployer", audiences: ["bloodraven-deploy"] };
    const deployToken = await cluster.token(wish);
    const rejected = '{"error":"escrow token rejected"}\n';
    for (const token of [deployToken, OTHER_TOKEN]) {
      const answer = await place.send(on, "/keyring/escrow", {
        method: "POST",
        headers: { Authorization: `Bearer ${token}` },
        body: JSON.stringify({ ...site, keyring: keyringOf("x") }),
      });
      assert.deepEqual([answer.status, await answer.text()], [403, rejected]);
    }
    // Another namespace, where the role says nothing, and one that is not there: the same bytes.
    for (const elsewhere of ["kube-system", "nowhere"]) {
      const answer = await push(place, on, { ...site, namespace: elsewhere }, "x");
      assert.deepEqual(answer, { status: 403, text: rejected });
    }
  },
);

clusterTest(
  "the escrow uses no verb on Secrets but get, list, create and delete, and deletes only what it listed",
  async (cluster) => {
    const { place, site } = await openEscrow(cluster, "escrow-verbs");
    await using _ = place;
    const service = await place.startService();
    for (let version = 1; version <= 7; version++) {
      assert.equal((await push(place, service, site, `keyring ${version}`)).status, 200);
    }
    const user = `system:serviceaccount:${place.namespace}:holdfast`;
    const entries = (await cluster.auditLog()).filter((entry) =>
      entry.user === user && entry.resource === "secrets"
    );
    const verbs = new Set(entries.map(({ verb }) => verb));
    assert.deepEqual([...verbs].toSorted(), ["create", "delete", "get", "list"]);
  },
);
