/** Differences that only the program shows: state protocol 3, by number, as processes on a real API server. */

import assert from "node:assert/strict";
import { connect } from "node:tls";
import { LEASES } from "../../lib/kube/resources.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { grantedBody } from "../service/deployment_client.ts";
import { Workplace } from "../service/workplace.ts";

const { signal } = new AbortController();
const ELECTION = "holdfast.shipstream.io";

/** Sends text over TLS, and returns what comes back and the protocol that was agreed on. */
function overTls(address: string, text: string): Promise<{ protocol: unknown; answer: string }> {
  const { hostname: host, port } = new URL(`https://${address}`);
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect({
      host,
      port: Number(port),
      ALPNProtocols: ["h2", "http/1.1"],
      // What is tested is the request line; certificates have their own tests.
      rejectUnauthorized: false,
    });
    socket.setEncoding("utf8");
    socket.on("secureConnect", () => socket.write(text));
    socket.on("data", (chunk: string) => answer += chunk);
    socket.on("error", reject);
    socket.on("close", () => resolve({ protocol: socket.alpnProtocol, answer }));
  });
}

clusterTest(
  "difference 17: HTTP/1.1 alone, and the request line is judged as it was sent",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "raw");
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const { namespace } = place;
    const token = await cluster.token({
      namespace,
      serviceAccount: "deployer",
      audiences: ["bloodraven-deploy"],
    });
    const rows: readonly (readonly [string, string, number])[] = [
      ["GET", "/deploy/v1/groups/orders", 200],
      ["HEAD", "/deploy/v1/groups/orders", 405],
      ["GET", "/deploy/v1//groups/orders", 404],
      ["GET", "/deploy/v1/./groups/orders", 404],
      ["GET", "/deploy/v1/x/../groups/orders", 404],
      ["GET", "/deploy/v1/groups/%2e%2e/groups/orders", 404],
      ["GET", "/deploy/v1/groups/%6frders", 200],
    ];
    for (const [method, path, status] of rows) {
      const { protocol, answer } = await overTls(
        service.address("tls"),
        `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
      );
      assert.notEqual(protocol, "h2");
      assert.ok(
        answer.startsWith(`HTTP/1.1 ${status} `),
        `${method} ${path}: ${answer.slice(0, 80)}`,
      );
    }
  },
);

clusterTest(
  "difference 13: a process that is deposed goes on, campaigns again, and serves the leases that it knew",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "deposed");
    const { namespace } = place;
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const { token } = grantedBody.parse((await client.grant("op-1", "tenant")).body);

    const seize = (spec: Record<string, unknown>) =>
      cluster.adminApi.patch(LEASES, { namespace, name: ELECTION }, {
        type: "merge",
        body: { spec },
      }, {
        signal,
      });
    await seize({ holderIdentity: "intruder", leaseDurationSeconds: 15 });
    const untilMs = performance.now() + 20_000;
    for (;;) {
      const answer = await client.observe();
      if (answer.body.error === "not_leader") {
        assert.equal(answer.headers.get("Retry-After"), "1");
        break;
      }
      assert.ok(performance.now() < untilMs, "the service still leads");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await seize({ holderIdentity: "" });
    await place.untilLeading(client);
    assert.equal((await client.renew("op-1", token)).status, 200);
  },
);

clusterTest(
  "difference 27: of two replicas one serves, and the other takes over with its leases",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "replicas");
    const services = [await place.startService(), await place.startService()];
    const clients = await Promise.all(services.map((service) => place.client(service)));
    const [first, second] = clients;
    assert.ok(first !== undefined && second !== undefined);
    await place.untilLeading(first);
    assert.equal((await second.observe()).body.error, "not_leader");
    const { token } = grantedBody.parse((await first.grant("op-1", "tenant")).body);

    services[0]?.kill("SIGTERM");
    await place.untilLeading(second);
    assert.equal((await second.renew("op-1", token)).status, 200);
    assert.equal((await second.grant("op-2", "billing")).body.error, "held");
    assert.equal(await services[0]?.ended(), 0);
  },
);
