/** Two leaders while the API server is restarted under them. */

import assert from "node:assert/strict";
import { hashToken } from "../../lib/records/record.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import type { Answer } from "../service/deployment_client.ts";
import { TwoLeaders } from "./process_arena.ts";

const RIVALS = 4;

clusterTest(
  "an API server that is killed and comes back leaves one holder, whose token works",
  async (cluster) => {
    await using leaders = await TwoLeaders.start(cluster, "restart");
    const arena = await leaders.openArena();
    await arena.clear();
    const [a, b] = arena.clients;
    const first = await a.grant("rival-0", "tenant", { ttlSeconds: 120 });
    assert.equal(first.status, 201, first.text);
    const tokens = new Map([["rival-0", String(first.body.token)]]);
    const answers: Answer[] = [];
    let over = false;
    const rivals = Array.from({ length: RIVALS }, async (_, index) => {
      const operation = `rival-${index}`;
      while (!over) {
        const [client] = arena.clients;
        const token = tokens.get(operation);
        const answer = token === undefined
          ? await client.grant(operation, "tenant", { ttlSeconds: 120 })
          : await client.renew(operation, token, { ttlSeconds: 120 });
        answers.push(answer);
        if (answer.status === 201) tokens.set(operation, String(answer.body.token));
        await arena.parts.pause();
      }
    });
    const renewals = () => answers.filter(({ status }) => status === 200).length;
    const untilRenewed = async () => {
      for (const before = renewals(); renewals() < before + 3;) await arena.parts.pause();
    };
    await untilRenewed();
    await cluster.killApiServer();
    await arena.parts.pause();
    await cluster.startApiServer();
    await untilRenewed();
    over = true;
    await Promise.all(rivals);

    for (const { status, text } of answers) {
      assert.ok([200, 201, 409, 503].includes(status), `${status} ${text}`);
    }
    assert.equal(tokens.size, 1, "one 201 in all, and nobody else before it ends");
    const [[operation, token] = ["", ""]] = tokens;
    for (const client of [a, b]) assert.equal((await client.renew(operation, token)).status, 200);
    const record = await arena.record();
    assert.deepEqual([record?.operationId, record?.tokenHash], [operation, hashToken(token)]);
    await arena.parts.history.check();
  },
);
