import assert from "node:assert/strict";
import fc from "fast-check";
import {
  formatSample,
  longestGapMs,
  overlaps,
  parseSample,
  type Reign,
  reignsOf,
  type Sample,
} from "./beliefs.ts";

const at = (ms: number, token: string | null): Sample => ({
  beforeMs: ms,
  afterMs: ms + 1,
  token,
});

const reign = (process: string, fromMs: number, toMs: number): Reign => ({
  process,
  token: String(fromMs),
  fromMs,
  toMs,
});

Deno.test("a sample is read as it was written, and what is none is refused", () => {
  const time = fc.double({ min: 0, max: 2e12, noNaN: true }).map((ms) => Number(ms.toFixed(3)));
  const token = fc.oneof(fc.constant(null), fc.bigInt({ min: 1n, max: 2n ** 63n }).map(String));
  fc.assert(fc.property(time, time, token, (beforeMs, afterMs, token) => {
    const sample = { beforeMs, afterMs, token };
    assert.deepEqual(parseSample(formatSample(sample)), sample);
  }));
  for (const line of ["", "1 2", "1 2 x", "1 2 3 4"]) assert.throws(() => parseSample(line));
});

Deno.test("a term was believed in from after its first yes to before its last", () => {
  const samples = new Map([
    ["a", [at(0, null), at(10, "5"), at(20, "5"), at(30, null), at(70, "9")]],
    ["b", [at(40, "7"), at(50, "7")]],
  ]);
  assert.deepEqual(reignsOf(samples), [
    { process: "a", token: "5", fromMs: 11, toMs: 20 },
    { process: "b", token: "7", fromMs: 41, toMs: 50 },
    { process: "a", token: "9", fromMs: 71, toMs: 71 },
  ]);
});

Deno.test("planted leaders of the same time are found, in whatever way they overlap", () => {
  const first = reign("a", 10, 30);
  const two = [reign("b", 20, 40), reign("b", 15, 20), reign("b", 30, 31), reign("b", 10, 30)];
  for (const second of two) assert.equal(overlaps([first, second]).length, 1);
  assert.deepEqual(overlaps([first, reign("b", 31, 40), reign("c", 41, 41)]), []);
});

Deno.test("the longest time without a leader is that between terms, also with one inside another", () => {
  assert.equal(longestGapMs([reign("a", 0, 100), reign("b", 10, 20), reign("c", 130, 140)]), 30);
  assert.equal(longestGapMs([reign("a", 0, 100)]), 0);
  assert.equal(longestGapMs([]), 0);
});
