/** The call budget of the state protocol, section 9: rounds and calls, counted at the client of the API server. */

import assert from "node:assert/strict";
import { MYSQL_DATABASES } from "../../lib/group/types.ts";
import type { DeploymentClient } from "../service/deployment_client.ts";
import { DEPLOYER, InProcessService, NAMESPACE, seedGroup } from "../service/in_process.ts";
import { ordersDatabase } from "../service/orders.ts";
import { CallRounds, type Round } from "./call_rounds.ts";
import { granted, HOLD, mustBe, seedHolds } from "./support.ts";

interface Budget {
  readonly rounds: number;
  readonly calls: number;
}

/**
 * What a request may cost, and how it is made ready and sent. `warm` is done before the caller is
 * seen last.
 */
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

interface Circumstances {
  /** @default {0} */
  readonly holds?: number;
  /** How many databases name the caller. @default {1} */
  readonly databases?: number;
  /** How old the last list of databases is. @default {0} */
  readonly listAgeMs?: number;
}

/** Sends the request of a row as a caller that was seen within the minute, and returns its rounds. */
async function measure(row: Row, circumstances: Circumstances): Promise<readonly Round[]> {
  const { holds = 0, databases = 1, listAgeMs = 0 } = circumstances;
  const rounds = new CallRounds();
  using service = new InProcessService({ send: rounds.wrap });
  for (const [index, name] of ["tenant", "billing", "shop", "stock"].entries()) {
    const clients = index < databases ? [DEPLOYER] : [];
    service.fake.seed(MYSQL_DATABASES, ordersDatabase(NAMESPACE, name, "orders", clients));
  }
  seedHolds(service, holds);
  const client = service.client();
  const token = await row.warm?.(client) ?? "";
  // Any request makes a caller known: what it asks for next is its own affair.
  mustBe(await client.observe(), 200);
  await service.clock.advance(listAgeMs);
  // A question about another group keeps the review of the token fresh, and tells nothing of this one.
  if (listAgeMs > 0) mustBe(await client.with({ group: "other" }).observe(), 403);
  service.fake.calls.reset();
  const seen = await rounds.of(() => row.send(client, token));
  assert.equal(seen.flat().length, service.fake.calls.total, "both counts agree");
  return seen;
}

for (const row of rows) {
  for (const holds of [0, 1, 50]) {
    const limit = `${row.rounds} rounds and ${row.calls} calls`;
    Deno.test(`budget: ${row.what} beside ${holds} holds takes at most ${limit}`, async () => {
      const seen = await measure(row, { holds });
      mustKeep(row, seen);
      assert.deepEqual(looks(seen), ["get"]);
    });
  }
  for (const databases of [2, 3, 4]) {
    Deno.test(`budget: ${row.what} by a caller of ${databases} databases takes no more, with one get`, async () => {
      const seen = await measure(row, { databases });
      mustKeep(row, seen);
      assert.deepEqual(looks(seen), ["get"]);
    });
  }
}

function mustKeep({ rounds, calls }: Budget, seen: readonly Round[]): void {
  const shown = seen.map((round) => round.join("\n  ")).join("\n--\n  ");
  assert.ok(seen.length <= rounds, `${seen.length} rounds:\n  ${shown}`);
  assert.ok(seen.flat().length <= calls, `${seen.flat().length} calls:\n  ${shown}`);
}

/** How databases were looked at. */
function looks(seen: readonly Round[]): readonly string[] {
  return seen.flat().filter((call) => call.includes("/mysqldatabases"))
    .map((call) => {
      if (call.includes("/mysqldatabases/")) return "get";
      return call.includes("resourceVersion=0") ? "cache" : "list";
    });
}

Deno.test("budget: a caller that stayed away costs its review, a list from the cache and a look by name first", async () => {
  const rounds = new CallRounds();
  using service = new InProcessService({ send: rounds.wrap });
  const client = service.client();
  mustBe(await client.observe(), 200);
  await service.clock.advance(90_000);
  const seen = await rounds.of(async () => mustBe(await client.observe(), 200));
  assert.equal(seen.length, 5);
  assert.match(seen[0]?.join() ?? "", /^POST .*tokenreviews$/);
  assert.match(seen[1]?.join() ?? "", /^GET .*mysqldatabases\?[^,]*&resourceVersion=0$/);
  assert.match(seen[2]?.join() ?? "", /^GET .*mysqldatabases\/billing$/);
});

Deno.test("budget: a caller of the last minute keeps its rounds, however old the list was at its last request", async () => {
  for (const firstMs of [0, 1, 29_999, 30_000, 59_999]) {
    const rounds = new CallRounds();
    using service = new InProcessService({ send: rounds.wrap });
    const client = service.client();
    mustBe(await client.observe(), 200);
    await service.clock.advance(firstMs);
    mustBe(await client.observe(), 200);
    await service.clock.advance(59_999);
    mustBe(await client.with({ group: "other" }).observe(), 403); // The review of the token is fresh.
    const seen = await rounds.of(async () => mustBe(await client.observe(), 200));
    mustKeep({ rounds: 2, calls: 6 }, seen);
    assert.deepEqual(looks(seen), ["get", "cache"], `${firstMs} ms`);
  }
});

// What ends after its first round is answered before the list is asked for.
for (const row of rows.filter(({ rounds }) => rounds > 1)) {
  Deno.test(`ADR 164: ${row.what} reads the list again beside it when it is half a minute old, and waits no more rounds`, async () => {
    mustKeep(row, await measure(row, { listAgeMs: 29_999 }));
    const seen = await measure(row, { listAgeMs: 30_000 });
    assert.deepEqual(looks(seen), ["get", "cache"]);
    mustKeep({ ...row, calls: row.calls + 1 }, seen);
  });
}

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
      if (request.url.includes("/mysqldatabases?")) lists.push(await answer.clone().json());
      return answer;
    },
  });
  seedGroup(service.fake, "second", ["other", "another"]);
  assert.equal(service.fake.readAll(MYSQL_DATABASES).length, 4);
  mustBe(await service.client().observe(), 200);
  mustBe(await service.client({ ...DEPLOYER, serviceAccount: "stranger" }).observe(), 403);
  assert.equal(lists.length, 3, "two from the cache, and the one that refuses");
  const names = JSON.stringify(lists).match(/"name":"[a-z]+"/g);
  assert.deepEqual(
    [...new Set(names)].filter((name) => /other|another|second/.test(name)),
    [],
  );
  assert.ok(names?.includes('"name":"tenant"') && names.includes('"name":"billing"'));
});
