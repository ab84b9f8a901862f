import assert from "node:assert/strict";
import fc from "fast-check";
import { compareVersions, isRewound } from "../../lib/kube/versions.ts";

const version = fc.bigInt({ min: 1n, max: 2n ** 64n - 1n });

Deno.test("versions are in the order of their numbers, over all 64 bits", () => {
  fc.assert(fc.property(version, version, (a, b) => {
    const order = compareVersions(`${a}`, `${b}`);
    assert.equal(Math.sign(order ?? NaN), a < b ? -1 : a > b ? 1 : 0);
    assert.equal(isRewound(`${a}`, `${b}`), a < b);
  }));
});

Deno.test("neighbours beyond 2^53 are told apart", () => {
  assert.equal(isRewound("9007199254740992", "9007199254740993"), true);
  assert.equal(isRewound("9007199254740993", "9007199254740992"), false);
});

Deno.test("a text that is no number cannot be compared, and is never a sign of going back", () => {
  for (const odd of ["", "0", "01", "-1", "1.5", "1e3", "x", "१"]) {
    assert.equal(compareVersions(odd, "5"), null);
    assert.equal(compareVersions("5", odd), null);
    assert.equal(isRewound(odd, "5"), false);
    assert.equal(isRewound("5", odd), false);
  }
});
