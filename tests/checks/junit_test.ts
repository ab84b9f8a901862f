import assert from "node:assert/strict";
import { addCounts, closingLine, countJunit } from "./junit.ts";

function report(...cases: readonly string[]): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="1" failures="0" errors="0" time="0.1">
    <testsuite name="./tests/a_test.ts" tests="1" disabled="0" errors="0" failures="0">
        ${cases.join("\n        ")}
    </testsuite>
</testsuites>
`;
}

const PASSED =
  `<testcase name="a" classname="x" time="0.001" line="2" col="6">\n        </testcase>`;
const FAILED =
  `<testcase name="b &lt;x&gt;" classname="x"><failure message="m">at b</failure></testcase>`;
const CANCELLED = `<testcase name="c" classname="x"><error message="Cancelled"/></testcase>`;
const IGNORED = `<testcase name="d" classname="x"><skipped/></testcase>`;

Deno.test("passed, failed, cancelled and ignored tests are told apart", () => {
  assert.deepEqual(countJunit(report(PASSED, FAILED, CANCELLED, IGNORED)), {
    passed: 1,
    failed: 2,
    skipped: 1,
  });
});

Deno.test("a step is counted with its test and not again", () => {
  const step = `<testcase name="a &gt; inner" classname="x"></testcase>`;
  const failedStep = `<testcase name="a &gt; b &gt; c"><failure message="m"/></testcase>`;
  assert.deepEqual(countJunit(report(PASSED, step, failedStep)).passed, 1);
  assert.deepEqual(countJunit(report(step)).passed, 1, "a test may have ' > ' in its name");
});

Deno.test("what a test says of itself in its failure is not taken for a test", () => {
  const talks =
    `<testcase name="a"><failure message="m">&lt;testcase name="x"/&gt; &lt;skipped/&gt;` +
    `</failure></testcase>`;
  assert.deepEqual(countJunit(report(talks)), { passed: 0, failed: 1, skipped: 0 });
});

Deno.test("a report that was cut off is refused and not counted as green", () => {
  const whole = report(PASSED, PASSED);
  for (const length of [0, 40, Math.floor(whole.length / 2), whole.length - 5]) {
    assert.throws(() => countJunit(whole.slice(0, length)), /no end/);
  }
});

Deno.test("the closing line adds runs and tells of skipped tests only when there are any", () => {
  const a = { passed: 3, failed: 1, skipped: 0 };
  assert.equal(closingLine(a), "3 passed, 1 failed");
  assert.equal(
    closingLine(addCounts(a, { passed: 1, failed: 0, skipped: 2 })),
    "4 passed, 1 failed, 2 skipped",
  );
});
