import assert from "node:assert/strict";
import { readShared, textOffences } from "./text.ts";

/** Put together from parts, so that the check of the real files does not find the planted ones. */
const PLANTED: readonly string[] = [
  ["cd ", "work", "main"].join("/"),
  ["see ", "home", "ada", "x"].join("/"),
  [`"`, "root", ".cache"].join("/"),
  ["file://", "Users", "ada", "x"].join("/"),
  `https://${["registry", "npmjs", "org"].join(".")}/zod`,
  `"${["jsr", "io"].join(".")}"`,
  `GOPROXY=https://${["proxy", "golang", "org"].join(".")},direct`,
  `// ${"@ts"}-ignore`,
  `// ${"@ts"}-expect-error: later`,
  `// ${["deno", "lint", "ignore"].join("-")} no-explicit-any`,
  `/* ${["eslint", "disable"].join("-")} */`,
];

const ALLOWED: readonly string[] = [
  "npm:zod@4.6.7 and k8s.io/api and registry.k8s.io/pause:3.10",
  "the work/main folder, /var/run/secrets, /tmp/holdfast.env, $HOME/work/x, ~/work/x",
  "/apis/coordination.k8s.io/v1/namespaces/x/leases",
  "import pypi.organized",
];

Deno.test("every planted path, host and switched-off check is found on its line", () => {
  for (const line of PLANTED) {
    const found = textOffences(new Map([["lib/x.ts", `first\n${line}\nlast`]]));
    assert.deepEqual(found.map((offence) => offence.line), [2], line);
  }
});

Deno.test("what only looks like a path of a machine or a registry is let through", () => {
  for (const line of ALLOWED) {
    assert.deepEqual(textOffences(new Map([["docs/x.md", line]])), [], line);
  }
});

Deno.test("a document may tell of a comment that switches a check off", () => {
  const line = `Never write ${["deno", "lint", "ignore"].join("-")}`;
  assert.deepEqual(textOffences(new Map([["CONTRIBUTING.md", line]])), []);
});

Deno.test("no shared file names a path of a machine, a registry host, or switches a check off", async () => {
  const texts = await readShared();
  assert.ok(
    texts.has("deno.json") && texts.has("tests/checks/text.ts"),
    "the files were not found",
  );
  assert.deepEqual(textOffences(texts), []);
});
