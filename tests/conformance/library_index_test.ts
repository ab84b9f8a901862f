/** docs/library-conformance.md against the tests: each item has tests, and each of them exists. */

import assert from "node:assert/strict";
import { readShared } from "../checks/text.ts";
import { itemsIn, pageFaults } from "./index_page.ts";

const PAGE = "docs/library-conformance.md";
/** How many behaviours of kubernetes-plugin 16, and what we ask for beyond it. */
const ITEMS = 178;
/** The parts of kubernetes-plugin 16, and ours behind them. */
const PARTS = [
  "Policy",
  "Configuration",
  "Identity of the pod",
  "Client and errors",
  "Events",
  "Metrics",
  "Health",
  "ConfigMaps",
  "Leader",
  "Plugin",
  "Manifests",
  "Load",
  "One contract for the server in memory and the real one",
  "Real API server",
  "Beyond the contract",
  "Bad input",
];

Deno.test("docs/library-conformance.md lists every item with tests that exist", async () => {
  const sources = await readShared();
  const page = sources.get(PAGE) ?? "";
  assert.deepEqual([...page.matchAll(/^## (.+)$/gm)].map(([, part]) => part), PARTS);
  assert.deepEqual(pageFaults(itemsIn(page), sources, ITEMS), []);
});

Deno.test("a test that is renamed, and an item that is lost, are seen", async () => {
  const sources = new Map(await readShared());
  const page = sources.get(PAGE) ?? "";
  const items = itemsIn(page);
  const file = "tests/election/policy_test.ts";
  sources.set(file, (sources.get(file) ?? "").replace('"the decision table"', '"the table"'));
  const faults = pageFaults(items.filter(({ number }) => number !== ITEMS), sources, ITEMS);
  assert.equal(faults.length, 2);
  assert.match(faults[0] ?? "", /^item 178 is there 0 times$/);
  assert.match(faults[1] ?? "", /^item 4: .*policy_test\.ts has no test "the decision table"$/);
});
