import assert from "node:assert/strict";
import { LEASES } from "../../lib/kube/mod.ts";
import { useCluster } from "./cluster_test_support.ts";
import { member } from "./raw_client.ts";

const clusterTest = useCluster({ audit: true });
const NEVER = new AbortController().signal;
const LEASE_RULE = { apiGroups: ["coordination.k8s.io"], resources: ["leases"] };

clusterTest("the API server says the version that it was built from", async (cluster) => {
  const version = await cluster.adminApi.version({ signal: NEVER });
  assert.match(version.gitVersion, /^v1\.\d+\.\d+/);
  assert.equal(version.major, "1");
});

clusterTest("a service account may do what was granted and nothing else", async (cluster) => {
  await cluster.createNamespace("granted");
  await cluster.createServiceAccount("granted", "worker");
  const subject = { namespace: "granted", serviceAccount: "worker" };
  await cluster.grant({
    subject,
    namespace: "granted",
    rules: [{ ...LEASE_RULE, verbs: ["list"] }],
  });
  using worker = cluster.caller({ token: await cluster.token(subject) });
  const api = worker.api();
  const list = await api.list(LEASES, { namespace: "granted", signal: NEVER });
  assert.deepEqual(list.items, []);
  await assert.rejects(
    api.list(LEASES, { namespace: "default", signal: NEVER }),
    { name: "ForbiddenError" },
  );
});

clusterTest("a user with a certificate has the name and the groups of it", async (cluster) => {
  using caller = cluster.caller(await cluster.clientCertificate("ada", ["analysts"]));
  const answer = await caller.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
    body: { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
  });
  assert.equal(member(answer.body, "status", "userInfo", "username"), "ada");
  assert.deepEqual(member(answer.body, "status", "userInfo", "groups"), [
    "analysts",
    "system:authenticated",
  ]);
});

clusterTest("a grant to a group or to a user in the whole cluster holds", async (cluster) => {
  await cluster.grant({
    subject: { group: "readers" },
    rules: [{ ...LEASE_RULE, verbs: ["list"] }],
  });
  await cluster.grant({
    subject: { user: "grace" },
    rules: [{ ...LEASE_RULE, verbs: ["get"], resourceNames: ["one"] }],
  });
  using reader = cluster.caller(await cluster.clientCertificate("anyone", ["readers"]));
  await reader.api().list(LEASES, { signal: NEVER });
  using grace = cluster.caller(await cluster.clientCertificate("grace"));
  await assert.rejects(
    grace.api().get(LEASES, { namespace: "default", name: "one" }, { signal: NEVER }),
    { name: "NotFoundError" },
  );
});

clusterTest("the audit log says who asked for what", async (cluster) => {
  await cluster.createNamespace("audited");
  await cluster.createServiceAccount("audited", "worker");
  using worker = cluster.caller({
    token: await cluster.token({ namespace: "audited", serviceAccount: "worker" }),
  });
  await worker.raw("GET", "/apis/coordination.k8s.io/v1/namespaces/audited/leases/x");
  const mine = (await cluster.auditLog())
    .filter(({ user }) => user === "system:serviceaccount:audited:worker");
  assert.deepEqual(mine, [{
    user: "system:serviceaccount:audited:worker",
    verb: "get",
    group: "coordination.k8s.io",
    resource: "leases",
    namespace: "audited",
    name: "x",
    requestUri: "/apis/coordination.k8s.io/v1/namespaces/audited/leases/x",
    status: 403,
  }]);
});

clusterTest("what was stored is there after the API server was killed", async (cluster) => {
  await cluster.createNamespace("durable");
  await cluster.killApiServer();
  await assert.rejects(cluster.admin("GET", "/readyz"));
  await cluster.startApiServer();
  assert.equal((await cluster.admin("GET", "/api/v1/namespaces/durable")).status, 200);
});

clusterTest("what was stored is there after a restart, at the same URL", async (cluster) => {
  const url = cluster.url;
  await cluster.createNamespace("steady");
  await cluster.restartApiServer();
  assert.equal(cluster.url, url);
  assert.equal((await cluster.admin("GET", "/api/v1/namespaces/steady")).status, 200);
});

clusterTest("definitions can be applied again", async (cluster) => {
  await cluster.applyCrds();
  const answer = await cluster.admin("GET", "/apis/shipstream.io/v1alpha1/mysqlfailovergroups");
  assert.equal(answer.status, 200);
});
