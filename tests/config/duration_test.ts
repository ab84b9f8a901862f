import assert from "node:assert/strict";
import fc from "fast-check";
import { formatDuration, parseDuration } from "../../lib/config/duration.ts";

Deno.test("a duration is read in every unit, and in several at once", () => {
  const table: readonly (readonly [string, number])[] = [
    ["0", 0],
    ["0s", 0],
    ["10s", 10_000],
    ["24h", 86_400_000],
    ["1m30s", 90_000],
    ["1h2m3s4ms", 3_723_004],
    ["1.5s", 1_500],
    ["1.s", 1_000],
    [".5s", 500],
    ["4.35s", 4_350],
    ["2000us", 2],
    ["2000µs", 2],
    ["2000μs", 2],
    ["3000000ns", 3],
    ["500us500us", 1],
    ["1s1s", 2_000],
    ["9007199254740991ms", Number.MAX_SAFE_INTEGER],
  ];
  for (const [text, expected] of table) assert.equal(parseDuration(text), expected, text);
});

Deno.test("a text that is no whole number of milliseconds is no duration", () => {
  const table = [
    "",
    "10",
    "s",
    "-1s",
    "+1s",
    " 1s",
    "1s ",
    "1 s",
    "1d",
    "1S",
    "1,5s",
    ".s",
    "1e3s",
    "0x1s",
    "1s!",
    "!1s",
    "1ns",
    "1.5ms",
    "0.0001ms",
    "0.00000000001h",
    "9007199254740992ms",
    `${"9".repeat(63)}h`,
    `${"1s".repeat(40)}`,
    "Infinitys",
    "1s\n",
  ];
  for (const text of table) assert.equal(parseDuration(text), undefined, JSON.stringify(text));
});

Deno.test("what is written for a duration is read as the same duration", () => {
  fc.assert(fc.property(fc.maxSafeNat(), (milliseconds) => {
    assert.equal(parseDuration(formatDuration(milliseconds)), milliseconds);
  }));
});

Deno.test("any text is either a duration of whole milliseconds or none, and never an error", () => {
  const parts = fc.array(fc.constantFrom("1", "0", ".", "h", "m", "s", "ms", "ns", "-", "9999"));
  fc.assert(fc.property(fc.oneof(fc.string(), parts.map((all) => all.join(""))), (text) => {
    const value = parseDuration(text);
    assert(value === undefined || (Number.isSafeInteger(value) && value >= 0));
  }));
});

Deno.test("a duration is written in its shortest form", () => {
  assert.equal(formatDuration(0), "0s");
  assert.equal(formatDuration(86_400_000), "24h");
  assert.equal(formatDuration(90_250), "1m30s250ms");
});
