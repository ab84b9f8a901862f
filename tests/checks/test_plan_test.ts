import assert from "node:assert/strict";
import fc from "fast-check";
import { parse } from "./syntax.ts";
import { planTests, selectTests, spread, testFilesIn } from "./test_plan.ts";

const FILES: Readonly<Record<string, string>> = {
  "tests/lease/rules_test.ts": `import { decide } from "../../lib/lease/rules.ts"; decide();`,
  "tests/kube/real_test.ts": `import { start } from "../helpers.ts"; start();`,
  "tests/kube/types_test.ts": `import type { Cluster } from "../cluster/cluster.ts";`,
  "tests/main_test.ts": `new Deno.Command(Deno.execPath());`,
  "tests/node_test.ts": `import { spawn } from "node:child_process"; spawn("x");`,
  "tests/page_test.ts": `import { chromium } from "playwright-core"; chromium;`,
  "tests/env_test.ts": `Deno.env.set("A", "b");`,
  "tests/read_env_test.ts": `Deno.env.get("A");`,
  "tests/supervisor_test.ts": `import { run } from "../lib/supervisor/run.ts"; run;`,
  "tests/checks/lint_test.ts": `new Deno.Command(Deno.execPath());`,
  "tests/helpers.ts": `export * from "./cluster/cluster.ts";`,
  "tests/cluster/cluster.ts": `export const start = () => {};`,
  "lib/lease/rules.ts": `export const decide = () => {};`,
  "lib/supervisor/run.ts": `export const run = () => new Deno.Command("x");`,
};

const plan = (...files: readonly string[]) =>
  planTests(parse(new Map(Object.entries(FILES))), files);

Deno.test("a test that shares nothing runs beside others", () => {
  for (
    const file of [
      "tests/lease/rules_test.ts",
      "tests/kube/types_test.ts",
      "tests/read_env_test.ts",
      "tests/supervisor_test.ts",
    ]
  ) {
    assert.deepEqual(plan(file), {
      sideBySide: [file],
      alone: [],
      checks: [],
      needsCluster: false,
    });
  }
});

Deno.test("a test that starts a process, or changes its own, runs alone", () => {
  for (
    const file of [
      "tests/main_test.ts",
      "tests/node_test.ts",
      "tests/page_test.ts",
      "tests/env_test.ts",
    ]
  ) {
    assert.deepEqual(plan(file), {
      sideBySide: [],
      alone: [file],
      checks: [],
      needsCluster: false,
    });
  }
});

Deno.test("a test that reaches the real API server by way of a helper runs alone and asks for it", () => {
  const file = "tests/kube/real_test.ts";
  assert.deepEqual(plan("tests/lease/rules_test.ts", file), {
    sideBySide: ["tests/lease/rules_test.ts"],
    alone: [file],
    checks: [],
    needsCluster: true,
  });
});

Deno.test("a check is told apart, whatever it starts", () => {
  const file = "tests/checks/lint_test.ts";
  const checks = [file];
  assert.deepEqual(plan(file), { sideBySide: [], alone: [], checks, needsCluster: false });
});

Deno.test("arguments are paths up to the first option", () => {
  assert.deepEqual(selectTests([]), { paths: [], options: [] });
  assert.deepEqual(selectTests(["./tests/lease/", "tests/a_test.ts", "--filter", "lease"]), {
    paths: ["tests/lease", "tests/a_test.ts"],
    options: ["--filter", "lease"],
  });
});

Deno.test("paths select whole folders and single files, and nothing that only begins alike", () => {
  const files = [...Object.keys(FILES), "tests/lease_more/x_test.ts"];
  assert.deepEqual(testFilesIn(files, ["tests/lease", "tests/main_test.ts"]), [
    "tests/lease/rules_test.ts",
    "tests/main_test.ts",
  ]);
  assert.equal(testFilesIn(files, []).length, 11);
  assert.deepEqual(testFilesIn(files, ["tests/nothing"]), []);
});

Deno.test("neighbours are spread over processes", () => {
  const files = ["a/1", "a/2", "a/3", "b/1", "b/2"];
  assert.deepEqual(spread(files, 2), [["a/1", "b/1"], ["a/2", "b/2"], ["a/3"]]);
});

Deno.test("each file runs in one process, and no process has more than it may", () => {
  const any = fc.uniqueArray(fc.string({ maxLength: 3 }), { maxLength: 40 });
  fc.assert(fc.property(any, fc.integer({ min: 1, max: 9 }), (files, size) => {
    const processes = spread(files, size);
    assert.deepEqual(processes.flat().sort(), [...files].sort());
    assert.ok(processes.every(({ length }) => length > 0 && length <= size));
  }));
});
