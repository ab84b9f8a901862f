import assert from "node:assert/strict";
import fc from "fast-check";
import { EXPIRY_LEEWAY_MS, refusedByOwnClaims } from "../../lib/auth/token_claims.ts";
import { TEST_EPOCH_MS } from "../../lib/testing/test_clock.ts";
import { jwt } from "./tokens.ts";

const AUDIENCE = "bloodraven-deploy";
const NOW_SECONDS = TEST_EPOCH_MS / 1000;

const refused = (claims: unknown, wallMs = TEST_EPOCH_MS) =>
  refusedByOwnClaims(jwt(claims), AUDIENCE, wallMs);

Deno.test("a token for us that has not expired is left to the review", () => {
  assert.equal(refused({ aud: [AUDIENCE], exp: NOW_SECONDS + 600 }), false);
  assert.equal(refused({ aud: AUDIENCE, exp: NOW_SECONDS + 600 }), false);
  assert.equal(refused({ aud: ["other", AUDIENCE] }), false);
});

Deno.test("a token for others is refused", () => {
  assert.equal(refused({ aud: ["https://kubernetes.default.svc"] }), true);
  assert.equal(refused({ aud: "other" }), true);
  assert.equal(refused({ aud: `${AUDIENCE}-2` }), true);
});

Deno.test("an expired token is refused, with a minute for a wrong clock of this machine", () => {
  const exp = NOW_SECONDS;
  assert.equal(refused({ aud: AUDIENCE, exp }, exp * 1000 + EXPIRY_LEEWAY_MS - 1), false);
  assert.equal(refused({ aud: AUDIENCE, exp }, exp * 1000 + EXPIRY_LEEWAY_MS), true);
  assert.equal(refused({ aud: AUDIENCE, exp: 0 }), true);
});

Deno.test("what says nothing of itself is left to the review", () => {
  const claims = [{}, { aud: [] }, { aud: 7 }, { aud: [7] }, { exp: "0" }, { exp: null }, 7, null];
  for (const value of claims) assert.equal(refused(value), false, JSON.stringify(value));
  const noJwt = ["", "opaque", "a.b", "a.b.c", "a.!!.c", "..", "a.b.c.d.e", "a.e30=.c.", "a.gA.c"];
  for (const token of noJwt) {
    assert.equal(refusedByOwnClaims(token, AUDIENCE, TEST_EPOCH_MS), false, token);
  }
});

Deno.test("one claim that cannot be read does not hide the other", () => {
  assert.equal(refused({ aud: 7, exp: 0 }), true);
  assert.equal(refused({ aud: "other", exp: "soon" }), true);
});

Deno.test("no text makes it fail, and only a JWT is ever refused", () => {
  const part = fc.oneof(
    fc.string({ unit: "binary-ascii" }),
    fc.json().map((json) => new TextEncoder().encode(json).toBase64({ alphabet: "base64url" })),
  );
  fc.assert(fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
    const token = parts.join(".");
    const verdict = refusedByOwnClaims(token, AUDIENCE, TEST_EPOCH_MS);
    if (token.split(".").length !== 3) assert.equal(verdict, false);
  }));
});

Deno.test("a token that lists our audience and lives is never refused", () => {
  const life = fc.integer({ min: NOW_SECONDS - 59, max: NOW_SECONDS + 1e9 });
  fc.assert(
    fc.property(fc.array(fc.string()), fc.array(fc.string()), life, (before, after, exp) => {
      assert.equal(refused({ aud: [...before, AUDIENCE, ...after], exp }), false);
    }),
  );
});
