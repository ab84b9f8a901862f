import assert from "node:assert/strict";
import { callerFindings } from "../../lib/doctor/caller_rules.ts";
import { clusterFindings } from "../../lib/doctor/cluster_rules.ts";
import { diagnosis } from "../../lib/doctor/finding.ts";
import { healthyCaller, healthyCluster } from "./facts.ts";

const page = await Deno.readTextFile(new URL("../../docs/doctor.md", import.meta.url));

/** The words in code of the first column of the table under a heading. */
function firstColumn(heading: string): string[] {
  const [, rest = ""] = page.split(`\n## ${heading}\n`);
  const [section = ""] = rest.split("\n## ");
  return [...section.matchAll(/^\| (`[^|]*)\|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word)
  );
}

Deno.test("docs/doctor.md lists every check of a deployment client, in its order", () => {
  const checks = callerFindings(healthyCaller).map(({ check }) => check);
  assert.deepEqual(firstColumn("Checks of a deployment client"), checks);
});

Deno.test("docs/doctor.md lists every check of an administrator", () => {
  const listed = firstColumn("Checks of an administrator");
  const known = (check: string) =>
    listed.includes(check) || /^(rights|client|network|sidecar-trust)-/.test(check);
  for (const { check } of clusterFindings(healthyCluster)) assert(known(check), check);
});

Deno.test("docs/doctor.md lists every member of the JSON", () => {
  assert.deepEqual(firstColumn("JSON"), Object.keys(diagnosis("api", 0, [])));
});
