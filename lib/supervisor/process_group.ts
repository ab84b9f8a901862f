/**
 * Programs in a process group of their own, so that a signal reaches all that they started.
 *
 * @module
 */

/** Which signals a group is sent here. */
export type GroupSignal = "SIGINT" | "SIGTERM" | "SIGKILL";

/** A program and its arguments. */
export interface CommandLine {
  /** A path, or a name that is looked up in `PATH`. */
  readonly path: string;
  readonly args: readonly string[];
}

/** The program cannot be started: there is none, or it must not be run. */
export class CommandNotFoundError extends Error {
  override readonly name = "CommandNotFoundError";

  constructor(path: string, options?: ErrorOptions) {
    super(
      `Cannot run '${path}' as there is no such program that may be executed: give a path, or a name in PATH`,
      options,
    );
  }
}

/** A program that runs as the leader of a session and a group of its own. */
export interface GroupLeader {
  /** The process id, which is the group's too. */
  readonly pid: number;
  /** The exit code when it has ended: its own, or 128 and the signal that ended it. */
  readonly ended: Promise<number>;
}

/**
 * Starts a program as the leader of a session of its own. It shares the input and the outputs of this process.
 *
 * @throws {CommandNotFoundError}
 */
export function startGroup(
  { path, args }: CommandLine,
  env: Readonly<Record<string, string>>,
): GroupLeader {
  try {
    const child = new Deno.Command(path, {
      args: [...args],
      env: { ...env },
      // A session of its own: the terminal's signals reach this process alone, which passes them on.
      detached: true,
      stdin: "inherit",
      stdout: "inherit",
      stderr: "inherit",
    }).spawn();
    return { pid: child.pid, ended: child.status.then(({ code }) => code) };
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound || cause instanceof Deno.errors.PermissionDenied) {
      throw new CommandNotFoundError(path, { cause });
    }
    throw cause;
  }
}

/**
 * Sends a signal to all processes of a group.
 *
 * @param group The id of the group, above 1.
 * @returns False when the group is gone.
 */
export function signalGroup(group: number, signal: GroupSignal): boolean {
  if (!Number.isSafeInteger(group) || group <= 1) {
    throw new RangeError(
      `Cannot signal a process group as its id must be a whole number above 1: current value is ${group}`,
    );
  }
  try {
    Deno.kill(-group, signal);
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** A group whose processes all ended, or became another user's, which the kernel then reports in two ways. */
function isGone(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound ||
    error instanceof Error && "code" in error && error.code === "ESRCH";
}

/**
 * Says whether a program can be started, without starting it.
 *
 * @param searchPath The variable `PATH`.
 */
export async function isRunnable(path: string, searchPath: string): Promise<boolean> {
  if (path === "") return false;
  const candidates = path.includes("/")
    ? [path]
    : searchPath.split(":").map((folder) => `${folder === "" ? "." : folder}/${path}`);
  for (const candidate of candidates) {
    if (await isExecutable(candidate)) return true;
  }
  return false;
}

const ANY_EXECUTE_BIT = 0o111;

async function isExecutable(path: string): Promise<boolean> {
  try {
    const { isFile, mode } = await Deno.stat(path);
    return isFile && (mode === null || (mode & ANY_EXECUTE_BIT) !== 0);
  } catch {
    return false;
  }
}
