/**
 * Counts of a test run, from the report that the runner writes.
 *
 * @module
 */

/** How many tests did what. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A run of nothing. */
export const NO_TESTS: Counts = { passed: 0, failed: 0, skipped: 0 };

const ENTITIES: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&apos;": "'",
  "&amp;": "&",
};

/**
 * Counts the tests in a JUnit report of `deno test`. The steps of a test are a part of it and are not counted again.
 *
 * @throws {Error} It is no whole report: the runner was cut off while it wrote.
 */
export function countJunit(report: string): Counts {
  if (!/<\/testsuites>\s*$/.test(report)) {
    throw new Error("Cannot count the tests as the report has no end");
  }
  let counts = NO_TESTS;
  for (const [, suite = ""] of report.matchAll(/<testsuite [^>]*>(.*?)<\/testsuite>/gs)) {
    const cases = [...suite.matchAll(/<testcase name="([^"]*)"[^>]*?(?:\/>|>(.*?)<\/testcase>)/gs)]
      .map(([, name = "", body = ""]) => ({ name: unescape(name), body }));
    const names = new Set(cases.map(({ name }) => name));
    for (const { name, body } of cases) {
      if (!isStep(name, names)) counts = addCounts(counts, outcomeOf(body));
    }
  }
  return counts;
}

/** Adds the counts of two runs. */
export function addCounts(a: Counts, b: Counts): Counts {
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
  };
}

/** The line that ends a run: `2 passed, 0 failed`, and `, 1 skipped` when there are any. */
export function closingLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
}

function outcomeOf(body: string): Counts {
  if (/<(failure|error)[\s>/]/.test(body)) return { ...NO_TESTS, failed: 1 };
  if (/<skipped[\s>/]/.test(body)) return { ...NO_TESTS, skipped: 1 };
  return { ...NO_TESTS, passed: 1 };
}

/** A step is called `TEST > STEP`; a test may have ` > ` in its own name too, but then there is no `TEST` beside it. */
function isStep(name: string, names: ReadonlySet<string>): boolean {
  for (let at = name.indexOf(" > "); at !== -1; at = name.indexOf(" > ", at + 1)) {
    if (names.has(name.slice(0, at))) return true;
  }
  return false;
}

function unescape(text: string): string {
  return text.replace(/&\w+;/g, (entity) => ENTITIES[entity] ?? entity);
}
