import assert from "node:assert/strict";
import fc from "fast-check";
import {
  isOperationId,
  MAX_BODY_BYTES,
  readGrantBody,
  readRenewBody,
} from "../../../handlers/http/deploy_body.ts";

const grantBody = { kind: "migration", operationId: "op-1", instance: "tenant", ttlSeconds: 30 };

function post(body: BodyInit | null): Request {
  return new Request("https://localhost/", { method: "POST", body });
}

const readGrant = (body: BodyInit | null) => readGrantBody(post(body));
const readRenew = (body: BodyInit | null) => readRenewBody(post(body));

Deno.test("a grant's body is read", async () => {
  assert.deepEqual(await readGrant(JSON.stringify(grantBody)), { type: "ok", value: grantBody });
});

Deno.test("a member that is null counts as left out", async () => {
  const body = await readGrant(JSON.stringify({ ...grantBody, ttlSeconds: null }));
  assert.deepEqual(body, { type: "ok", value: { ...grantBody, ttlSeconds: undefined } });
});

for (
  const [what, body] of Object.entries({
    "an empty body": "",
    "no body": null,
    "null": "null",
    "an array": "[]",
    "a scalar": "7",
    "malformed JSON": '{"kind":',
    "an unknown member": JSON.stringify({ ...grantBody, extra: 1 }),
    "a member in another case": '{"Kind":"migration","operationId":"op","instance":"tenant"}',
    "a second value": JSON.stringify(grantBody) + "{}",
    "a trailing null": JSON.stringify(grantBody) + " null",
    "a ttl as text": JSON.stringify({ ...grantBody, ttlSeconds: "30" }),
    "a ttl with a fraction": JSON.stringify({ ...grantBody, ttlSeconds: 1.5 }),
    "a ttl beyond all integers": `{"kind":"migration","ttlSeconds":1e400}`,
    "an unknown kind": JSON.stringify({ ...grantBody, kind: "lock" }),
    "an instance in capitals": JSON.stringify({ ...grantBody, instance: "Tenant" }),
    "an empty operation": JSON.stringify({ ...grantBody, operationId: "" }),
    "an operation of 129 bytes": JSON.stringify({
      ...grantBody,
      operationId: "ä".repeat(64) + "x",
    }),
  })
) {
  Deno.test(`a grant with ${what} is an invalid request`, async () => {
    assert.equal((await readGrant(body)).type, "invalid_request");
  });
}

Deno.test("an operation id of 128 bytes is the longest", () => {
  assert.equal(isOperationId("ä".repeat(64)), true);
  assert.equal(isOperationId("x".repeat(129)), false);
});

Deno.test("difference 5: an id that no path can carry is refused", () => {
  for (const id of ["a/b", ".", "..", "", "a\u0000", "a\nb", "\u007f", "\u0085", "\ud800"]) {
    assert.equal(isOperationId(id), false, JSON.stringify(id));
  }
});

Deno.test("a body of the limit is read, and one byte more is too large, also as white space", async () => {
  const text = JSON.stringify(grantBody);
  const filled = text + " ".repeat(MAX_BODY_BYTES - text.length);
  assert.equal((await readGrant(filled)).type, "ok");
  assert.equal((await readGrant(filled + " ")).type, "request_too_large");
  assert.equal((await readRenew(" ".repeat(MAX_BODY_BYTES + 1))).type, "request_too_large");
});

Deno.test("a renewal's body is read, and null counts as an empty one", async () => {
  assert.deepEqual(await readRenew('{"token":"t","ttlSeconds":9}'), {
    type: "ok",
    value: { token: "t", ttlSeconds: 9 },
  });
  const empty = { type: "ok", value: { token: "", ttlSeconds: undefined } };
  assert.deepEqual(await readRenew("null"), empty);
  assert.deepEqual(await readRenew("{}"), empty);
  for (const body of ["", "[]", '{"token":1}', '{"Token":"t"}', '{"token":"t"} {}']) {
    assert.equal((await readRenew(body)).type, "invalid_request", body);
  }
});

Deno.test("bytes that are no UTF-8 are replaced, and do not throw", async () => {
  const bytes = new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
  assert.equal((await readGrant(bytes)).type, "invalid_request");
});

Deno.test("property: no body makes a reader throw", async () => {
  await fc.assert(fc.asyncProperty(fc.oneof(fc.json(), fc.string()), async (body) => {
    await readGrant(body);
    await readRenew(body);
  }));
});
