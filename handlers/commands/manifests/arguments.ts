/**
 * The command line of `holdfast manifests service`.
 *
 * @module
 */

import { type Command, Option } from "commander";
import type { System } from "../system.ts";

/** What `holdfast manifests service` is given. */
export interface ServiceManifestsOptions {
  /** The files of values; a later one wins, key by key. None takes the defaults. */
  readonly valuesFiles: readonly string[];
  /** Write one file for each object, and a kustomization, into this folder. */
  readonly outputDir: string | undefined;
  /** Write one YAML file. */
  readonly outputFile: string | undefined;
  /** Write the definitions of the custom kinds too. */
  readonly withCrds: boolean;
  /** Show what would change in the cluster instead. */
  readonly diff: boolean;
  /** Print the JSON schema of the values instead. */
  readonly schema: boolean;
  /** The machine. */
  readonly system: System;
}

const HELP = `
The values are those of the reference chart, and more; without a file all have their defaults. See
deploy/values.yaml, and --schema for an editor.

One YAML stream goes to the standard output. --output-file writes it to a file, and --output-dir writes
a file for each object with a kustomization.yaml. Both replace what was there as a whole, or not at all.

Examples:
  holdfast manifests service -f values.yaml | kubectl apply -f -
  holdfast manifests service -f values.yaml --output-dir holdfast && kubectl apply -k holdfast
  holdfast manifests service -f values.yaml --diff

Exit codes: 0 written, or no difference; 1 refused or failed, or --diff found a difference; 2 wrong usage or
values that cannot be used; 111 the cluster cannot be reached; 112 it does not allow it`;

/** The options as commander gives them. */
interface Flags {
  readonly values: readonly string[];
  readonly outputDir?: string;
  readonly outputFile?: string;
  readonly withCrds: boolean;
  readonly diff: boolean;
  readonly schema: boolean;
}

/** Adds the sub-command. @param run Does it. */
export function addServiceManifests(
  manifests: Command,
  system: System,
  run: (options: ServiceManifestsOptions) => Promise<void>,
): void {
  manifests.command("service")
    .description("Write the manifests of the service itself.")
    .addOption(
      new Option("-f, --values <file>", "a YAML file of values; may be given many times")
        .argParser((file: string, earlier: readonly string[]) => [...earlier, file])
        .default([], "the defaults"),
    )
    .addOption(
      new Option("--output-dir <folder>", "write a folder with a kustomization")
        .conflicts(["outputFile", "diff", "schema"]),
    )
    .addOption(
      new Option("--output-file <file>", "write one YAML file").conflicts(["diff", "schema"]),
    )
    .option("--with-crds", "with the definitions of the custom kinds, for a new cluster", false)
    .option("--diff", "show what would change in the cluster of the kubeconfig", false)
    .option("--schema", "print the JSON schema of the values", false)
    .addHelpText("after", HELP)
    .action(async (flags: Flags) => {
      const { values: valuesFiles, outputDir, outputFile, withCrds, diff, schema } = flags;
      await run({ valuesFiles, outputDir, outputFile, withCrds, diff, schema, system });
    });
}
