/**
 * What is run against each version of Kubernetes.
 *
 * @module
 */

import { pathOf, ROOT } from "../checks/shell.ts";
import { countJunit, type Counts, NO_TESTS } from "../checks/junit.ts";
import { parse, readSources } from "../checks/syntax.ts";
import { planTests, testFilesIn } from "../checks/test_plan.ts";
import { failedIn } from "./choice.ts";

/** A set of tests. */
export interface Suite {
  readonly name: string;
  /** Files and folders. Of these run the files that use a real API server. */
  readonly paths: readonly string[];
}

/** What runs. */
export const SUITES: readonly Suite[] = [
  { name: "the contract of the cluster", paths: ["tests/kube_contract"] },
  { name: "conformance", paths: ["tests/conformance"] },
  {
    name: "manifests",
    paths: ["tests/manifests", "tests/handlers/commands/manifests_service_cluster_test.ts"],
  },
  { name: "keyring escrow", paths: ["tests/escrow"] },
];

/** What a suite came to. */
export interface SuiteResult {
  readonly counts: Counts;
  /** The names of the tests that failed. */
  readonly failed: readonly string[];
  /** What the runner wrote, when something failed. */
  readonly output: string;
}

/** The files of suites that use a real API server. */
export async function filesOf(suites: readonly Suite[]): Promise<ReadonlyMap<Suite, string[]>> {
  const sources = await readSources("tests", "lib", "handlers", "main.ts");
  const syntax = parse(sources);
  const usesCluster = (file: string) => planTests(syntax, [file]).needsCluster;
  return new Map(
    suites.map((suite) => [suite, testFilesIn(sources.keys(), suite.paths).filter(usesCluster)]),
  );
}

/** Runs files against the programs in a folder. */
export async function runAgainst(
  assets: string,
  files: readonly string[],
): Promise<SuiteResult> {
  const report = await Deno.makeTempFile({ suffix: ".xml" });
  try {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        "test",
        "--allow-all",
        "--sanitize-ops",
        "--sanitize-resources",
        `--junit-path=${report}`,
        ...files,
      ],
      cwd: pathOf(ROOT),
      env: { KUBEBUILDER_ASSETS: assets, HOLDFAST_CLUSTER_TESTS: "required", NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).output();
    const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    const counts = await Deno.readTextFile(report).then(countJunit).catch(() => NO_TESTS);
    const broke = code !== 0 && counts.failed === 0;
    return {
      counts: broke ? { ...counts, failed: 1 } : counts,
      failed: broke ? ["a file that could not be run"] : failedIn(output),
      output: code === 0 ? "" : output,
    };
  } finally {
    await Deno.remove(report);
  }
}
