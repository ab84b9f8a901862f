/**
 * The command line of `holdfast manifests`: one sub-command for each kind of thing that can run in a cluster.
 *
 * Each sub-command has its arguments in a file of its own, and is loaded when it is called.
 *
 * @module
 */

import type { Command } from "commander";
import { addAppManifests, type AppManifestsOptions } from "./manifests/app_arguments.ts";
import { addServiceManifests, type ServiceManifestsOptions } from "./manifests/arguments.ts";
import type { System } from "./system.ts";

/** What is called. Each answers with an exit code. */
export interface ManifestsCommands {
  /** Writes what the service needs in a cluster. */
  manifestsService(options: ServiceManifestsOptions): Promise<number>;
  /** Writes what an application on the library needs in a cluster. */
  manifestsApp(options: AppManifestsOptions): Promise<number>;
}

const HELP = `
Examples:
  holdfast manifests service -f values.yaml | kubectl apply -f -
  holdfast manifests app --name web --image registry.example/web:1 --profile prod
  holdfast manifests help service`;

/** Adds `manifests` and its sub-commands. @param exitWith Gets the exit code. */
export function addManifestsCommand(
  program: Command,
  system: System,
  commands: ManifestsCommands,
  exitWith: (code: number) => void,
): void {
  const manifests = program.command("manifests")
    .description("Write what runs in a cluster as objects of Kubernetes.")
    .addHelpText("after", HELP);
  addServiceManifests(manifests, system, async (options) => {
    exitWith(await commands.manifestsService(options));
  });
  addAppManifests(manifests, system, async (options) => {
    exitWith(await commands.manifestsApp(options));
  });
}
