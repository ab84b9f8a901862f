/** docs/conformance.md against the tests: neither says what the other does not. And each difference has its test. */

import assert from "node:assert/strict";
import type { SourceTexts } from "../checks/syntax.ts";
import { readShared } from "../checks/text.ts";
import { itemsIn, pageFaults } from "./index_page.ts";

/** How many items deploy-api 16 has. */
const ITEMS = 70;
/** How many differences the index of docs lists. */
const DIFFERENCES = 27;
const PAGE = "docs/conformance.md";
const THIS = "tests/conformance/conformance_index_test.ts";

/** The tests whose names say which items they are about, and those items. */
function claimsIn(file: string, source: string): { name: string; numbers: number[] }[] {
  const names = source.matchAll(
    /(["`])((?:deploy-api 16 )?items? (\d+)(?: (to|and) (\d+))?\b.*?)\1/g,
  );
  return file === THIS ? [] : [...names].map(([, , name = "", from, word, to]) => {
    const [first, last] = [Number(from), Number(to ?? from)];
    const all = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    return { name, numbers: word === "and" ? [first, last] : all };
  });
}

/** What is wrong between the page and the tests. */
function faultsOf(page: string, sources: SourceTexts, count: number): string[] {
  const items = itemsIn(page);
  const faults = pageFaults(items, sources, count);
  for (const [file, source] of sources) {
    if (!/^tests\/.*_test\.ts$/.test(file)) continue;
    for (const { name, numbers } of claimsIn(file, source)) {
      for (const number of numbers) {
        const listed = items.find((item) => item.number === number)?.tests ?? [];
        const isListed = listed.some((test) => test.file === file && test.name === name);
        if (!isListed) faults.push(`item ${number} does not list ${file}: "${name}"`);
      }
    }
  }
  return faults;
}

Deno.test("docs/conformance.md lists every item with tests that exist, and every test that names an item", async () => {
  const sources = await readShared();
  assert.deepEqual(faultsOf(sources.get(PAGE) ?? "", sources, ITEMS), []);
});

/** The differences that no test names. */
function untestedDifferences(sources: SourceTexts): number[] {
  const named = new Set<number>();
  for (const [file, source] of sources) {
    if (file === THIS || !/^tests\/.*_test\.ts$/.test(file)) continue;
    for (
      const [, , name = ""] of source.matchAll(/(["`])((?:[^"`\n]*\W)?difference \d+\b.*?)\1/g)
    ) {
      for (const [, number] of name.matchAll(/\bdifference (\d+)\b/g)) named.add(Number(number));
    }
  }
  const all = Array.from({ length: DIFFERENCES }, (_, at) => at + 1);
  return all.filter((number) => !named.has(number));
}

Deno.test("every difference has a test of its name", async () => {
  assert.deepEqual(untestedDifferences(await readShared()), []);
});

Deno.test("a difference that is named in a comment alone, or in no test, is seen", () => {
  const named = Array.from(
    { length: DIFFERENCES - 2 },
    (_, at) => `Deno.test("item 1, difference ${at + 1}: it differs", () => {});`,
  );
  const source = `${named.join("\n")}\n// difference 26: it differs`;
  assert.deepEqual(untestedDifferences(new Map([[ONE, source]])), [26, 27]);
});

const ONE = "tests/one_test.ts";
const page = (...items: readonly string[]) => `# Page\n\n## Part\n\n${items.join("\n")}\n`;
const first = `1. One thing.\n   - [${ONE}](../${ONE}): "item 1: one\n     thing"`;
const second = "2. Another.\n   - Left to part F: it is not there yet.\n\n## Next part\n";
const sources = new Map([[ONE, 'Deno.test("item 1: one thing", () => {});']]);

Deno.test("a page and tests that agree have no fault", () => {
  assert.deepEqual(faultsOf(page(first, second), sources, 2), []);
});

Deno.test("planted faults are seen: lost items and tests, unlisted claims, reasons that are none", () => {
  const withMore = (text: string) => new Map([[ONE, `${sources.get(ONE)} ${text}`]]);
  const planted: readonly (readonly [string, string, SourceTexts])[] = [
    ["item 2 is there 0 times", page(first), sources],
    ["item 1 is there 2 times", page(first, first, second), sources],
    ["item 3 is none of the contract's", page(first, second, second.replace("2", "3")), sources],
    [
      "item 2 has no test and does not say why",
      page(first, second.replace("Left to", "Perhaps")),
      sources,
    ],
    [
      `item 1: ${ONE} has no test "item 1: one thing"`,
      page(first, second),
      new Map([[ONE, 'Deno.test("one thing", () => {});']]),
    ],
    [
      `item 1: not a link to a test and its name: [${ONE}](${ONE}): "item 1: one thing"`,
      page(first.replace("../", ""), second.replace("2. Another.", first.replace("1.", "2."))),
      sources,
    ],
    [
      `item 2 does not list ${ONE}: "deploy-api 16 items 1 and 2: both"`,
      page(first, second),
      withMore('Deno.test("deploy-api 16 items 1 and 2: both", () => {});'),
    ],
    [
      `item 2 does not list ${ONE}: "items 1 to 2: \${what}"`,
      page(first, second),
      withMore("Deno.test(`items 1 to 2: ${what}`, () => {});"),
    ],
  ];
  for (const [fault, text, tests] of planted) {
    const found = faultsOf(text, tests, 2);
    assert.ok(found.includes(fault), `${fault} is not among\n${found.join("\n")}`);
  }
});
