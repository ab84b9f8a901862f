/**
 * Where the test run leaves what it covered, and whether that is all of it.
 *
 * @module
 */

import { ROOT } from "./shell.ts";

/** The folder of the last test run's reports; git ignores it. */
export const COVERAGE_FOLDER: URL = new URL("coverage/", ROOT);

/** The folder of the raw data. */
export const COVERAGE_DATA: URL = new URL("data/", COVERAGE_FOLDER);

const MARK = new URL("run.json", COVERAGE_FOLDER);

/** What is known of the last test run. */
export interface RunMark {
  /** True when all tests ran, so that the bound can be judged. */
  readonly complete: boolean;
}

/** Notes what kind of run left the data. */
export async function markRun(mark: RunMark): Promise<void> {
  await Deno.writeTextFile(MARK, JSON.stringify(mark));
}

/** Reads the note of the last run that came to its end; `null` when there is none. */
export async function readMark(): Promise<RunMark | null> {
  try {
    const mark: unknown = JSON.parse(await Deno.readTextFile(MARK));
    return {
      complete: typeof mark === "object" && mark !== null && "complete" in mark &&
        mark.complete === true,
    };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
