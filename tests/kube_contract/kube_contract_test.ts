/**
 * The contract, three times over: a real API server, the one in memory by itself, and that one over HTTPS.
 *
 * @module
 */

import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { createAuthority, FakeCluster, type RunningServer } from "../../lib/testing/mod.ts";
import { bindRole } from "../cluster/access.ts";
import { Caller } from "../cluster/caller.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { applyCrds } from "../cluster/crds.ts";
import { CONTRACT } from "./contract.ts";
import { type ContractTarget, openScope } from "./scope.ts";

/** A fake with the rules on, and its clock the machine's: the contract is about a server that runs. */
function openFake(): FakeCluster {
  return new FakeCluster({
    clock: systemClock,
    entropy: systemEntropy,
    rbac: true,
    // A real server sends one two seconds before the end of a watch as well; this one counts only the time between two.
    bookmarkIntervalMs: 1_000,
  });
}

function fakeTarget(fake: FakeCluster, url: string, send: typeof fake.fetch): ContractTarget {
  const caller = (token: string) => new Caller(url, send, token);
  const admin = caller(fake.adminToken);
  return {
    admin,
    caller,
    grant: (wish) => bindRole(admin.raw, wish),
    forgetFirstVersions: () => fake.compact(),
  };
}

function realTarget(cluster: Cluster): ContractTarget {
  return {
    admin: cluster.adminCaller,
    caller: (token) => cluster.caller({ token }),
    grant: (wish) => cluster.grant(wish),
    // It never knew them: it begins to keep changes of a custom kind when the kind is installed.
    forgetFirstVersions: () => {},
  };
}

const clusterTest = useCluster();
const inProcess = openFake();
const overHttps = openFake();
let listener: RunningServer;
let client: Deno.HttpClient;

Deno.test.beforeAll(async () => {
  const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const { certPem: cert, keyPem: key } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
  listener = await overHttps.listen({ cert, key });
  client = Deno.createHttpClient({ caCerts: [authority.caPem] });
  await applyCrds(inProcessTarget().admin.raw);
  await applyCrds(overHttpsTarget().admin.raw);
});

Deno.test.afterAll(async () => {
  client.close();
  await overHttps.close();
  await inProcess.close();
});

function inProcessTarget(): ContractTarget {
  return fakeTarget(inProcess, "https://fake", inProcess.fetch);
}

function overHttpsTarget(): ContractTarget {
  return fakeTarget(overHttps, listener.url, (request) => fetch(request, { client }));
}

for (const [index, { name, check }] of CONTRACT.entries()) {
  const namespace = `contract-${index}`;
  clusterTest(`real API server: ${name}`, async (cluster) => {
    await check(await openScope(realTarget(cluster), namespace));
  });
  Deno.test(`in memory: ${name}`, async () => {
    await check(await openScope(inProcessTarget(), namespace));
  });
  Deno.test(`in memory over HTTPS: ${name}`, async () => {
    await check(await openScope(overHttpsTarget(), namespace));
  });
}
