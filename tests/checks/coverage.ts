/**
 * `deno task coverage [PATH…]`: judges what the last test run covered of lib and handlers.
 *
 * Without paths all of both is judged, and the last run must have been of all tests. With paths only the files below them
 * are judged, on the data of whatever ran last.
 *
 * @module
 */

import { COVERAGE_DATA, readMark } from "./coverage_data.ts";
import { coverageTable, halfWritten, judgeCoverage, parseLcov } from "./lcov.ts";
import { pathOf, print, ROOT } from "./shell.ts";
import { parse, readSources } from "./syntax.ts";
import { hasSomethingToRun } from "./runnable.ts";

/** The least share of lines, and of branches, in percent. */
const BOUND = 90;
const ROWS = 15;

Deno.exit(await judge(Deno.args.map((path) => path.replace(/^\.\//, "").replace(/\/+$/, ""))));

async function judge(paths: readonly string[]): Promise<number> {
  const mark = await readMark();
  if (mark === null || !mark.complete && paths.length === 0) {
    const what = mark === null ? "no test run came to its end" : "the last test run was a part";
    print(`Cannot judge coverage as ${what}: run 'deno task test' first`);
    return 1;
  }
  const isJudged = (file: string) =>
    /^(lib|handlers)\//.test(file) &&
    (paths.length === 0 || paths.some((path) => file === path || file.startsWith(`${path}/`)));
  const covered = parseLcov(await lcovReport(), pathOf(ROOT)).filter(({ file }) => isJudged(file));
  const wanted = parse(await readSources("lib", "handlers")).files
    .filter((file) => isJudged(file.fileName) && hasSomethingToRun(file))
    .map((file) => file.fileName);
  for (const line of coverageTable(covered, ROWS)) print(line);
  const { faults } = judgeCoverage(covered, wanted, BOUND);
  for (const fault of faults) print(fault);
  return faults.length === 0 ? 0 : 1;
}

/** Tests kill processes, also while they write their data. What is cut off there is left out, and can only lower the figures. */
async function lcovReport(): Promise<string> {
  for (;;) {
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        "coverage",
        "--lcov",
        "--include=/(lib|handlers)/",
        pathOf(COVERAGE_DATA),
      ],
      cwd: ROOT,
    }).output();
    if (success) return new TextDecoder().decode(stdout);
    const complaint = new TextDecoder().decode(stderr);
    // No file of ours was loaded: the verdict says so better than an error.
    if (complaint.includes("No covered files")) return "";
    const file = halfWritten(complaint);
    if (file === null) throw new Error(`Cannot read coverage: ${complaint}`);
    print("left out: the data of a process that was killed while it wrote them");
    await Deno.remove(file);
  }
}
