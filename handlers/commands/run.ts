/**
 * `holdfast run`: a command under a migration lease.
 *
 * @module
 */

import {
  AuthorityLostError,
  clientFrom,
  ClientSettingsError,
  CredentialError,
  type DeploymentAuthority,
  HeldError,
  HoldfastError,
  InvalidRequestError,
  leaseTiming,
  NotAuthorizedError,
  OperationInUseError,
  OperationRevokedError,
  UnknownGroupError,
  UnreachableError,
  UnstableError,
} from "../../lib/client/mod.ts";
import { GuardError, GuardProcess } from "../../lib/supervisor/guard.ts";
import {
  CommandNotFoundError,
  isRunnable,
  signalGroup,
} from "../../lib/supervisor/process_group.ts";
import { RunFolder } from "../../lib/supervisor/run_folder.ts";
import { EXIT_CODES } from "../../lib/supervisor/rules.ts";
import { ChildFailedError, supervise } from "../../lib/supervisor/supervise.ts";
import { RefusalError } from "./options.ts";
import type { RunOptions } from "./run/options.ts";
import { RunProgress } from "./run/progress.ts";
import { guardCommand } from "./run/self.ts";
import type { StopSignal } from "./system.ts";

/** The user asked the run to end before its command was started. */
class InterruptedError extends Error {
  override readonly name = "InterruptedError";
  /** 128 and the number of the signal, as a shell says it. */
  readonly code: number;

  constructor(signal: StopSignal) {
    super(`Cannot start the command as ${signal} came first: no lease is left behind`);
    this.code = signal === "SIGINT" ? 130 : 143;
  }
}

/**
 * Runs a command under a lease.
 *
 * @returns The exit code: that of the command, or one of {@linkcode EXIT_CODES}; 130 or 143 when a signal came before the
 * command was started.
 * @throws {RefusalError} The guard cannot be started. Nothing was acquired.
 */
export async function run(options: RunOptions): Promise<number> {
  const { system } = options;
  using progress = new RunProgress(system.stderr, system.clock, options.waitMs);
  try {
    await deploy(options, progress);
    return 0;
  } catch (error) {
    if (error instanceof ChildFailedError) return error.code;
    if (error instanceof GuardError) throw new RefusalError(error.message, { cause: error });
    const code = exitCodeOf(error);
    if (code === undefined || !(error instanceof Error)) throw error;
    progress.say(error.message);
    return code;
  }
}

async function deploy(options: RunOptions, progress: RunProgress): Promise<void> {
  const { system, maxLagMs, hold, releaseOnFailure } = options;
  const { clock, entropy, env } = system;
  const [path = "", ...args] = options.command;
  if (!await isRunnable(path, env.PATH ?? "")) throw new CommandNotFoundError(path);
  const ttlSeconds = options.ttlMs / 1_000;
  leaseTiming({ ttlSeconds });
  const client = await clientFrom(options.settings, {
    env,
    readTextFile: (file) => Deno.readTextFile(file),
    clock,
    entropy,
  });
  const operationId = options.operationId ?? entropy.uuid();
  progress.say(`Operation ${operationId} on group ${client.group}, database ${client.instance}`);

  const interrupt = new AbortController();
  let pass: ((signal: StopSignal) => void) | undefined;
  using signals = new DisposableStack();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    signals.defer(system.onSignal(signal, () => {
      if (pass === undefined) interrupt.abort(new InterruptedError(signal));
      else pass(signal);
    }));
  }
  using folder = RunFolder.make();
  const { phaseFile, socketPath } = folder;
  const command = guardCommand(socketPath);
  await using guard = await GuardProcess.start({ clock, command, socketPath });
  await client.deploy({
    operationId,
    ttlSeconds,
    waitSeconds: options.waitMs / 1_000,
    maxLagSeconds: maxLagMs === null ? null : maxLagMs / 1_000,
    hold,
    releaseOnFailure,
    signal: interrupt.signal,
    onWaiting: (why) => progress.waiting(why),
    onDeadline: ({ killAtMs }) => guard.killAt(killAtMs),
  }, async (authority) => {
    progress.ready();
    progress.say(leaseText(authority));
    // From here on a signal is the command's: one that comes while it starts waits for it.
    const early: StopSignal[] = [];
    pass = (signal) => void early.push(signal);
    using ended = new DisposableStack();
    // A signal that comes while the leases are released has nobody to go to.
    ended.defer(() => void (pass = () => {}));
    await supervise(authority, {
      clock,
      guard,
      command: { path, args },
      phaseFile,
      signal: signalGroup,
      onStarted: (child) => {
        pass = child.pass;
        early.forEach(pass);
      },
      onStopping: (why, killInMs) => progress.stopping(why, killInMs),
      onGuardLost: (error) => progress.say(error.message),
    });
  });
}

function leaseText(authority: DeploymentAuthority): string {
  const { activeSite, fence, hold, topologyGeneration } = authority;
  const leases = hold === null ? "the migration lease" : "the migration lease and a hold";
  return `Holds ${leases}: active site ${activeSite}, topology generation ${topologyGeneration}, fence ${
    fence ?? "none"
  }`;
}

/** The exit code that an error stands for; `undefined` for a fault of this program. */
function exitCodeOf(error: unknown): number | undefined {
  if (error instanceof InterruptedError) return error.code;
  if (error instanceof CommandNotFoundError) return EXIT_CODES.commandNotFound;
  if (!(error instanceof HoldfastError)) return undefined;
  if (error instanceof AuthorityLostError) {
    return error.phase === "after-ddl" ? EXIT_CODES.lostAfterDdl : EXIT_CODES.lostBeforeDdl;
  }
  const [, code] = CODES.find(([type]) => error instanceof type) ?? [];
  return code;
}

const CODES: readonly (readonly [abstract new (...args: never[]) => HoldfastError, number])[] = [
  [ClientSettingsError, EXIT_CODES.usage],
  [InvalidRequestError, EXIT_CODES.usage],
  [CredentialError, EXIT_CODES.notAuthorized],
  [NotAuthorizedError, EXIT_CODES.notAuthorized],
  [UnknownGroupError, EXIT_CODES.notAuthorized],
  [UnreachableError, EXIT_CODES.unreachable],
  [HeldError, EXIT_CODES.held],
  [OperationInUseError, EXIT_CODES.held],
  [UnstableError, EXIT_CODES.unstable],
  [OperationRevokedError, EXIT_CODES.lostBeforeDdl],
];
