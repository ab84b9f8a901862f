import assert from "node:assert/strict";
import fc from "fast-check";
import { escrowBearer, readToken, tokenMatches } from "../../lib/escrow/token.ts";
import { OTHER_TOKEN, TOKEN } from "./support.ts";

Deno.test("the scheme counts in any case, and the rest of the header is trimmed", () => {
  for (const header of [`Bearer ${TOKEN}`, `bearer   ${TOKEN}  `, `  BEARER\t${TOKEN}`]) {
    assert.equal(escrowBearer(header), TOKEN);
  }
  for (
    const header of [null, "", "Bearer", "Bearer  ", `Basic ${TOKEN}`, TOKEN, `Bearer${TOKEN}`]
  ) {
    assert.equal(escrowBearer(header), null);
  }
});

Deno.test("only 64 hexadecimal digits are a token of a site, so an empty Secret lets nobody in", () => {
  assert.equal(readToken(btoa(TOKEN)), TOKEN);
  assert.equal(readToken(btoa(`${TOKEN}\n`)), TOKEN);
  for (const text of ["", "x", `${TOKEN}0`, "g".repeat(64)]) {
    assert.equal(readToken(btoa(text)), null);
  }
  assert.equal(readToken(undefined), null);
  assert.equal(readToken("no base64"), null);
});

Deno.test("a token matches itself alone, and nothing matches a site that does not exist", () => {
  const hex = fc.stringMatching(/^[0-9a-f]{64}$/);
  fc.assert(fc.property(hex, hex, (a, b) => {
    assert.equal(tokenMatches(a, b), a === b);
    assert.equal(tokenMatches(a, a), true);
    assert.equal(tokenMatches(a, null), false);
  }));
  assert.equal(tokenMatches("", null), false);
  assert.equal(tokenMatches(TOKEN.slice(0, 63), TOKEN), false);
  assert.equal(tokenMatches(OTHER_TOKEN, TOKEN), false);
});
