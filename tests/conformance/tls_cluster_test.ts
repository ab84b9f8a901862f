/** What of deploy-api 16 shows only over real TLS: the program as a process, on a real API server. */

import assert from "node:assert/strict";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { Workplace } from "../service/workplace.ts";

clusterTest(
  "deploy-api 16 item 24: over TLS a grant is one log record and one count, and no other listener has the API",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "over-tls");
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const granted = await client.grant("op-1", "tenant");
    assert.equal(granted.status, 201, granted.text);

    const isGrant = (line: Record<string, unknown>) =>
      line.msg === "deploy api" && line.handler === "grant";
    const { time, duration_ms, ...rest } = await service.logged(isGrant);
    assert.ok(Date.parse(String(time)) > 0 && Number(duration_ms) >= 0);
    assert.deepEqual(rest, {
      level: "INFO",
      msg: "deploy api",
      handler: "grant",
      group: "orders",
      instance: "tenant",
      namespace: place.namespace,
      operationId: "op-1",
      status: 201,
    });

    const at = (listener: "metrics" | "probes", path: string) =>
      fetch(`http://${service.address(listener)}${path}`);
    const scrape = await (await at("metrics", "/metrics")).text();
    const counts = scrape.split("\n").filter((line) =>
      line.startsWith("bloodraven_http_requests_total{") && line.includes('handler="grant"')
    );
    assert.equal(counts.length, 1, counts.join("\n"));
    assert.match(counts[0] ?? "", /server="deploy".*status="2xx".* 1$/);
    assert.match(scrape, /^bloodraven_http_request_duration_seconds_count\{[^}]*server="deploy"/m);

    for (const listener of ["metrics", "probes"] as const) {
      for (const path of ["", "/leases", "/leases/migration/op-1"]) {
        const answer = await at(listener, `/deploy/v1/groups/orders${path}`);
        await answer.body?.cancel();
        assert.equal(answer.status, 404, `${listener} ${path}`);
      }
    }
    assert.equal(service.lines.filter(isGrant).length, 1);
  },
);
