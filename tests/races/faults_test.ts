/**
 * Rivals at two leaders while answers are lost behind the write and conflicts come in storms.
 *
 * Time stands still, so no lease runs out: whoever was told 201 has the mutex until it releases it.
 */

import assert from "node:assert/strict";
import { hashToken } from "../../lib/records/record.ts";
import { type Fault, seededEntropy } from "../../lib/testing/mod.ts";
import type { Answer } from "../service/deployment_client.ts";
import { type FakeArena, openFakeArena } from "./fake_arena.ts";

const RIVALS = 4;
const STEPS = 100;
/** So often somebody meets a gust. With more, no write of a holder comes through, and nothing is raced for. */
const GUSTS = 0.15;

interface Storm {
  readonly fault: Fault;
  /** How many writes in a row one gust hits. */
  readonly gust: number;
}

const storms: Readonly<Record<string, Storm>> = {
  "answers are lost behind the write": { fault: { type: "lost-answer", as: "reset" }, gust: 1 },
  "connections break before the write": { fault: { type: "reset" }, gust: 2 },
  "conflicts come in storms": { fault: { type: "status", code: 409 }, gust: 5 },
  "the API server fails": { fault: { type: "status", code: 500 }, gust: 1 },
};

/** One deployment: it knows what it was told, and no more. */
class Rival {
  token: string | null = null;
  /** True from a success until it gives the lease back or is told that it is gone. */
  holds = false;

  constructor(readonly operation: string) {}
}

/** What came of it: the answers by their status, and how many calls were hit. */
interface Outcome {
  readonly statuses: ReadonlyMap<number, number>;
  readonly hits: number;
}

/** Runs rivals against each other. */
async function rage(opened: FakeArena, storm: Storm, seed: number): Promise<Outcome> {
  const { arena, fake, user } = opened;
  const { fraction } = seededEntropy(seed);
  const rivals = Array.from({ length: RIVALS }, (_, index) => new Rival(`rival-${index}`));
  const statuses = new Map<number, number>();
  const gusts: ReturnType<typeof fake.faults.add>[] = [];
  const count = ({ status }: Answer) => statuses.set(status, (statuses.get(status) ?? 0) + 1);

  async function step(rival: Rival): Promise<void> {
    const [client] = arena.clients;
    const { operation, token } = rival;
    if (fraction() < GUSTS) {
      const rule = { verb: "update", resource: "leases", user, count: storm.gust };
      // One gust at a time: those that nobody ran into would add up, and no write would come through any more.
      gusts.at(-1)?.remove();
      gusts.push(fake.faults.add({ ...rule, fault: storm.fault }));
    }
    if (token !== null && fraction() < 0.3) {
      // From here on the mutex may be free: what was lost is the answer, or the request.
      rival.holds = false;
      const answer = await client.release(operation, token);
      count(answer);
      if (answer.status === 204) rival.token = null;
      return;
    }
    if (token !== null && fraction() < 0.6) {
      const answer = await client.renew(operation, token);
      count(answer);
      if (answer.status === 404 || answer.status === 409) rival.holds = false;
      if (answer.status === 200) mustBeAlone(rival);
      return;
    }
    const answer = await client.grant(operation, "tenant");
    count(answer);
    if (answer.status === 409) rival.holds = false;
    if (answer.status === 200 || answer.status === 201) {
      rival.token = String(answer.body.token);
      rival.holds = true;
      mustBeAlone(rival);
      const record = await arena.record();
      if (rival.holds) assert.equal(record?.tokenHash, hashToken(rival.token));
    }
  }

  function mustBeAlone(rival: Rival): void {
    const others = rivals.filter((other) => other !== rival && other.holds);
    assert.deepEqual(others.map(({ operation }) => operation), [], `${rival.operation} got it too`);
  }

  await Promise.all(rivals.map(async (rival) => {
    for (let times = 0; times < STEPS; times++) await step(rival);
  }));
  return { statuses, hits: gusts.reduce((sum, { hits }) => sum + hits, 0) };
}

for (const [index, [what, storm]] of Object.entries(storms).entries()) {
  Deno.test(`two leaders while ${what}: one holder at a time, and the group comes to rest`, async () => {
    const seed = index + 1;
    await using opened = await openFakeArena(seed);
    const { statuses, hits } = await rage(opened, storm, seed);
    assert.deepEqual(
      [...statuses.keys()].filter((status) =>
        ![200, 201, 204, 403, 404, 409, 503].includes(status)
      ),
      [],
    );
    // There was something to race for, and the storm was felt.
    assert.ok((statuses.get(201) ?? 0) >= 2, JSON.stringify([...statuses]));
    assert.ok(hits >= 10, `${hits} calls were hit`);
    const { arena, fake, clock } = opened;
    await arena.parts.history.check();
    fake.faults.clear();
    // Nothing that was left behind outlives its time.
    await clock.advance(120_001);
    const [client] = arena.clients;
    const answer = await client.grant("afterwards", "tenant");
    assert.equal(answer.status, 201, answer.text);
  });
}
