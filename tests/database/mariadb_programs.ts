/**
 * Where the tests get MariaDB: a server of the system, the cache of this user, or the packages of Debian, unpacked into the
 * cache. Nothing is installed, and no server of the system is touched: only its program is used.
 *
 * @module
 */

import { cacheOfTests, type Environment, printLine } from "../cluster/binaries.ts";

/** The variable with which CI says that a skipped database test is a failure. */
export const REQUIRED_VARIABLE = "HOLDFAST_DATABASE_TESTS";

/** The one line that stands for all database tests that were skipped. */
export const SKIPPED_LINE =
  "Database tests are skipped: there is no MariaDB, and apt-get gives none. " +
  `Install mariadb-server; ${REQUIRED_VARIABLE}=required makes this an error`;

/** MariaDB cannot be had, and the environment says that it must. */
export class DatabaseProgramsError extends Error {
  override readonly name = "DatabaseProgramsError";
}

/** Programs that can be started as they are. */
export interface MariaDbPrograms {
  /** The server. */
  readonly server: string;
  /** The client. */
  readonly client: string;
  /** What the server takes as `--basedir`. */
  readonly base: string;
  /** A folder of data as it is after an installation. Copy it. */
  readonly template: string;
}

const PACKAGES = ["mariadb-server-core", "mariadb-client-core"];

/**
 * Finds MariaDB, or fetches it: 8 MB and some seconds, once.
 *
 * @returns `null` when there is none, so that the caller skips.
 * @throws {DatabaseProgramsError} The same, with `HOLDFAST_DATABASE_TESTS=required`.
 */
export async function ensureMariaDb({
  environment = Deno.env.toObject(),
  system = "/usr",
  onSkipped = printLine,
}: {
  /** The environment variables. */
  readonly environment?: Environment;
  /** Where programs of the system are. @default {"/usr"} */
  readonly system?: string;
  /** Is told why the tests are skipped. @default {printLine} */
  readonly onSkipped?: (line: string) => void;
} = {}): Promise<MariaDbPrograms | null> {
  const folder = `${cacheOfTests(environment)}/mariadb`;
  try {
    await Deno.mkdir(folder, { recursive: true });
    // The system gives this lock back when a process dies. A second process waits for the first, and takes what it made.
    using lockFile = await Deno.open(`${folder}/.lock`, { create: true, write: true });
    await lockFile.lock(true);
    return await installed(folder, system, environment) ?? await unpacked(folder, environment);
  } catch (cause) {
    // A program that is not there is an error of the platform, which names it.
    const reason = cause instanceof Error ? cause.message : String(cause);
    if (environment[REQUIRED_VARIABLE] === "required") {
      throw new DatabaseProgramsError(`Cannot run the database tests: ${reason}`, { cause });
    }
    onSkipped(`${SKIPPED_LINE} (${reason.split("\n")[0]})`);
    return null;
  }
}

/** What the system has; `null` when it lacks a part. */
async function installed(
  folder: string,
  system: string,
  environment: Environment,
): Promise<MariaDbPrograms | null> {
  const [server, client, setUp] = [
    `${system}/sbin/mariadbd`,
    `${system}/bin/mariadb`,
    `${system}/bin/mariadb-install-db`,
  ];
  for (const file of [server, client, setUp]) if (!await exists(file)) return null;
  const template = `${folder}/template-of-the-system`;
  await makeTemplate({ setUp, base: system, template, libraries: "", environment });
  return { server, client, base: system, template };
}

async function unpacked(folder: string, environment: Environment): Promise<MariaDbPrograms> {
  const root = `${folder}/root`;
  if (!await exists(root)) await unpack(folder, root, environment);
  const base = `${root}/usr`;
  const libraries = (await foldersWithLibraries(`${base}/lib`)).join(":");
  const template = `${folder}/template`;
  const setUp = `${base}/bin/mariadb-install-db`;
  await makeTemplate({ setUp, base, template, libraries, environment });
  return {
    server: await wrapper(`${folder}/mariadbd`, `${base}/sbin/mariadbd`, libraries),
    client: await wrapper(`${folder}/mariadb`, `${base}/bin/mariadb`, libraries),
    base,
    template,
  };
}

/** Fetches the packages, and those that they need and the system lacks. They are unpacked and not installed: no daemon. */
async function unpack(folder: string, root: string, environment: Environment): Promise<void> {
  await run("apt-get", ["--version"], environment);
  printLine("Fetching MariaDB from the packages of this system: once");
  const archives = `${folder}/archives`;
  await Deno.mkdir(`${archives}/partial`, { recursive: true });
  const fetch = [
    ...["-o", `Dir::Cache=${folder}`, "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root"],
    ...["-y", "--download-only", "--no-install-recommends", "install", ...PACKAGES],
  ];
  try {
    await run("apt-get", fetch, environment);
  } catch {
    // The lists of packages may be old, or there may be none yet.
    await run("apt-get", ["update"], environment);
    await run("apt-get", fetch, environment);
  }
  const unfinished = `${root}.${Deno.pid}`;
  for await (const { name } of Deno.readDir(archives)) {
    if (name.endsWith(".deb")) {
      await run("dpkg", ["-x", `${archives}/${name}`, unfinished], environment);
    }
  }
  await Deno.rename(unfinished, root);
}

/** A program that finds its libraries by itself, whatever environment it is started in. */
async function wrapper(file: string, program: string, libraries: string): Promise<string> {
  const text = `#!/bin/sh\nLD_LIBRARY_PATH='${libraries}' exec '${program}' "$@"\n`;
  await Deno.writeTextFile(file, text, { mode: 0o755 });
  return file;
}

async function makeTemplate({ setUp, base, template, libraries, environment }: {
  readonly setUp: string;
  readonly base: string;
  readonly template: string;
  readonly libraries: string;
  readonly environment: Environment;
}): Promise<void> {
  if (await exists(template)) return;
  const unfinished = `${template}.${Deno.pid}`;
  const options = [
    ...["--no-defaults", `--basedir=${base}`, `--datadir=${unfinished}`, "--skip-test-db"],
    ...["--auth-root-authentication-method=normal", "--innodb-log-file-size=8M"],
    ...userOption(),
  ];
  await run("env", [`LD_LIBRARY_PATH=${libraries}`, "sh", setUp, ...options], environment);
  await Deno.rename(unfinished, template);
}

/** The server refuses to be root unless it is told. */
export function userOption(): readonly string[] {
  return Deno.uid() === 0 ? ["--user=root"] : [];
}

async function foldersWithLibraries(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) found.push(...await foldersWithLibraries(`${folder}/${name}`));
    else if (/\.so(\.|$)/.test(name) && !found.includes(folder)) found.push(folder);
  }
  return found;
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

async function run(
  program: string,
  args: readonly string[],
  environment: Environment,
): Promise<void> {
  const { success, stderr } = await new Deno.Command(program, {
    args: [...args],
    clearEnv: true,
    env: { ...environment, DEBIAN_FRONTEND: "noninteractive" },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  if (success) return;
  const lines = new TextDecoder().decode(stderr).trim().split("\n").slice(-5);
  throw new Error(`${program} failed: ${lines.join("\n")}`);
}
