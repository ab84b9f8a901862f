/**
 * Runs a program under an authority, and stops it before the authority ends.
 *
 * The order matters. The guard knows the deadline before the program starts. The program is gone, with all that it started
 * in its group, before any lease is released.
 *
 * @module
 */

import type { DeploymentAuthority } from "../client/deployment.ts";
import { AuthorityLostError } from "../client/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { type ChildGuard, GuardError } from "./guard.ts";
import type { CommandLine, GroupLeader, GroupSignal } from "./process_group.ts";
import { childEnvironment, ddlMayHaveBegun, killAtMs, type PhaseText } from "./rules.ts";

/** What a shell says of a program that SIGKILL ended. */
const KILLED = 137;

/** How long a guard may take to tell of the end of a program that was killed, in milliseconds. A frozen one never tells. */
const GUARD_SILENCE_MS = 3_000;

/** The program ended with an exit code above 0. */
export class ChildFailedError extends Error {
  override readonly name = "ChildFailedError";
  /** The exit code of the program. */
  readonly code: number;

  constructor(code: number) {
    super(`Cannot call the deployment a success as its command ended with exit code ${code}`);
    this.code = code;
  }
}

/** Where a program says that DDL begins. */
export interface PhaseFile {
  readonly path: string;
  /** What is in it. It never throws. */
  read(): PhaseText;
}

/** What a program is run with. */
export interface SuperviseParts {
  readonly clock: Clock;
  readonly guard: ChildGuard;
  readonly command: CommandLine;
  readonly phaseFile: PhaseFile;
  readonly signal: (group: number, signal: GroupSignal) => boolean;
  /** Is told when the program runs: `pass` sends a signal on to its group. */
  readonly onStarted: (child: { readonly pid: number; pass(signal: GroupSignal): void }) => void;
  /** Is told when the program is being stopped. */
  readonly onStopping: (why: AuthorityLostError, killInMs: number) => void;
  /** Is told when the guard was killed, or is frozen. The program is then killed too, and counts as ended by SIGKILL. */
  readonly onGuardLost: (error: GuardError) => void;
}

/**
 * Runs a program. Call it as the work of a deployment.
 *
 * @returns When the program ended with 0.
 * @throws {ChildFailedError} It ended otherwise. @throws {CommandNotFoundError} It could not be started.
 * @throws {AuthorityLostError} Authority ended before the program was started.
 */
export async function supervise(
  authority: DeploymentAuthority,
  parts: SuperviseParts,
): Promise<void> {
  const { clock, command, guard, phaseFile, signal } = parts;
  authority.signal.throwIfAborted();
  guard.killAt(authority.deadline.killAtMs);
  const env = childEnvironment({ ...contextOf(authority), phaseFile: phaseFile.path });
  const child = await guard.start(command, env);
  parts.onStarted({ pid: child.pid, pass: (one) => void signal(child.pid, one) });

  let cancelTimer = () => {};
  const silence = Promise.withResolvers<never>();
  const kill = () => {
    signal(child.pid, "SIGKILL");
    const why = "Cannot tell how the command ended as the guard process is silent";
    cancelTimer = clock.timer(GUARD_SILENCE_MS, () => silence.reject(new GuardError(why)));
  };
  const stop = () => {
    const why: unknown = authority.signal.reason;
    if (!(why instanceof AuthorityLostError)) return;
    const now = clock.monotonic();
    const killMs = killAtMs(why.reason, authority.deadline, now);
    guard.killAt(killMs);
    signal(child.pid, "SIGTERM");
    const left = Math.max(0, killMs - now);
    cancelTimer = clock.timer(left, kill);
    parts.onStopping(why, left);
  };
  if (authority.signal.aborted) stop();
  else authority.signal.addEventListener("abort", stop, { once: true });

  try {
    const code = await endOf(child, silence.promise, parts);
    if (code !== 0) throw new ChildFailedError(code);
  } finally {
    authority.signal.removeEventListener("abort", stop);
    cancelTimer();
    if (ddlMayHaveBegun(phaseFile.read())) authority.ddlHasBegun();
  }
}

/** A guard that was killed or is frozen leaves the program to us. Nobody can tell then how it would have ended. */
async function endOf(
  child: GroupLeader,
  silence: Promise<never>,
  { signal, onGuardLost }: SuperviseParts,
): Promise<number> {
  try {
    return await Promise.race([child.ended, silence]);
  } catch (error) {
    if (!(error instanceof GuardError)) throw error;
    signal(child.pid, "SIGKILL");
    onGuardLost(error);
    return KILLED;
  }
}

function contextOf(authority: DeploymentAuthority) {
  const { activeSite, fence, operationId, topologyGeneration } = authority;
  return { activeSite, fence, operationId, topologyGeneration };
}
