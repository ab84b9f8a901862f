import assert from "node:assert/strict";
import fc from "fast-check";
import { bearerToken, MAX_TOKEN_BYTES } from "../../lib/auth/bearer.ts";

Deno.test("deploy-api 16 item 19: a well-formed header gives its token, in any case of the scheme", () => {
  for (const header of ["Bearer t", "bearer t", "BEARER t", "bEaReR   t", "  Bearer\tt  "]) {
    assert.equal(bearerToken(header), "t", header);
  }
});

Deno.test("deploy-api 16 item 19: any other header gives none", () => {
  const bad = [
    undefined,
    null,
    "",
    " ",
    "Bearer",
    "Bearer ",
    "Basic dTpw",
    "t",
    "Bearer a b",
    "Bearer a, Bearer b",
    "Bearer: t",
    "Bearert",
  ];
  for (const header of bad) assert.equal(bearerToken(header), null, `${header}`);
});

Deno.test("deploy-api 16 item 19: a token of 16384 bytes is taken and one more is not", () => {
  const longest = "t".repeat(MAX_TOKEN_BYTES);
  assert.equal(MAX_TOKEN_BYTES, 16_384);
  assert.equal(bearerToken(`Bearer ${longest}`), longest);
  assert.equal(bearerToken(`Bearer ${longest}t`), null);
});

Deno.test("whatever the header, a token has no space in it and stands in the header", () => {
  fc.assert(fc.property(fc.string({ unit: "binary-ascii" }), (text) => {
    for (const header of [text, `Bearer ${text}`]) {
      const token = bearerToken(header);
      if (token === null) continue;
      assert.match(token, /^\S+$/);
      assert.ok(header.includes(token));
    }
  }));
});
