/**
 * The command line of `holdfast run`.
 *
 * @module
 */

import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../../../lib/config/duration.ts";
import { RUN_GUARD } from "./self.ts";
import type { RunGuardOptions, RunOptions } from "./options.ts";
import type { System } from "../system.ts";

/** What is called. Each answers with an exit code. */
export interface RunCommands {
  /** Runs a program under a lease. */
  run(options: RunOptions): Promise<number>;
  /** Guards the program of a `run`. */
  runGuard(options: RunGuardOptions): Promise<number>;
}

/** The options, as commander gives them. */
interface RunFlags {
  readonly url?: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
  readonly group?: string;
  readonly instance?: string;
  readonly operation?: string;
  readonly ttl: number;
  readonly wait: number;
  readonly maxLag: number | typeof ANY;
  readonly hold: boolean;
  readonly releaseOnFailure: boolean;
}

/** No limit. */
const ANY = "any";

const RUN_HELP = `
The command gets a process group of its own, and in its environment HOLDFAST_OPERATION_ID, HOLDFAST_FENCE,
HOLDFAST_TOPOLOGY_GENERATION, HOLDFAST_ACTIVE_SITE and HOLDFAST_PHASE_FILE. Before it changes the schema it writes
'ddl' into that file. When authority is lost it gets SIGTERM, and SIGKILL before another one may hold the lease.

Examples:
  holdfast run --group orders --instance orders-app -- flyway migrate
  holdfast run --wait 15s --ttl 60s -- ./migrate.sh --all

Exit codes: the command's own; 2 wrong usage; 111 the service cannot be reached; 112 not authorized; 113 held by another
until the wait ended; 114 the group was not stable until the wait ended; 115 authority lost before DDL; 116 authority lost
after DDL began, verify the schema by hand; 127 no such command, nothing was acquired`;

/** Adds `run` and its hidden guard to the program. */
export function addRunCommands(
  program: Command,
  system: System,
  commands: RunCommands,
  exitWith: (code: number) => void,
): void {
  program.command("run")
    .description("Run a command under a migration lease, and stop it before the lease ends.")
    .argument("<command...>", "the command, after --")
    .option("--url <url>", "the service, https; else HOLDFAST_URL")
    .option("--ca-file <file>", "the authority of its certificate; else HOLDFAST_CA_FILE")
    .option("--token-file <file>", "the service account token; else HOLDFAST_TOKEN_FILE")
    .option("--group <name>", "the group; else HOLDFAST_GROUP")
    .option("--instance <name>", "the MysqlDatabase to deploy to; else HOLDFAST_INSTANCE")
    .option("--operation <id>", "the operation, of this deployment alone; else a fresh UUID")
    .addOption(
      new Option("--ttl <duration>", "how long a lease lasts unless renewed, 8s to 120s")
        .argParser(parseTime).default(30_000, "30s"),
    )
    .addOption(
      new Option("--wait <duration>", "how long to wait for the lease and for a stable group")
        .argParser(parseTime).default(600_000, "10m"),
    )
    .addOption(
      new Option("--max-lag <duration>", "how far a replica may lag at the start; any for any lag")
        .argParser((text) => text === ANY ? ANY : parseTime(text)).default(5_000, "5s"),
    )
    .option("--no-hold", "do not hold planned failovers off")
    .option("--release-on-failure", "release the lease also after a failure once DDL began", false)
    .addHelpText("after", RUN_HELP)
    .action(async (command: string[], flags: RunFlags) => {
      exitWith(await commands.run(runOptions(system, command, flags)));
    });

  program.command(RUN_GUARD, { hidden: true })
    .description("Start the command of a run, and kill it when its supervisor is gone.")
    .argument("<socket>")
    .action(async (socketPath: string) => {
      exitWith(await commands.runGuard({ system, socketPath }));
    });
}

function runOptions(system: System, command: readonly string[], flags: RunFlags): RunOptions {
  const { url, caFile, tokenFile, group, instance } = flags;
  return {
    system,
    command,
    settings: { url, caFile, tokenFile, group, instance },
    operationId: flags.operation,
    ttlMs: flags.ttl,
    waitMs: flags.wait,
    maxLagMs: flags.maxLag === ANY ? null : flags.maxLag,
    hold: flags.hold,
    releaseOnFailure: flags.releaseOnFailure,
  };
}

/** Reads an option that is a duration, in milliseconds. @throws {InvalidArgumentError} */
export function parseTime(text: string): number {
  const milliseconds = parseDuration(text);
  if (milliseconds !== undefined) return milliseconds;
  throw new InvalidArgumentError("It must be a duration, for example 30s, 10m or 1m30s.");
}
