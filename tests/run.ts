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
import { planTests, selectTests, spread, testFilesIn, type TestPlan } from "./checks/test_plan.ts";

const ONE_FAILED: Counts = { ...NO_TESTS, failed: 1 };

/** How many files a process of a lane runs: few, so that no lane is left alone with much; more than one, since each starts anew. */
const FILES_PER_PROCESS = 3;
/** Tests that start processes wait more than they compute, so there is a lane more than there are cores. */
const LANES = navigator.hardwareConcurrency + 1;
/** What needs no clock takes what the lanes leave of the processor, so that their timing does not suffer. */
const BENEATH = ["-n", "19"];

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
  const counted = await runAll(files, plan);
  await markRun({ complete: paths.length === 0 && options.length === 0 });
  return counted.reduce(addCounts, NO_TESTS);
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
 * Runs each group in a process of its own, several at once: what they change of their own process is theirs. Types are checked
 * once for all of them.
 */
async function runAll(files: readonly string[], plan: TestPlan): Promise<readonly Counts[]> {
  const alone = spread(plan.alone, FILES_PER_PROCESS).map((files, index) => ({
    name: `alone_${index + 1}`,
    files,
    args: COLLECT,
    env: COLLECT_CHILDREN,
  }));
  const together: readonly Group[] = [
    {
      name: "side_by_side",
      files: plan.sideBySide,
      args: ["--parallel", ...COLLECT],
      env: COLLECT_CHILDREN,
    },
    { name: "checks", files: plan.checks, args: ["--parallel"], env: {} },
  ].filter(({ files }) => files.length > 0);
  const how: Manner = {
    later: alone.length + together.length > 1,
    beneath: alone.length > 0 && Deno.build.os !== "windows",
  };
  const counts: Counts[] = [];
  const take = async (waiting: Group[], how: Manner) => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
      counts.push(await runGroup(group, how));
    }
  };
  await Promise.all([
    checkTypes(files, how).then((counted) => counts.push(counted))
      .then(() => take([...together], how)),
    ...Array.from({ length: LANES }, () => take(alone, { ...how, beneath: false })),
  ]);
  return counts;
}

/** How a process is run. */
interface Manner {
  /** What it says is shown when it has ended: several that speak at once cannot be read. */
  readonly later: boolean;
  /** It takes what others leave of the processor. */
  readonly beneath: boolean;
}

async function checkTypes(files: readonly string[], how: Manner): Promise<Counts> {
  const { code } = await start(["check", "--quiet", ...files], {}, { ...how, later: true });
  return code === 0 ? NO_TESTS : ONE_FAILED;
}

async function runGroup({ name, files, args, env }: Group, how: Manner): Promise<Counts> {
  const reportUrl = new URL(`${name}.xml`, COVERAGE_FOLDER);
  const { code } = await start(
    [
      "test",
      "--no-check",
      "--allow-all",
      "--sanitize-ops",
      "--sanitize-resources",
      `--junit-path=${pathOf(reportUrl)}`,
      ...args,
      ...options,
      ...files,
    ],
    env,
    how,
  );
  const counted = await readCounts(reportUrl, code);
  // A module that fails while it loads stands in no report: only the exit code tells of it.
  return code !== 0 && counted.failed === 0 ? addCounts(counted, ONE_FAILED) : counted;
}

async function start(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { later, beneath }: Manner,
): Promise<Deno.CommandStatus> {
  const output = later ? "piped" : "inherit";
  const command = new Deno.Command(beneath ? "nice" : Deno.execPath(), {
    args: beneath ? [...BENEATH, Deno.execPath(), ...args] : [...args],
    cwd: ROOT,
    env,
    stdin: "null",
    stdout: output,
    stderr: output,
  });
  return later ? showLater(await command.output()) : await command.spawn().status;
}

function showLater(output: Deno.CommandOutput): Deno.CommandOutput {
  const decoder = new TextDecoder();
  for (const bytes of [output.stdout, output.stderr]) {
    if (bytes.length > 0) print(decoder.decode(bytes));
  }
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
