/**
 * `deno task test [PATH…] [OPTION…]`: runs the tests, collects what they cover, and ends with `N passed, N failed`.
 *
 * Paths are files and folders below `tests`; options go to `deno test` as they are, for example `--filter renew`.
 *
 * What a test covers in a process that it starts counts too: the process inherits `DENO_COVERAGE_DIR`. A test that clears
 * the environment of its process hands that variable on.
 *
 * @module
 */

import { BinariesError, ensureBinaries, SKIPPED_LINE } from "./cluster/binaries.ts";
import { COVERAGE_DATA, COVERAGE_FOLDER, markRun } from "./checks/coverage_data.ts";
import { addCounts, closingLine, countJunit, type Counts, NO_TESTS } from "./checks/junit.ts";
import { pathOf, print, ROOT } from "./checks/shell.ts";
import { parse, readSources } from "./checks/syntax.ts";
import { planTests, selectTests, spread, testFilesIn } from "./checks/test_plan.ts";

const ONE_FAILED: Counts = { ...NO_TESTS, failed: 1 };

/** How many files a process of a lane runs: few, so that no lane is left alone with much; more than one, since each starts anew. */
const FILES_PER_PROCESS = 4;
/** A lane for each core: with more, processes are so late that tests of time limits fail. */
const LANES = navigator.hardwareConcurrency;

const COLLECT = [`--coverage=${pathOf(COVERAGE_DATA)}`, "--coverage-raw-data-only"];
const COLLECT_CHILDREN = { DENO_COVERAGE_DIR: pathOf(COVERAGE_DATA) };

const { paths, options } = selectTests(Deno.args);
const counts = await run();
print(closingLine(counts));
Deno.exit(counts.failed === 0 ? 0 : 1);

async function run(): Promise<Counts> {
  const sources = await readSources("tests", "lib", "handlers", "main.ts");
  const files = testFilesIn(sources.keys(), paths);
  const unmatched = paths.filter((path) => testFilesIn(files, [path]).length === 0);
  if (unmatched.length > 0 || files.length === 0) {
    const at = (unmatched.length > 0 ? unmatched : ["tests"]).join(", ");
    print(`Cannot find tests at ${at}: name a file or a folder below tests`);
    return ONE_FAILED;
  }
  const plan = planTests(parse(sources), files);
  if (plan.needsCluster && !await prepareCluster()) return ONE_FAILED;

  await Deno.remove(COVERAGE_FOLDER, { recursive: true }).catch((error: unknown) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  await Deno.mkdir(COVERAGE_FOLDER, { recursive: true });
  const together = await runGroup({
    name: "side_by_side",
    files: plan.sideBySide,
    args: ["--parallel", ...COLLECT],
    env: COLLECT_CHILDREN,
  });
  const alone = spread(plan.alone, FILES_PER_PROCESS).map((files, index) => ({
    name: `alone_${index + 1}`,
    files,
    args: COLLECT,
    env: COLLECT_CHILDREN,
  }));
  const checks = { name: "checks", files: plan.checks, args: ["--parallel"], env: {} };
  const counted = await runInLanes([checks, ...alone]);
  await markRun({ complete: paths.length === 0 && options.length === 0 });
  return [together, ...counted].reduce(addCounts);
}

/** Files that one process runs. */
interface Group {
  readonly name: string;
  readonly files: readonly string[];
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Says false when the run cannot go on. Without Go the tests of the cluster skip themselves, and one line says so. */
async function prepareCluster(): Promise<boolean> {
  try {
    if (await ensureBinaries({ onProgress: print }) === null) print(SKIPPED_LINE);
    return true;
  } catch (error) {
    if (!(error instanceof BinariesError)) throw error;
    print(error.message);
    return false;
  }
}

/**
 * Runs each group in a process of its own, some of them at once: what they change of their own process is theirs. What a
 * process says is shown when it has ended, since several that speak at once cannot be read.
 */
async function runInLanes(groups: readonly Group[]): Promise<Counts[]> {
  const waiting = groups.filter(({ files }) => files.length > 0);
  const isOne = waiting.length === 1;
  const counts: Counts[] = [];
  const lane = async () => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
      counts.push(await runGroup(group, !isOne));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return counts;
}

async function runGroup({ name, files, args, env }: Group, later = false): Promise<Counts> {
  if (files.length === 0) return NO_TESTS;
  const reportUrl = new URL(`${name}.xml`, COVERAGE_FOLDER);
  const command = new Deno.Command(Deno.execPath(), {
    args: [
      "test",
      "--allow-all",
      "--sanitize-ops",
      "--sanitize-resources",
      `--junit-path=${pathOf(reportUrl)}`,
      ...args,
      ...options,
      ...files,
    ],
    cwd: ROOT,
    env,
    stdin: "null",
    stdout: later ? "piped" : "inherit",
    stderr: later ? "piped" : "inherit",
  });
  const { code } = later ? showLater(await command.output()) : await command.spawn().status;
  const counted = await readCounts(reportUrl, code);
  // A module that fails while it loads stands in no report: only the exit code tells of it.
  return code !== 0 && counted.failed === 0 ? addCounts(counted, ONE_FAILED) : counted;
}

function showLater(output: Deno.CommandOutput): Deno.CommandOutput {
  const decoder = new TextDecoder();
  print(decoder.decode(output.stdout));
  print(decoder.decode(output.stderr));
  return output;
}

async function readCounts(reportUrl: URL, code: number): Promise<Counts> {
  try {
    return countJunit(await Deno.readTextFile(reportUrl));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    print(`Cannot count the tests as the runner ended with code ${code} and no report: ${reason}`);
    return ONE_FAILED;
  }
}
