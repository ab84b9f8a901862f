/**
 * The command line: what there is, how it is explained, and what each command is given.
 *
 * @module
 */
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { ConfigError } from "../../lib/config/errors.ts";
import {
  type ConfigInput,
  loadConfig,
  type OptionSetting,
  readConfig,
  servicePurpose,
} from "../../lib/config/layers.ts";
import { renderReference } from "../../lib/config/reference.ts";
import { showConfig } from "./config.ts";
import {
  type DemoOptions,
  RefusalError,
  type RevokeOptions,
  type ServeOptions,
  type StatusOptions,
} from "./options.ts";
import { addManifestsCommand, type ManifestsCommands } from "./manifests.ts";
import { addDoctorCommand, type DoctorOptions } from "./doctor/arguments.ts";
import { addRevokeCommand } from "./revoke/arguments.ts";
import { addStatusCommand } from "./status/arguments.ts";
import { addRunCommands, parseTime, type RunCommands } from "./run/command_line.ts";
import { settingOption } from "./setting_option.ts";
import type { System } from "./system.ts";
import { build } from "./build.ts";
import { versionText } from "./version.ts";

/** The exit code of a command line that cannot be understood. */
const USAGE = 2;

/** The exit code of a command that refuses to start. */
const REFUSED = 1;

/** The commands that are loaded only when they are called, so that help is quick. Each answers with an exit code. */
export interface Commands extends RunCommands, ManifestsCommands {
  /** Runs the service until it is asked to stop. */
  serve(options: ServeOptions): Promise<number>;
  /** Plays the story on an embedded API server. */
  demo(options: DemoOptions): Promise<number>;
  /** Shows the groups. */
  status(options: StatusOptions): Promise<number>;
  /** Takes leases from their holders. */
  revoke(options: RevokeOptions): Promise<number>;
  /** Looks for what is wrong. */
  doctor(options: DoctorOptions): Promise<number>;
}

/** The options of all commands that read the configuration, as commander gives them. */
interface ConfigFlags {
  readonly profile?: string;
  readonly set: readonly OptionSetting[];
  readonly leaderElect?: string | true;
}

/** How long a reader of the demo gets for each step, in milliseconds: the whole story stays within 30 s. */
const DEMO_PACE_MS = 700;

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("It must be a whole number from 0 to 65535.");
}

function addConfigFlags(command: Command): Command {
  return command
    .option("--profile <name>", "the profile; AUTUMN_ENV and AUTUMN_PROFILE win over it")
    .addOption(settingOption())
    .option("--leader-elect [boolean]", "set kubernetes.leader_election.enabled");
}

function configInput(system: System, flags: ConfigFlags): ConfigInput {
  const { leaderElect } = flags;
  const election: readonly OptionSetting[] = leaderElect === undefined ? [] : [{
    option: "--leader-elect",
    key: "kubernetes.leader_election.enabled",
    text: String(leaderElect),
  }];
  return {
    env: system.env,
    readTextFile: system.readTextFile,
    profile: flags.profile,
    options: [...flags.set, ...election],
    purpose: {
      ...servicePurpose,
      defaults: {
        ...servicePurpose.defaults,
        "log.format": system.stdout.isTerminal ? "text" : "json",
      },
    },
  };
}

const SERVE_HELP = `
The configuration is read from holdfast.yaml, the files of the profile, and the environment.
See it with: holdfast config

Examples:
  holdfast serve
  holdfast serve --profile prod
  holdfast serve --set deploy_api.enabled=true --set tls.cert_file=tls.crt --set tls.key_file=tls.key

Exit codes: 0 stopped as asked, 1 refused to start or failed, 2 wrong usage`;

const DEMO_HELP = `
Needs no cluster and no configuration: it brings an API server in memory, a certificate authority
and tokens. Its status page shows the story as it happens. After the story it stays up and prints curl
lines for each step.

Examples:
  holdfast demo
  holdfast demo --once
  holdfast demo --env-file demo.env --port 9443
  holdfast demo --pace 5s`;

const CONFIG_HELP = `
The output is a holdfast.yaml, with the source of every value in a comment.

Examples:
  holdfast config
  holdfast config --profile prod --json
  HOLDFAST__LOG__LEVEL=debug holdfast config

Exit codes: 0 it can be used, 1 it cannot (the reasons are on the error output), 2 wrong usage`;

const PROGRAM_HELP = `
Start here:
  holdfast demo            see it at work on this machine, in half a minute
  holdfast config          see the configuration and where each value comes from
  holdfast serve           run the service against a cluster
  holdfast run             run a command under a lease of the service
  holdfast status          see the groups, who holds them, and what waits
  holdfast revoke          take leases from their holders
  holdfast doctor          find out what is wrong: ok, wrong, and what to do
  holdfast manifests       write what runs in a cluster as objects of Kubernetes
  holdfast help <command>  what a command does, with examples`;

/**
 * Reads a command line and runs what it asks for.
 *
 * @param args The arguments, without the program's name.
 * @param system The machine.
 * @param commands The commands that do the work.
 * @returns The exit code: that of the command; 2 for wrong usage; 1 when the command refuses to start, with the reason on
 * the error output, one line for each.
 */
export async function runCommandLine(
  args: readonly string[],
  system: System,
  commands: Commands,
): Promise<number> {
  let exitCode = 0;
  const program = new Command("holdfast")
    .description(
      "Keeps an application's deployment and the database's planned failover out of each other's way.",
    )
    .version(versionText(build), "-V, --version", "print the version and the commit")
    .configureOutput({
      writeOut: (text) => system.stdout.write(text),
      writeErr: (text) => system.stderr.write(text),
      getOutHelpWidth: () => 100,
      getErrHelpWidth: () => 100,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride()
    .showHelpAfterError("Run 'holdfast --help', or 'holdfast help <command>', for what there is")
    .addHelpText("after", PROGRAM_HELP);

  addConfigFlags(program.command("serve"))
    .description("Run the service against a Kubernetes cluster.")
    .addHelpText("after", SERVE_HELP)
    .action(async (flags: ConfigFlags) => {
      const { config, sources } = loadConfig(configInput(system, flags));
      const writeLog = (line: string) => system.stdout.write(line);
      exitCode = await commands.serve({ config, sources, system, writeLog });
    });

  program.command("demo")
    .description("Play a deployment's story against an API server in memory.")
    .option("--env-file <file>", "write the demo's addresses and files there once all is ready")
    .option(
      "--once",
      "end after the story: exit code 0 when it went well, 1 when it did not",
      false,
    )
    .option("--port <number>", "the port of the service; 0 takes a free one", parsePort)
    .addOption(
      new Option(
        "--pace <duration>",
        "wait so long after each step, to follow it on the status page",
      )
        .argParser(parseTime)
        .default(system.stdout.isTerminal ? DEMO_PACE_MS : 0, "700ms on a terminal, 0 elsewhere"),
    )
    .addHelpText("after", DEMO_HELP)
    .action(async (flags: { envFile?: string; once: boolean; port?: number; pace: number }) => {
      const { envFile, once, port, pace: paceMs } = flags;
      exitCode = await commands.demo({ envFile, once, port, paceMs, system });
    });

  addStatusCommand(program, system, async (options) => {
    exitCode = await commands.status(options);
  });

  addRevokeCommand(program, system, async (options) => {
    exitCode = await commands.revoke(options);
  });

  addDoctorCommand(program, system, async (options) => {
    exitCode = await commands.doctor(options);
  });

  addConfigFlags(program.command("config"))
    .description("Print the effective configuration and the source of every value.")
    .option("--json", "print JSON", false)
    .option("--reference", "print the reference page of all keys instead", false)
    .addHelpText("after", CONFIG_HELP)
    .action((flags: ConfigFlags & { json: boolean; reference: boolean }) => {
      if (flags.reference) return system.stdout.write(renderReference());
      const reading = readConfig(configInput(system, flags));
      exitCode = showConfig(reading, flags.json, system.stdout, system.stderr);
    });

  addRunCommands(program, system, commands, (code) => void (exitCode = code));

  addManifestsCommand(program, system, commands, (code) => void (exitCode = code));

  try {
    await program.parseAsync(args, { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    if (!(error instanceof ConfigError || error instanceof RefusalError)) throw error;
    for (const line of error.message.split("\n")) system.stderr.write(`holdfast: ${line}\n`);
    return REFUSED;
  }
}
