/**
 * `holdfast manifests app`: what an application on the library needs in its cluster, from its own configuration.
 *
 * @module
 */

import { ConfigError } from "../../../lib/config/errors.ts";
import { libraryPurpose, loadConfig } from "../../../lib/config/layers.ts";
import { PROFILE_VARIABLES, selectProfile } from "../../../lib/config/profile.ts";
import { appInputOf, appManifests, ManifestError, renderYaml } from "../../../lib/manifests/mod.ts";
import { CommandFault, FAILED, USAGE } from "../faults.ts";
import type { System } from "../system.ts";
import type { AppManifestsOptions } from "./app_arguments.ts";

/**
 * Writes the manifests.
 *
 * @returns The exit code: 0 written; 1 the configuration cannot be used; 2 no profile is named, or an option cannot be used.
 */
export function manifestsApp(options: AppManifestsOptions): Promise<number> {
  const { system } = options;
  try {
    system.stdout.write(render(options));
    return Promise.resolve(0);
  } catch (error) {
    const code = exitCodeOf(error);
    if (code === null || !(error instanceof Error)) return Promise.reject(error);
    for (const line of error.message.split("\n")) system.stderr.write(`holdfast: ${line}\n`);
    return Promise.resolve(code);
  }
}

function exitCodeOf(error: unknown): number | null {
  if (error instanceof CommandFault) return error.exitCode;
  if (error instanceof ManifestError) return USAGE;
  return error instanceof ConfigError ? FAILED : null;
}

function render(options: AppManifestsOptions): string {
  const { system, name, image, replicas, preStopSeconds, bufferSeconds, json } = options;
  const profile = chosenProfile(system, options.profile);
  const { config } = loadConfig({
    env: system.env,
    readTextFile: system.readTextFile,
    profile: options.profile,
    options: options.settings,
    purpose: libraryPurpose,
  });
  const configured = appInputOf(config);
  const objects = appManifests({
    ...configured,
    ...{ name, image, replicas, preStopSeconds, bufferSeconds },
    namespace: options.namespace ?? configured.namespace,
    env: { AUTUMN_ENV: profile, ...Object.fromEntries(options.env) },
    readOnlyRootFilesystem: !options.writableRoot,
  });
  if (!json) return renderYaml(objects);
  return `${JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }, null, 2)}\n`;
}

/**
 * The profile that the configuration is read for. There must be one: without, the times of the end would be a guess, and
 * `default` means none.
 */
function chosenProfile({ env, stderr }: System, wanted: string | undefined): string {
  const choice = selectProfile(env, wanted);
  if (choice.problem !== undefined) throw new CommandFault(choice.problem.message, USAGE);
  const name = choice.value?.name;
  if (name === undefined) {
    throw new CommandFault(
      "Cannot make the manifests of an application without a profile: give --profile with the one that it will run in",
      USAGE,
    );
  }
  if (wanted !== undefined && wanted !== "" && wanted !== name) {
    const variable = PROFILE_VARIABLES.find((each) => env[each] === name);
    stderr.write(
      `holdfast: warning: the manifests are for the profile ${name} of ${variable}, and not for --profile ${wanted}\n`,
    );
  }
  return name;
}
