/**
 * Where the tests get a real API server: its programs, found or built from source.
 *
 * In this order: the folder that `KUBEBUILDER_ASSETS` names, the cache of this user, a build with Go. Nothing is
 * downloaded but Go modules, and only by Go itself.
 *
 * @module
 */

/** A program that the tests know how to find and build. */
export type Program = "etcd" | "kube-apiserver" | "kubectl";

/** The programs of a cluster; `kubectl` is asked for by the tests that want it. */
export const SERVER_PROGRAMS: readonly Program[] = ["etcd", "kube-apiserver"];

const PACKAGES: Readonly<Record<Program, string>> = {
  "etcd": "go.etcd.io/etcd/server/v3",
  "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
  "kubectl": "k8s.io/kubernetes/cmd/kubectl",
};

/** The variables that are looked at, and handed to Go. */
export type Environment = Readonly<Record<string, string>>;

/** The options of {@linkcode ensureBinaries}. */
export interface BinariesOptions {
  /** Which programs are wanted. @default {SERVER_PROGRAMS} */
  readonly programs?: readonly Program[];
  /** Gets a line a person can read when there is something to wait for. @default {printLine} */
  readonly onProgress?: (line: string) => void;
  /** The environment variables. @default {Deno.env.toObject()} */
  readonly environment?: Environment;
}

/** Programs that are there and can be started. */
export interface Binaries {
  /** The version of Kubernetes in go.mod, for example `v1.36.3`. What `KUBEBUILDER_ASSETS` holds may have another. */
  readonly version: string;
  /** The path of a program that was asked for. @throws {Error} It was not asked for. */
  path(program: Program): string;
}

/** The programs cannot be had, and the environment says that they must, or what it says of them is wrong. */
export class BinariesError extends Error {
  override readonly name = "BinariesError";
}

/** The variable with which CI says that a skipped cluster test is a failure. */
export const REQUIRED_VARIABLE = "HOLDFAST_CLUSTER_TESTS";

/** Set once {@linkcode SKIPPED_LINE} was told. Test files share nothing with each other but the environment. */
const TOLD_VARIABLE = "HOLDFAST_CLUSTER_TESTS_SKIPPED";

/** The one line that stands for all cluster tests that were skipped. */
export const SKIPPED_LINE =
  "Cluster tests are skipped: there is no API server in the cache and no Go to build one. " +
  `Install Go, or set KUBEBUILDER_ASSETS; ${REQUIRED_VARIABLE}=required makes this an error`;

const SOURCE_FOLDER = new URL(".", import.meta.url);

/** A Go module that requires a version of Kubernetes, and so can build its programs. */
export interface GoModule {
  readonly folder: URL | string;
  /** What `go build` gets besides. */
  readonly flags: readonly string[];
}

/** The module beside this file. */
const OWN_MODULE: GoModule = { folder: SOURCE_FOLDER, flags: [] };
const PROGRESS_EVERY_MS = 15_000;

/**
 * Finds the programs, or builds them.
 *
 * A build takes minutes, once for each version. Two processes do not build at once: the second waits for the first, and
 * takes what it made.
 *
 * @returns `null` when nothing is found and there is no Go, so that the caller skips.
 * @throws {BinariesError} The same, with `HOLDFAST_CLUSTER_TESTS=required`; `KUBEBUILDER_ASSETS` names a folder that
 * lacks a program; or the build failed.
 */
export async function ensureBinaries(options: BinariesOptions = {}): Promise<Binaries | null> {
  const programs = options.programs ?? SERVER_PROGRAMS;
  const onProgress = options.onProgress ?? printLine;
  const environment = options.environment ?? Deno.env.toObject();
  const version = kubernetesVersion(await Deno.readTextFile(new URL("go.mod", SOURCE_FOLDER)));

  const assets = environment.KUBEBUILDER_ASSETS;
  if (assets) {
    const missing = await missingIn(assets, programs);
    if (missing.length > 0) {
      throw new BinariesError(
        `Cannot use KUBEBUILDER_ASSETS as the folder lacks ${missing.join(", ")}: ` +
          `current value is ${assets}`,
      );
    }
    return binariesIn(assets, programs, version);
  }

  const folder = cacheFolder(environment, version);
  if ((await missingIn(folder, programs)).length > 0) {
    if (!await hasGo(environment)) {
      if (environment[REQUIRED_VARIABLE] === "required") {
        throw new BinariesError(
          `Cannot run the cluster tests as ${programs.join(", ")} ${version} is not in ${folder} ` +
            `and there is no Go to build it: install Go or set KUBEBUILDER_ASSETS`,
        );
      }
      return null;
    }
    await buildMissing({ folder, programs, version, environment, onProgress });
  }
  return binariesIn(folder, programs, version);
}

/**
 * Reads the version of Kubernetes from the text of a go.mod file.
 *
 * @throws {BinariesError} It requires none.
 */
export function kubernetesVersion(goMod: string): string {
  const version = /^\s*(?:require\s+)?k8s\.io\/kubernetes\s+(v\d+\.\d+\.\d+\S*)/m.exec(goMod)?.[1];
  if (version === undefined) {
    throw new BinariesError("Cannot tell the version as go.mod does not require k8s.io/kubernetes");
  }
  return version;
}

/** Writes a line to standard error at once, so that a person who waits sees why. */
export function printLine(line: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));
}

/** Tells {@linkcode SKIPPED_LINE}, unless this process or the one that started it told it before. */
export function tellSkipped(tell: (line: string) => void = printLine): void {
  if (Deno.env.get(TOLD_VARIABLE) !== undefined) return;
  Deno.env.set(TOLD_VARIABLE, "true");
  tell(SKIPPED_LINE);
}

/** What the linker writes into the programs, so that `/version` tells the truth. */
export function linkerFlags(version: string): string {
  const [major, minor] = version.slice(1).split(".");
  const variable = "k8s.io/component-base/version";
  return [
    `-X ${variable}.gitVersion=${version}`,
    `-X ${variable}.gitMajor=${major}`,
    `-X ${variable}.gitMinor=${minor}`,
  ].join(" ");
}

/** Where the programs of a version are kept. @throws {BinariesError} The environment names no home. */
export function cacheFolder(environment: Environment, version: string): string {
  return `${cacheOfTests(environment)}/kube-${version}`;
}

/** Where the programs are kept that tests need and this user has not installed. @throws {BinariesError} */
export function cacheOfTests(environment: Environment): string {
  const home = environment.HOME ?? environment.USERPROFILE;
  const base = environment.XDG_CACHE_HOME || (home ? `${home}/.cache` : undefined);
  if (base === undefined) {
    throw new BinariesError("Cannot find a cache folder: set XDG_CACHE_HOME or HOME");
  }
  return `${base}/holdfast`;
}

function binariesIn(folder: string, programs: readonly Program[], version: string): Binaries {
  return {
    version,
    path(program) {
      if (!programs.includes(program)) {
        throw new Error(`Cannot give '${program}' as it was not asked for: name it in 'programs'`);
      }
      return `${folder}/${program}`;
    },
  };
}

async function missingIn(folder: string, programs: readonly Program[]): Promise<Program[]> {
  const missing: Program[] = [];
  for (const program of programs) {
    if (!await isFile(`${folder}/${program}`)) missing.push(program);
  }
  return missing;
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

async function hasGo(environment: Environment): Promise<boolean> {
  try {
    const { success } = await goCommand(OWN_MODULE, ["version"], environment).output();
    return success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** A command of Go in a module, which links no C. */
export function goCommand(
  { folder }: GoModule,
  args: readonly string[],
  environment: Environment,
): Deno.Command {
  return new Deno.Command("go", {
    args: [...args],
    cwd: folder,
    clearEnv: true,
    env: { ...environment, CGO_ENABLED: "0" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

/** What is to be built. */
export interface BuildOptions {
  /** Where the programs go. */
  readonly folder: string;
  readonly programs: readonly Program[];
  /** The version that the module requires. */
  readonly version: string;
  readonly environment: Environment;
  readonly onProgress: (line: string) => void;
  /** @default {the module beside this file} */
  readonly module?: GoModule;
}

/**
 * Builds what the folder lacks. Of two processes one builds, and the other waits for it.
 *
 * @throws {BinariesError} The build failed: the last lines that Go wrote are in the message.
 */
export async function buildMissing(options: BuildOptions): Promise<void> {
  const { folder, programs, onProgress } = options;
  await Deno.mkdir(folder, { recursive: true });
  // The system gives this lock back when a process dies, so that a build that was cut off blocks nobody.
  using lockFile = await Deno.open(`${folder}/.lock`, { create: true, write: true });
  const waiting = setTimeout(
    () => onProgress(`Waiting for another process that builds into ${folder}`),
    1_000,
  );
  try {
    await lockFile.lock(true);
  } finally {
    clearTimeout(waiting);
  }
  for (const program of await missingIn(folder, programs)) {
    await build(program, options);
  }
}

async function build(
  program: Program,
  { folder, version, environment, onProgress, module = OWN_MODULE }: BuildOptions,
): Promise<void> {
  const startedMs = performance.now();
  const seconds = () => Math.round((performance.now() - startedMs) / 1_000);
  onProgress(`Building ${program} for Kubernetes ${version} from source: minutes, but only once`);
  const ticking = setInterval(
    () => onProgress(`Still building ${program}: ${seconds()} s`),
    PROGRESS_EVERY_MS,
  );
  // A rename puts the program in its place whole: nobody ever starts half of one.
  const unfinished = `${folder}/.${program}.${Deno.pid}`;
  try {
    const { success, stderr } = await goCommand(
      module,
      [
        "build",
        ...module.flags,
        "-trimpath",
        "-ldflags",
        linkerFlags(version),
        "-o",
        unfinished,
        PACKAGES[program],
      ],
      environment,
    ).output();
    if (!success) {
      const lines = new TextDecoder().decode(stderr).trimEnd().split("\n").slice(-20);
      throw new BinariesError(`Cannot build ${program} with Go: ${lines.join("\n")}`);
    }
    await Deno.rename(unfinished, `${folder}/${program}`);
    onProgress(`Built ${program} in ${seconds()} s`);
  } finally {
    clearInterval(ticking);
    await Deno.remove(unfinished).catch(() => {});
  }
}
