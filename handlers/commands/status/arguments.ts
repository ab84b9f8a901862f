/**
 * The command line of `holdfast status`.
 *
 * @module
 */

import { type Command, Option } from "commander";
import type { StatusOptions } from "../options.ts";
import type { System } from "../system.ts";

const HELP = `
Who deploys looks through the API: set HOLDFAST_URL, HOLDFAST_CA_FILE, HOLDFAST_TOKEN_FILE and
HOLDFAST_GROUP, or give the options. Who runs the databases looks at the cluster, by the kubeconfig of
KUBECONFIG or ~/.kube/config, and sees all groups, who holds a lease and since when, and the gate.

A terminal gets a table, a pipe one line for each thing. --watch shows every change until Ctrl+C.

Examples:
  holdfast status
  holdfast status --group orders --watch
  holdfast status --namespace database --all
  holdfast status --from cluster --json

Exit codes: 0 all was read, 1 something could not be read or there is no such group, 2 wrong usage,
111 the service or the cluster cannot be reached, 112 it does not allow it`;

/** The options as commander gives them. */
interface StatusFlags {
  readonly group?: string;
  readonly namespace?: string;
  readonly from?: "api" | "cluster";
  readonly url?: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
  readonly all: boolean;
  readonly watch: boolean;
  readonly json: boolean;
}

/** Adds the command. @param run Does it. */
export function addStatusCommand(
  program: Command,
  system: System,
  run: (options: StatusOptions) => Promise<void>,
): void {
  program.command("status")
    .description("Show the groups: where they are, who holds them, and what waits.")
    .option("--group <name>", "only this group")
    .option("--namespace <name>", "only this namespace of the cluster")
    .addOption(
      new Option(
        "--from <where>",
        "where to look; without it the API where its URL is known, else the cluster",
      ).choices(["api", "cluster"]),
    )
    .option("--url <url>", "the base URL of the service; else HOLDFAST_URL")
    .option("--ca-file <file>", "who signs the service's certificate; else HOLDFAST_CA_FILE")
    .option("--token-file <file>", "the service account token; else HOLDFAST_TOKEN_FILE")
    .option("--all", "what has ended too: tombstones of revoked leases, and operations", false)
    .option("--watch", "show every change until Ctrl+C", false)
    .option("--json", "print JSON; with --watch one line for each change", false)
    .addHelpText("after", HELP)
    .action(async (flags: StatusFlags) => {
      const { group, namespace, from, url, caFile, tokenFile, all, watch, json } = flags;
      const settings = { group, url, caFile, tokenFile };
      await run({ from, settings, namespace, all, watch, json, system });
    });
}
