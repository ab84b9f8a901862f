/**
 * Which tests may run beside each other, and which need the real API server: read from their imports, so that no list
 * has to be kept.
 *
 * @module
 */

import type ts from "typescript";
import { globalsOf, importsOf, type Syntax } from "./syntax.ts";

/** How to run a set of test files. */
export interface TestPlan {
  /** Files that share nothing with others: they run side by side. */
  readonly sideBySide: readonly string[];
  /**
   * Files that run one after the other in a process: they start processes, whose timing suffers when both cores are taken, or they
   * change what belongs to the whole process (environment, folder).
   */
  readonly alone: readonly string[];
  /** Files that read the code and run none of it: nothing is covered by them, and collecting that would slow them. */
  readonly checks: readonly string[];
  /** True when one of the files uses the real API server. */
  readonly needsCluster: boolean;
}

/** What the arguments of the test command ask for. */
export interface TestSelection {
  /** Files and folders, from the root of the repository; empty for all. */
  readonly paths: readonly string[];
  /** Options that are handed to the test runner. */
  readonly options: readonly string[];
}

const CHECKS = /^tests\/(checks|proofs)\//;
const CLUSTER = /^tests\/cluster\//;
const TESTS = /^tests\//;
const PROCESS_GLOBAL =
  /^(Deno\.(Command|chdir|umask|env\.(set|delete))|process\.(chdir|env|umask))\b/;
const PROCESS_MODULE = /^((node:)?(child_process|cluster)|playwright-core)$/;

/** Splits the arguments: paths first, and from the first option on everything is for the test runner. */
export function selectTests(args: readonly string[]): TestSelection {
  const at = args.findIndex((arg) => arg.startsWith("-"));
  const paths = at === -1 ? args : args.slice(0, at);
  return {
    paths: paths.map((path) => path.replace(/^\.\//, "").replace(/\/+$/, "")),
    options: at === -1 ? [] : args.slice(at),
  };
}

/** The test files among `files` that `paths` select; all of them when there are no paths. */
export function testFilesIn(files: Iterable<string>, paths: readonly string[]): string[] {
  return [...files].filter((file) =>
    /_test\.tsx?$/.test(file) &&
    (paths.length === 0 || paths.some((path) => file === path || file.startsWith(`${path}/`)))
  ).sort();
}

/** Plans a run of test files. `syntax` holds them and whatever of ours they import. */
export function planTests(syntax: Syntax, files: readonly string[]): TestPlan {
  const sources = new Map(syntax.files.map((source) => [source.fileName, source]));
  const sideBySide: string[] = [];
  const alone: string[] = [];
  const checks = files.filter((file) => CHECKS.test(file));
  let needsCluster = false;
  for (const file of files) {
    if (checks.includes(file)) continue;
    const reached = reachedFrom(file, sources);
    const usesCluster = reached.some((source) => CLUSTER.test(source.fileName));
    needsCluster ||= usesCluster;
    const isAlone = usesCluster || reached.some((source) => usesProcess(syntax, source));
    (isAlone ? alone : sideBySide).push(file);
  }
  return { sideBySide, alone, checks, needsCluster };
}

/**
 * Splits files into processes of at most `size`. Neighbours come into different ones: what lies in one folder often takes
 * alike long.
 */
export function spread(files: readonly string[], size: number): readonly (readonly string[])[] {
  const processes = Math.ceil(files.length / size);
  return Array.from(
    { length: processes },
    (_, process) => files.filter((_, index) => index % processes === process),
  );
}

function reachedFrom(file: string, sources: ReadonlyMap<string, ts.SourceFile>): ts.SourceFile[] {
  const reached = new Map<string, ts.SourceFile>();
  const look = (at: string) => {
    const source = sources.get(at);
    if (source === undefined || reached.has(at)) return;
    reached.set(at, source);
    for (const { target, typeOnly } of importsOf(source)) {
      if (target !== null && !typeOnly) look(target);
    }
  };
  look(file);
  return [...reached.values()];
}

/** Only what stands in tests counts: the product starts no process unless a test asks it to. */
function usesProcess(syntax: Syntax, source: ts.SourceFile): boolean {
  return TESTS.test(source.fileName) && (
    globalsOf(syntax, source).some((use) => PROCESS_GLOBAL.test(use.path)) ||
    importsOf(source).some((used) => !used.typeOnly && PROCESS_MODULE.test(used.specifier))
  );
}
