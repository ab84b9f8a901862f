import assert from "node:assert/strict";
import { createAuthority, FakeCluster, seededEntropy, TestClock } from "@holdfast/holdfast/testing";

Deno.test("a program of any language meets the cluster over verified TLS, with RBAC", async () => {
  await using fake = new FakeCluster({
    clock: new TestClock(Date.now()),
    entropy: seededEntropy(1),
    rbac: true,
  });
  const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const { certPem, keyPem } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
  const { url } = await fake.listen({ cert: certPem, key: keyPem });

  using client = Deno.createHttpClient({ caCerts: [authority.caPem] });
  const statusFor = async (token: string) => {
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(`${url}/api/v1/namespaces/default/configmaps`, {
      client,
      headers,
    });
    await response.body?.cancel();
    return response.status;
  };
  const stranger = fake.tokenFor({ namespace: "default", serviceAccount: "stranger" });
  assert.equal(await statusFor(stranger), 403);
  assert.equal(await statusFor(fake.adminToken), 200);
});
