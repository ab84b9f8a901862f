/**
 * The races: what two leaders, an operator and a person with `kubectl` can do to one another at the same time.
 *
 * Each round insists on what the answers must be, and the history of the leases on what must never have been stored.
 *
 * @module
 */

import assert from "node:assert/strict";
import { holdName, slotName } from "../../lib/records/names.ts";
import { hashToken } from "../../lib/records/record.ts";
import type { Answer, DeploymentClient } from "../service/deployment_client.ts";
import { type Arena, type ArenaParts, GROUP } from "./arena.ts";
import { holdAgainstPlanned } from "./planned.ts";
import { granted, HOLD, LOST_RACES, mustBe, type Race, said, tokenOf } from "./race.ts";

/** A renewal that was answered. */
interface Renewal {
  readonly answer: Answer;
  /** False when it was sent after the lease was known to be over. */
  readonly sentBefore: boolean;
}

/**
 * Renews again and again, with pauses, until told to stop. Of several that renew one lease, each has a `turn` of its own, so
 * that no two wish the same.
 */
function keepRenewing(
  client: DeploymentClient,
  { pause }: Pick<ArenaParts, "pause">,
  { operation, token, kind, turn }: {
    readonly operation: string;
    readonly token: string;
    readonly kind: string;
    readonly turn: 0 | 1;
  },
) {
  const answers: Renewal[] = [];
  let over = false;
  let stopped = false;
  const done = (async () => {
    for (let count = 0; !stopped; count++) {
      const sentBefore = !over;
      const ttlSeconds = 30 + (2 * count + turn) % 90;
      answers.push({
        answer: await client.renew(operation, token, { kind, ttlSeconds }),
        sentBefore,
      });
      await pause();
    }
  })();
  // Where another request of the round fails first, nobody waits for this one: its own end is then no news.
  done.catch(() => {});
  return {
    answers,
    /** From now on, what is sent must fail. */
    setOver: () => over = true,
    stop: async () => {
      stopped = true;
      await done;
    },
  };
}

const grantAgainstGrant: Race = {
  name: "grant against grant: exactly one 201",
  async round(arena, operation) {
    const [a, b] = arena.clients;
    const rivals = [1, 2, 3, 4].map((index) => `${operation}-${index}`);
    const answers = await arena.together(
      ...rivals.map((rival, index) => () => (index % 2 === 0 ? a : b).grant(rival, "tenant")),
    );
    for (const answer of answers) mustBe(answer, 201, 409);
    const winners = rivals.filter((_, index) => answers[index]?.status === 201);
    assert.equal(winners.length, 1, said(...answers));
    const winner = answers.find(({ status }) => status === 201);
    const record = await arena.record();
    assert.ok(winner !== undefined && record !== null);
    assert.equal(record.operationId, winners[0]);
    assert.equal(record.tokenHash, hashToken(tokenOf(winner)));
    // Half of the next rounds begin with a record that ended, half with no object at all.
    if (arena.parts.random() < 0.5) {
      mustBe(await b.release(record.operationId, tokenOf(winner)), 204);
    } else await arena.kubectlDelete();
    return `winner at ${rivals.indexOf(record.operationId) % 2 === 0 ? "the first" : "the second"}`;
  },
};

const renewAgainstRevoke: Race = {
  name: "renew against revoke: never an extended revoked lease",
  async round(arena, operation) {
    const [a, b] = arena.clients;
    const { history } = arena.parts;
    const slot = slotName(GROUP);
    const hold = holdName(GROUP, operation);
    const token = await granted(a, operation);
    const holdToken = await granted(b, operation, HOLD);
    const migration = { operation, token, kind: "migration" } as const;
    const renewals = [
      { name: slot, ...keepRenewing(a, arena.parts, { ...migration, turn: 0 }) },
      { name: slot, ...keepRenewing(b, arena.parts, { ...migration, turn: 1 }) },
      {
        name: hold,
        ...keepRenewing(b, arena.parts, { operation, token: holdToken, ...HOLD, turn: 0 }),
      },
    ];
    await arena.parts.pause();
    const byGeneration = arena.parts.random() < 0.5;
    const revokedAt =
      await (byGeneration
        ? arena.raiseGeneration().then(({ version }) => version)
        : arena.askForRevocation(operation));
    for (const renewal of renewals) renewal.setOver();
    await arena.parts.pause();
    await Promise.all(renewals.map((renewal) => renewal.stop()));
    mustBe(await b.renew(operation, token), 409);
    mustBe(await a.renew(operation, holdToken, HOLD), 409);
    await history.check();
    for (const { name, answers } of renewals) {
      for (const { answer, sentBefore } of answers) {
        mustBe(answer, ...(sentBefore ? [200, 409, 423, LOST_RACES] : [409]));
        if (answer.status !== 200) continue;
        // Its look began when its write was stored: had that been later, it would have seen the revocation.
        const version = history.versionOf(name, operation, String(answer.body.expiresAt));
        assert.ok(version !== null && version < revokedAt, `${version} is not before ${revokedAt}`);
      }
    }
    const reason = byGeneration ? "topology_changed" : "operator_revoked";
    for (const record of await Promise.all([slot, hold].map((name) => arena.record(name)))) {
      assert.deepEqual([record?.state, record?.reason], ["revoked", reason]);
    }
    await arena.clear();
    return reason;
  },
};

const regrantAgainstInstability: Race = {
  name: "re-grant against instability: the mutex is never free while its holder works",
  async round(arena, operation) {
    const [a, b] = arena.clients;
    const first = await granted(a, operation);
    const [again, rival] = await arena.together(
      () => a.grant(operation, "tenant"),
      () => b.grant(`${operation}-rival`, "tenant"),
      () => arena.setStatus({ updatePhase: "Failover" }),
    );
    mustBe(rival, 409, 423);
    mustBe(again, 200, 423);
    const token = again.status === 200 ? tokenOf(again) : first;
    mustBe(await b.renew(operation, token), 200);
    if (again.status === 200) mustBe(await a.renew(operation, first), 403);
    const record = await arena.record();
    assert.deepEqual([record?.operationId, record?.state], [operation, "active"]);
    await arena.setStatus({ updatePhase: null });
    mustBe(await b.release(operation, token), 204);
    return said(again);
  },
};

const releaseAgainstGrant: Race = {
  name: "release against grant: the next one gets it only when it is free",
  async round(arena, operation) {
    const [a, b] = arena.clients;
    const next = `${operation}-next`;
    const token = await granted(a, operation);
    const [released, answer] = await arena.together(
      () => a.release(operation, token),
      () => b.grant(next, "tenant"),
    );
    mustBe(released, 204);
    mustBe(answer, 201, 409);
    const record = await arena.record();
    if (answer.status === 201) {
      assert.equal(record?.operationId, next);
      mustBe(await a.renew(next, tokenOf(answer)), 200);
      mustBe(await b.release(next, tokenOf(answer)), 204);
    } else {
      assert.deepEqual([record?.operationId, record?.state], [operation, "released"]);
    }
    return said(answer);
  },
};

const holdAgainstRevocation: Race = {
  name: "a hold grant against a direct revocation: no hold of a revoked operation stays",
  async round(arena, operation) {
    const [a, b] = arena.clients;
    const name = holdName(GROUP, operation);
    const token = await granted(a, operation);
    const [answer] = await arena.together(
      () => b.grant(operation, "tenant", HOLD),
      () => arena.revokeDirectly(operation, name),
    );
    mustBe(answer, 201, 403, 409);
    const record = await arena.record(name);
    assert.notEqual(record?.state, "active", said(answer));
    if (answer.status === 201) {
      assert.equal(record?.state, "revoked");
      mustBe(await a.renew(operation, tokenOf(answer), HOLD), 409);
    }
    mustBe(await b.renew(operation, token), 409);
    return `${said(answer)}: the hold is ${record?.state ?? "not there"}`;
  },
};

const renewAgainstDelete: Race = {
  name: "a renewal against kubectl delete lease: it is never recreated",
  async round(arena, operation) {
    const [a, b] = arena.clients;
    const token = await granted(a, operation);
    const renewals = [
      keepRenewing(a, arena.parts, { operation, token, kind: "migration", turn: 0 }),
      keepRenewing(b, arena.parts, { operation, token, kind: "migration", turn: 1 }),
    ];
    await arena.parts.pause();
    await arena.kubectlDelete();
    for (const renewal of renewals) renewal.setOver();
    await arena.parts.pause();
    await Promise.all(renewals.map((renewal) => renewal.stop()));
    for (const { answer, sentBefore } of renewals.flatMap(({ answers }) => answers)) {
      if (sentBefore) mustBe(answer, 200, 404, LOST_RACES);
      else mustBe(answer, 404);
    }
    assert.equal(await arena.record(), null);
    const renewed = renewals.flatMap(({ answers }) => answers)
      .filter(({ answer }) => answer.status === 200);
    return `deleted after ${renewed.length} renewals`;
  },
};

const oneOperationTwice: Race = {
  name: "two requests of one operation at two leaders: a retraction never ends the other's lease",
  async round(arena, operation) {
    const [a, b] = arena.clients;
    const [first, second] = await arena.together(
      () => a.grant(operation, "tenant"),
      () => b.grant(operation, "tenant"),
      async () => {
        await arena.setStatus({ updatePhase: "Failover" });
        await arena.parts.pause();
        await arena.setStatus({ updatePhase: null });
      },
    );
    const answers = [first, second];
    for (const answer of answers) mustBe(answer, 200, 201, 423, LOST_RACES);
    const [newest] = answers.filter(({ status }) => status < 300).sort(byFence).reverse();
    if (newest !== undefined) {
      // Whoever was told of a lease last has it: others took back their own writes alone.
      mustBe(await b.renew(operation, tokenOf(newest)), 200);
      mustBe(await a.release(operation, tokenOf(newest)), 204);
    }
    const record = await arena.record();
    assert.ok(record === null || record.operationId === operation);
    await arena.kubectlDelete();
    return answers.map(({ status }) => status).sort().join(", ");
  },
};

function byFence(a: Answer, b: Answer): number {
  const [left, right] = [a, b].map(({ headers }) => BigInt(headers.get("X-Lease-Fence") ?? 0));
  return (left ?? 0n) < (right ?? 0n) ? -1 : 1;
}

const readsAgainstTopology: Race = {
  name: "parallel reads while topology moves: a newer record is never revoked",
  async round(arena, operation) {
    const [a, b] = arena.clients;
    let generation = 0;
    const look = async (client: DeploymentClient) => {
      for (let times = 0; times < 2; times++) mustBe(await client.observe(), 200, 423);
    };
    const [answer] = await arena.together(
      () => a.grant(operation, "tenant"),
      () => look(a),
      () => look(b),
      async () => {
        await arena.raiseGeneration();
        await arena.parts.pause();
        ({ generation } = await arena.raiseGeneration());
      },
    );
    mustBe(answer, 201, 409, 423);
    let how = said(answer);
    let isOver = false;
    if (answer.status === 201) {
      const renewed = mustBe(await b.renew(operation, tokenOf(answer)), 200, 409);
      const isNewest = answer.body.topologyGeneration === generation;
      assert.equal(renewed.status, isNewest ? 200 : 409, `${said(answer, renewed)} ${generation}`);
      isOver = !isNewest;
      how += ` at ${isNewest ? "the newest" : "an older"} generation`;
    }
    const last = await granted(b, `${operation}-last`).catch(() => null);
    if (last !== null) {
      await Promise.all([a.observe(), b.observe()]);
      mustBe(await a.renew(`${operation}-last`, last), 200);
      // Another has the slot now: the tombstone keeps its revocation.
      if (isOver) mustBe(await b.renew(operation, tokenOf(answer)), 409);
    }
    await arena.kubectlDelete();
    return how;
  },
};

/** All races. */
export const races: readonly Race[] = [
  grantAgainstGrant,
  renewAgainstRevoke,
  regrantAgainstInstability,
  releaseAgainstGrant,
  holdAgainstRevocation,
  renewAgainstDelete,
  oneOperationTwice,
  readsAgainstTopology,
  holdAgainstPlanned,
];

/** Counts how the rounds of a race ended. */
export type Outcomes = Readonly<Record<string, number>>;

/** How long and how often a race is run: whichever ends first. */
export interface RaceLimits {
  readonly rounds: number;
  /** @default {no limit} */
  readonly untilMs?: number;
}

/** After so many rounds the history is judged: what it finds names the round. */
const ROUNDS_PER_JUDGEMENT = 20;

/** Runs a race, and insists on the history of its rounds. */
export async function run(race: Race, arena: Arena, limits: RaceLimits): Promise<Outcomes> {
  const outcomes: Record<string, number> = {};
  await arena.clear();
  for (let index = 0; index < limits.rounds; index++) {
    if (performance.now() > (limits.untilMs ?? Infinity)) break;
    const operation = `${race.name.slice(0, 20)} ${index}`;
    const outcome = await race.round(arena, operation);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (index % ROUNDS_PER_JUDGEMENT === 0) await arena.parts.history.check();
  }
  await arena.parts.history.check();
  return outcomes;
}
