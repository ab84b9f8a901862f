/**
 * The command line of `holdfast doctor`.
 *
 * @module
 */

import { type Command, Option } from "commander";
import type { System } from "../system.ts";

/** What `holdfast doctor` is given. */
export interface DoctorOptions {
  /** Where to look from. @default {the API where its URL is known, the cluster elsewhere} */
  readonly from: "api" | "cluster" | undefined;
  /** Where the API is, and who calls; the environment completes it. */
  readonly url: string | undefined;
  readonly caFile: string | undefined;
  readonly tokenFile: string | undefined;
  readonly group: string | undefined;
  readonly instance: string | undefined;
  /** The audience that the service asks for. @default {the one of the values} */
  readonly audience: string | undefined;
  /** The files of values that the service's manifests were made from; a later one wins, key by key. */
  readonly valuesFiles: readonly string[];
  /** The namespace of the service. It wins over the values. */
  readonly namespace: string | undefined;
  /** Print JSON. */
  readonly json: boolean;
  /** The machine. */
  readonly system: System;
}

const HELP = `
Who deploys looks through the API, with the settings of a deployment: the way to the service, its
certificate, the token, and one GET on the group. Nothing is granted, renewed or released. Who runs the
service looks at the cluster, by the kubeconfig of KUBECONFIG or ~/.kube/config; give the values of its
manifests with -f when they are not the defaults.

Each line is ok, warning, wrong or unseen (it cannot be told from here), with what to do below it.

Examples:
  holdfast doctor
  holdfast doctor --group orders --token-file /var/run/secrets/holdfast/token
  holdfast doctor --from cluster -f values.yaml --json

Exit codes: 0 nothing is wrong; 1 something is wrong; 2 wrong usage, or values that cannot be used`;

/** The options as commander gives them. */
interface Flags {
  readonly from?: "api" | "cluster";
  readonly url?: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
  readonly group?: string;
  readonly instance?: string;
  readonly audience?: string;
  readonly values: readonly string[];
  readonly namespace?: string;
  readonly json: boolean;
}

/** Adds the command. @param run Does it. */
export function addDoctorCommand(
  program: Command,
  system: System,
  run: (options: DoctorOptions) => Promise<void>,
): void {
  program.command("doctor")
    .description(
      "Look for what is wrong with a deployment's way to the service, or with the service.",
    )
    .addOption(
      new Option(
        "--from <where>",
        "where to look from; without it the API where its URL is known, else the cluster",
      ).choices(["api", "cluster"]),
    )
    .option("--url <url>", "the base URL of the service; else HOLDFAST_URL")
    .option("--ca-file <file>", "who signs the service's certificate; else HOLDFAST_CA_FILE")
    .option("--token-file <file>", "the service account token; else HOLDFAST_TOKEN_FILE")
    .option("--group <name>", "the group; else HOLDFAST_GROUP; for the cluster, only its clients")
    .option("--instance <name>", "the MysqlDatabase to deploy to; else HOLDFAST_INSTANCE")
    .option("--audience <name>", "the audience of the token; else that of the values")
    .addOption(
      new Option(
        "-f, --values <file>",
        "a YAML file of the service's values; may be given many times",
      )
        .argParser((file: string, earlier: readonly string[]) => [...earlier, file])
        .default([], "the defaults"),
    )
    .option("--namespace <name>", "the namespace of the service; else that of the values")
    .option("--json", "print JSON", false)
    .addHelpText("after", HELP)
    .action(async ({ values: valuesFiles, from, ...flags }: Flags) => {
      const { url, caFile, tokenFile, group, instance, audience, namespace, json } = flags;
      const caller = { url, caFile, tokenFile, group, instance, audience };
      await run({ from, ...caller, valuesFiles, namespace, json, system });
    });
}
