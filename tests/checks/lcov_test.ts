import assert from "node:assert/strict";
import fc from "fast-check";
import {
  coverageTable,
  type FileCoverage,
  halfWritten,
  judgeCoverage,
  parseLcov,
  percent,
} from "./lcov.ts";

const REPORT = `SF:/repo/lib/a.ts
FN:1,f
FNDA:1,f
FNF:1
FNH:1
BRDA:2,1,0,1
BRDA:2,1,1,0
BRF:2
BRH:1
DA:1,4
DA:2,0
LF:2
LH:1
end_of_record
SF:/repo/lib/b.ts
DA:1,1
LF:1
LH:1
end_of_record
`;

function file(name: string, hit: number, found: number): FileCoverage {
  return { file: name, lines: { hit, found }, branches: { hit, found } };
}

Deno.test("lines and branches of each file are counted from their records", () => {
  assert.deepEqual(parseLcov(REPORT, "/repo/"), [
    { file: "lib/a.ts", lines: { found: 2, hit: 1 }, branches: { found: 2, hit: 1 } },
    { file: "lib/b.ts", lines: { found: 1, hit: 1 }, branches: { found: 0, hit: 0 } },
  ]);
});

Deno.test("a file that stands in the report twice is merged", () => {
  const again = "SF:/repo/lib/a.ts\nBRDA:2,1,0,-\nBRDA:2,1,1,7\nDA:1,0\nDA:2,3\nend_of_record\n";
  assert.deepEqual(parseLcov(REPORT + again, "/repo/")[0], file("lib/a.ts", 2, 2));
});

Deno.test("a report that is not lcov is refused", () => {
  assert.throws(() => parseLcov("DA:1,1\n", "/repo/"), /unexpected line 'DA:1,1'/);
  assert.throws(() => parseLcov("SF:/repo/a.ts\nDA:1,x\n", "/repo/"), /unexpected line/);
});

Deno.test("a run passes from the bound on, and fails one line below it", () => {
  assert.deepEqual(judgeCoverage([file("lib/a.ts", 90, 100)], [], 90).faults, []);
  assert.deepEqual(judgeCoverage([file("lib/a.ts", 8996, 10000)], [], 90).faults, [
    "Cannot pass as lines must be covered to 90 %: current value is 89.9 % (8996/10000)",
    "Cannot pass as branches must be covered to 90 %: current value is 89.9 % (8996/10000)",
  ]);
});

Deno.test("branches have their own bound", () => {
  const lines = { hit: 100, found: 100 };
  const { faults } = judgeCoverage(
    [{ file: "lib/a.ts", lines, branches: { hit: 1, found: 2 } }],
    [],
    90,
  );
  assert.equal(faults.length, 1);
  assert.match(faults[0] ?? "", /branches/);
});

Deno.test("a file that no test loads, and a run that covers nothing, do not pass", () => {
  const files = [file("lib/a.ts", 10, 10)];
  assert.deepEqual(judgeCoverage(files, ["lib/a.ts", "lib/b.ts"], 90).faults, [
    "Cannot pass as no test loads lib/b.ts",
  ]);
  assert.equal(judgeCoverage([], [], 90).faults.length, 1);
});

Deno.test("the table begins with what lacks most and ends with the total", () => {
  const files = [file("lib/good.ts", 10, 10), file("lib/bad.ts", 1, 10), file("lib/so.ts", 8, 10)];
  const table = coverageTable(files, 2).map((line) => line.trim().split(/\s{2,}/)[0]);
  assert.deepEqual(table, ["worst files", "lib/bad.ts", "lib/so.ts", "all 3 files"]);
});

Deno.test("the verdict is that of all lines together, however they are spread over files", () => {
  const share = fc.nat(1000).chain((found) =>
    fc.record({ found: fc.constant(found), hit: fc.nat(found) })
  );
  fc.assert(
    fc.property(
      fc.array(share, { minLength: 1 }),
      fc.integer({ min: 1, max: 100 }),
      (all, bound) => {
        const files = all.map((lines, index) => ({
          file: `lib/${index}.ts`,
          lines,
          branches: lines,
        }));
        const found = all.reduce((total, one) => total + one.found, 0);
        const hit = all.reduce((total, one) => total + one.hit, 0);
        const passes = found > 0 && percent({ found, hit }) >= bound;
        assert.equal(judgeCoverage(files, [], bound).faults.length === 0, passes);
      },
    ),
  );
});

Deno.test("data that a killed process did not write to its end are told from other faults", () => {
  const said = (cause: string) =>
    `error: Failed reading '/x/coverage/data/a-1.json'\n\nCaused by:\n    ${cause}\n`;
  const empty = "EOF while parsing a value at line 1 column 0";
  assert.equal(halfWritten(said(empty)), "/x/coverage/data/a-1.json");
  assert.equal(
    halfWritten(said("EOF while parsing a string at line 1 column 812")),
    "/x/coverage/data/a-1.json",
  );
  assert.equal(halfWritten(said("expected value at line 1 column 1")), null);
  assert.equal(halfWritten("error: No covered files included in the report"), null);
});
