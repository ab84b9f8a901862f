/**
 * A real Chromium, Debian's own, driven headless.
 *
 * Where it is missing, the tests of the page say how to install it and are skipped. With
 * `HOLDFAST_BROWSER_TESTS=required`, which CI sets, that is an error.
 *
 * @module
 */

import { type Browser, chromium } from "playwright-core";
import { pathOf, print, ROOT } from "../checks/shell.ts";

/** Where distributions put it, in the order in which it is looked for. */
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** What is said where it is missing. */
export const MISSING =
  "Cannot show the status page in a browser as Chromium is missing: install it with 'apt-get install -y chromium', " +
  "or name another one in HOLDFAST_CHROMIUM";

/** Where pictures are left for people to look at: build output, not part of the repository. */
export const SCREENSHOTS = pathOf(new URL("dist/screenshots/", ROOT));

/** Chromium is missing, and must not be. */
export class ChromiumError extends Error {
  override readonly name = "ChromiumError";
}

/**
 * Finds the program.
 *
 * @param env The environment: `HOLDFAST_CHROMIUM` names another program, `HOLDFAST_BROWSER_TESTS=required` demands one.
 * @param exists Says whether a file is there.
 * @returns Its path; `null` when there is none and none is demanded.
 * @throws {ChromiumError} There is none, and one is demanded.
 */
export function findChromium(
  env: (name: string) => string | undefined,
  exists: (path: string) => boolean,
): string | null {
  const named = env("HOLDFAST_CHROMIUM");
  const found = (named === undefined ? PLACES : [named]).find(exists);
  if (found !== undefined) return found;
  if (env("HOLDFAST_BROWSER_TESTS") === "required") throw new ChromiumError(MISSING);
  return null;
}

/** Starts it. `await using` ends it. @param path From {@linkcode findChromium}. */
export async function startChromium(path: string): Promise<Browser> {
  return await chromium.launch({
    executablePath: path,
    // In a container there is no user for its sandbox, and little shared memory. It is shown our own page alone.
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
}

/** One browser for all tests of a file: each gets a context of its own, as a new user has it. */
let shared: Promise<Browser> | null = null;
let prepared = false;

/**
 * A test with a browser. What it opens there is closed after it.
 *
 * @param run The test.
 * @param options `ignore` skips it: for a test that needs more than the browser, where that is missing.
 */
export function browserTest(
  name: string,
  run: (browser: Browser) => Promise<void>,
  { ignore = false }: { readonly ignore?: boolean } = {},
): void {
  const path = findChromium((variable) => Deno.env.get(variable), isFile);
  if (!prepared) {
    prepared = true;
    if (path === null) print(MISSING);
    Deno.test.afterAll(async () => await (await shared)?.close());
  }
  Deno.test({
    name,
    ignore: ignore || path === null,
    // The browser's pipes are open for longer than a test.
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const browser = await (shared ??= startChromium(path ?? ""));
      try {
        await run(browser);
      } finally {
        for (const context of browser.contexts()) await context.close();
      }
    },
  });
}

/** True for a file that is there. */
export function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
