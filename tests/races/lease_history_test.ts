import assert from "node:assert/strict";
import type { LeaseRecord } from "../../lib/records/record.ts";
import { HistoryJudge, type Version } from "./lease_history.ts";

const record: LeaseRecord = {
  kind: "migration",
  operationId: "a",
  instance: "tenant",
  expiresAt: "2026-01-01T00:00:30Z",
  topologyGeneration: 7,
  namespace: "app",
  serviceAccount: "deployer",
  tokenHash: "1",
  createdAt: "2026-01-01T00:00:00Z",
  state: "active",
};
const other: LeaseRecord = { ...record, operationId: "b", tokenHash: "2" };
const released: LeaseRecord = { ...record, state: "released" };
const revoked: LeaseRecord = { ...record, state: "revoked", reason: "topology_changed" };

interface Step {
  readonly name?: string;
  readonly record?: LeaseRecord;
  readonly deleted?: boolean;
  readonly atSeconds?: number;
  readonly gate?: number;
}

function judge(steps: readonly Step[]): readonly string[] {
  const judge = new HistoryJudge();
  for (const [index, step] of steps.entries()) {
    const version: Version = {
      name: step.gate === undefined ? step.name ?? "slot" : "gate",
      version: BigInt(index),
      deleted: step.deleted ?? false,
      writtenMs: Date.UTC(2026, 0, 1, 0, 0, step.atSeconds ?? 0),
      record: step.record ?? null,
      gate: step.gate === undefined ? null : { generation: step.gate, planned: null },
    };
    judge.take(version);
  }
  return judge.violations;
}

Deno.test("a history that is in order has no violation", () => {
  const histories: readonly (readonly Step[])[] = [
    [{ record }, { record: { ...record, expiresAt: "2026-01-01T00:00:40Z" } }, {
      record: released,
    }],
    [{ record }, { record: released }, { record: other }],
    [{ record }, { record: other, atSeconds: 31 }],
    [{ gate: 7 }, { record }, { gate: 8 }, { record: revoked }],
    [{ record }, { gate: 8 }, { name: "tombstone", record: revoked }, { record: other }],
    [{ record }, { record: { ...record, tokenHash: "3" } }, { record }],
    [{ record }, { record, deleted: true }, { record: { ...record, tokenHash: "3" } }],
    [{ record }, { record: { ...revoked, reason: "operator_revoked" } }],
  ];
  for (const history of histories) assert.deepEqual(judge(history), [], JSON.stringify(history));
});

Deno.test("each planted violation is found", () => {
  const planted: readonly (readonly [string, readonly Step[]])[] = [
    ["took the mutex of another", [{ record }, { record: other, atSeconds: 30 }]],
    ["changed after its revocation", [
      { gate: 8 },
      { record },
      { record: revoked },
      { record: { ...revoked, expiresAt: "2026-01-01T00:00:40Z" } },
    ]],
    ["is active again with a token that ended", [{ record }, { record: released }, { record }]],
    ["is active again with a token that ended", [
      { record },
      { record, deleted: true },
      { record },
    ]],
    ["was revoked for a generation that nobody stored", [
      { gate: 7 },
      { record },
      { record: revoked },
    ]],
  ];
  for (const [what, history] of planted) {
    assert.deepEqual(judge(history).map((found) => found.replace(/^.*: /, "")), [what]);
  }
});
