import assert from "node:assert/strict";
import {
  answer,
  encodeJson,
  refusalAnswer,
  type SimpleError,
  simpleError,
  success,
} from "../../../handlers/http/answers.ts";
import { formatTime, type LeaseRecord } from "../../../lib/records/record.ts";
import type { Refusal } from "../../../lib/lease/rules.ts";

const NOW = Date.UTC(2026, 0, 1);
const holder: LeaseRecord = {
  kind: "migration",
  operationId: "op-1",
  instance: "tenant",
  expiresAt: formatTime(NOW + 12_300),
  topologyGeneration: 7,
  namespace: "app-ns",
  serviceAccount: "deployer",
  tokenHash: "f".repeat(64),
  createdAt: formatTime(NOW),
  state: "active",
};

async function shown(response: Response) {
  assert.equal(response.headers.get("Content-Type"), "application/json");
  assert.equal(response.headers.get("Cache-Control"), "no-store");
  return { status: response.status, body: await response.text() };
}

Deno.test("five characters are escaped as the reference's encoder does", () => {
  assert.equal(
    encodeJson({ a: '<&>\u2028\u2029"' }),
    '{"a":"\\u003c\\u0026\\u003e\\u2028\\u2029\\""}\n',
  );
});

Deno.test("a success has its members in alphabetical order, at every depth", async () => {
  const body = { b: { d: 1, c: [{ f: 2, e: null }] }, a: true };
  assert.deepEqual(await shown(success(200, body)), {
    status: 200,
    body: '{"a":true,"b":{"c":[{"e":null,"f":2}],"d":1}}\n',
  });
});

Deno.test("204 has no body and all headers", async () => {
  assert.deepEqual(await shown(answer(204, null)), { status: 204, body: "" });
});

Deno.test("each simple error is its status and its name", async () => {
  const statuses: Readonly<Record<SimpleError, number>> = {
    invalid_request: 400,
    unauthorized: 401,
    forbidden: 403,
    not_found: 404,
    method_not_allowed: 405,
    request_too_large: 413,
    not_leader: 503,
    unavailable: 503,
  };
  for (const [name, status] of Object.entries(statuses) as [SimpleError, number][]) {
    const response = simpleError(name);
    assert.equal(response.headers.get("Retry-After"), status === 503 ? "1" : null);
    assert.equal(response.headers.get("Connection"), name === "not_leader" ? "close" : null);
    assert.deepEqual(await shown(response), { status, body: `{"error":"${name}"}\n` });
  }
});

Deno.test("a refusal is its row of the contract, with when to come back (difference 16)", async () => {
  const rows: readonly [Refusal, number, string, string | null][] = [
    [{ type: "forbidden" }, 403, '{"error":"forbidden"}', null],
    [{ type: "token_mismatch" }, 403, '{"error":"token_mismatch"}', null],
    [{ type: "not_found" }, 404, '{"error":"not_found"}', null],
    [{ type: "unavailable" }, 503, '{"error":"unavailable"}', "1"],
    [
      { type: "held", by: holder },
      409,
      `{"error":"held","holder":{"expiresAt":"${holder.expiresAt}","instance":"tenant","operationId":"op-1"}}`,
      "13",
    ],
    [
      { type: "revoked", reason: "topology_changed", generation: 8 },
      409,
      '{"error":"revoked","reason":"topology_changed","topologyGeneration":8}',
      null,
    ],
    [
      { type: "revoked", reason: "operator_revoked", generation: 0 },
      409,
      '{"error":"revoked","reason":"operator_revoked"}',
      null,
    ],
    [
      { type: "unstable", reason: "NoPrimary" },
      423,
      '{"error":"unstable","reason":"NoPrimary","retryAfterSeconds":1}',
      "1",
    ],
  ];
  for (const [refusal, status, body, retryAfter] of rows) {
    const response = refusalAnswer(refusal, NOW);
    assert.equal(response.headers.get("Retry-After"), retryAfter);
    assert.deepEqual(await shown(response), { status, body: body + "\n" });
  }
});

Deno.test("a holder whose time is over is worth a try in a second", () => {
  const response = refusalAnswer({ type: "held", by: holder }, NOW + 60_000);
  assert.equal(response.headers.get("Retry-After"), "1");
});
