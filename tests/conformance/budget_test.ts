/** The call budget of the state protocol, section 9: rounds and calls, counted at the client of the API server. */

import assert from "node:assert/strict";
import { MYSQL_DATABASES } from "../../lib/group/types.ts";
import type { DeploymentClient } from "../service/deployment_client.ts";
import { DEPLOYER, InProcessService, seedGroup } from "../service/in_process.ts";
import { CallRounds, type Round } from "./call_rounds.ts";
import { granted, HOLD, mustBe, seedHolds } from "./support.ts";

interface Budget {
  readonly rounds: number;
  readonly calls: number;
}

/** What a request may cost, and how it is made ready and sent. `warm` is done before the caller is seen last. */
interface Row extends Budget {
  readonly what: string;
  readonly warm?: (client: DeploymentClient) => Promise<string>;
  readonly send: (client: DeploymentClient, token: string) => Promise<unknown>;
}

const migration = (client: DeploymentClient) => granted(client);

async function migrationAndHold(client: DeploymentClient): Promise<string> {
  await granted(client);
  return await granted(client, "op-1", HOLD);
}

const rows: readonly Row[] = [
  {
    what: "a view",
    rounds: 2,
    calls: 5,
    send: async (client) => mustBe(await client.observe(), 200),
  },
  {
    what: "a grant of a migration",
    rounds: 3,
    calls: 8,
    send: async (client) => mustBe(await client.grant("op-1", "tenant"), 201),
  },
  {
    what: "a re-grant of a migration",
    rounds: 3,
    calls: 8,
    warm: migration,
    send: async (client) => mustBe(await client.grant("op-1", "tenant"), 200),
  },
  {
    what: "a grant of a hold",
    rounds: 3,
    calls: 9,
    warm: migration,
    send: async (client) => mustBe(await client.grant("op-1", "tenant", HOLD), 201),
  },
  {
    what: "a grant that is refused since another holds",
    rounds: 1,
    calls: 5,
    warm: migration,
    send: async (client) => mustBe(await client.grant("op-2", "tenant"), 409),
  },
  {
    what: "a renewal of a migration",
    rounds: 3,
    calls: 7,
    warm: migration,
    send: async (client, token) => mustBe(await client.renew("op-1", token), 200),
  },
  {
    what: "a renewal of a hold",
    rounds: 3,
    calls: 7,
    warm: migrationAndHold,
    send: async (client, token) => mustBe(await client.renew("op-1", token, HOLD), 200),
  },
  {
    what: "a release of a migration",
    rounds: 2,
    calls: 5,
    warm: migration,
    send: async (client, token) => mustBe(await client.release("op-1", token), 204),
  },
  {
    what: "a release of a hold",
    rounds: 2,
    calls: 5,
    warm: migrationAndHold,
    send: async (client, token) => mustBe(await client.release("op-1", token, HOLD), 204),
  },
];

/** Sends the request of a row as a caller that was seen within the minute, and returns its rounds. */
async function measure(row: Row, holds: number): Promise<readonly Round[]> {
  const rounds = new CallRounds();
  using service = new InProcessService({ send: rounds.wrap });
  seedHolds(service, holds);
  const client = service.client();
  const token = await row.warm?.(client) ?? "";
  // Any request makes a caller known: what it asks for next is its own affair.
  mustBe(await client.observe(), 200);
  service.fake.calls.reset();
  const seen = await rounds.of(() => row.send(client, token));
  assert.equal(seen.flat().length, service.fake.calls.total, "both counts agree");
  return seen;
}

for (const row of rows) {
  for (const holds of [0, 1, 50]) {
    const limit = `${row.rounds} rounds and ${row.calls} calls`;
    Deno.test(`budget: ${row.what} beside ${holds} holds takes at most ${limit}`, async () => {
      const seen = await measure(row, holds);
      const shown = seen.map((round) => round.join("\n  ")).join("\n--\n  ");
      assert.ok(seen.length <= row.rounds, `${seen.length} rounds:\n  ${shown}`);
      assert.ok(seen.flat().length <= row.calls, `${seen.flat().length} calls:\n  ${shown}`);
    });
  }
}

Deno.test("budget: a caller that was not seen within the minute costs its review and its list first", async () => {
  const rounds = new CallRounds();
  using service = new InProcessService({ send: rounds.wrap });
  const client = service.client();
  mustBe(await client.observe(), 200);
  await service.clock.advance(60_000);
  const seen = await rounds.of(async () => mustBe(await client.observe(), 200));
  assert.equal(seen.length, 4);
  assert.match(seen[0]?.join() ?? "", /^POST .*tokenreviews$/);
  assert.match(seen[1]?.join() ?? "", /^GET .*mysqldatabases\?[^,]*$/);
});

Deno.test("budget: an unknown caller causes no read of the group, with whatever it asks", async () => {
  const rounds = new CallRounds();
  using service = new InProcessService({ send: rounds.wrap });
  mustBe(await service.client().observe(), 200);
  const stranger = service.client({ ...DEPLOYER, serviceAccount: "stranger" });
  const requests = [
    () => stranger.observe(),
    () => stranger.grant("op-1", "tenant"),
    () => stranger.renew("op-1", "token"),
    () => stranger.release("op-1", "token"),
  ];
  for (const request of requests) {
    const seen = await rounds.of(async () => mustBe(await request(), 403, "forbidden"));
    for (const call of seen.flat()) assert.match(call, /tokenreviews|mysqldatabases/);
  }
});

Deno.test("budget: the list of databases holds only those of the group", async () => {
  const lists: unknown[] = [];
  using service = new InProcessService({
    send: (send) => async (request) => {
      const answer = await send(request);
      if (request.url.includes("/mysqldatabases")) lists.push(await answer.clone().json());
      return answer;
    },
  });
  seedGroup(service.fake, "second", ["other", "another"]);
  assert.equal(service.fake.readAll(MYSQL_DATABASES).length, 4);
  mustBe(await service.client().observe(), 200);
  assert.equal(lists.length, 1);
  const names = JSON.stringify(lists).match(/"name":"[a-z]+"/g);
  assert.deepEqual(
    [...new Set(names)].filter((name) => /other|another|second/.test(name)),
    [],
  );
  assert.ok(names?.includes('"name":"tenant"') && names.includes('"name":"billing"'));
});
