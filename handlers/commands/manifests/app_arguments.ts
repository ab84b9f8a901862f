/**
 * The command line of `holdfast manifests app`.
 *
 * @module
 */

import { type Command, InvalidArgumentError, Option } from "commander";
import type { OptionSetting } from "../../../lib/config/layers.ts";
import { settingOption } from "../setting_option.ts";
import type { System } from "../system.ts";

/** What `holdfast manifests app` is given. */
export interface AppManifestsOptions {
  readonly name: string;
  readonly image: string;
  /** @default {`kubernetes.namespace`, else `default`} */
  readonly namespace: string | undefined;
  /** The profile that the command line names. The environment wins over it; one of them must. */
  readonly profile: string | undefined;
  /** @default {2} */
  readonly replicas: number | undefined;
  /** @default {5} */
  readonly preStopSeconds: number | undefined;
  /** @default {10} */
  readonly bufferSeconds: number | undefined;
  /** Variables of the container. */
  readonly env: ReadonlyMap<string, string>;
  /** Keys of the configuration. */
  readonly settings: readonly OptionSetting[];
  /** The container may write to the image's own files. */
  readonly writableRoot: boolean;
  /** Print one List in JSON. */
  readonly json: boolean;
  /** The machine. */
  readonly system: System;
}

const HELP = `
Run it where the application's holdfast.yaml is: the port, the probes, the role, the times of the end,
the election, the ConfigMaps and the Events are read from there, for the profile that will run.

A profile must be named. The times of the end depend on it, and a guess would have Kubernetes kill the
application too early. The container gets it as AUTUMN_ENV.

Examples:
  holdfast manifests app --name web --image registry.example/web:1 --profile prod
  holdfast manifests app --name web --image web:1 --profile prod --namespace shop --replicas 3
  holdfast manifests app --name web --image web:1 --profile prod --env ZONE=a --json

Exit codes: 0 written, 1 the configuration cannot be used, 2 wrong usage, or no profile`;

/** The options as commander gives them. */
interface Flags {
  readonly name: string;
  readonly image: string;
  readonly namespace?: string;
  readonly profile?: string;
  readonly replicas?: number;
  readonly preStopSecs?: number;
  readonly bufferSecs?: number;
  readonly env: ReadonlyMap<string, string>;
  readonly set: readonly OptionSetting[];
  readonly writableRoot: boolean;
  readonly json: boolean;
}

/** Adds the sub-command. @param run Does it. */
export function addAppManifests(
  manifests: Command,
  system: System,
  run: (options: AppManifestsOptions) => Promise<void>,
): void {
  manifests.command("app")
    .description("Write the manifests of an application that is built on the library.")
    .requiredOption("--name <name>", "the name of the application and of all its objects")
    .requiredOption("--image <image>", "the image of its container")
    .option("--namespace <name>", "the namespace; else kubernetes.namespace, else default")
    .option("--profile <name>", "the profile it will run in; AUTUMN_ENV and AUTUMN_PROFILE win")
    .option("--replicas <number>", "how many replicas; 2 without it", parseCount)
    .option("--pre-stop-secs <number>", "seconds of sleep before SIGTERM; 5 without it", parseCount)
    .option(
      "--buffer-secs <number>",
      "seconds that Kubernetes waits beyond all others; 10 without it",
      parseCount,
    )
    .addOption(
      new Option("--env <name=value>", "set a variable of the container; may be given many times")
        .argParser(parseVariable).default(new Map(), "none"),
    )
    .addOption(settingOption())
    .option("--writable-root", "let the container write to the image's own files", false)
    .option("--json", "print one List in JSON instead of YAML", false)
    .addHelpText("after", HELP)
    .action(async (flags: Flags) => {
      const { set: settings, preStopSecs: preStopSeconds, bufferSecs: bufferSeconds } = flags;
      const { name, image, namespace, profile, replicas, env, writableRoot, json } = flags;
      await run({
        ...{ name, image, namespace, profile, replicas, preStopSeconds, bufferSeconds },
        ...{ env, settings, writableRoot, json, system },
      });
    });
}

function parseCount(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(count)) return count;
  throw new InvalidArgumentError("It must be a whole number of 0 or more.");
}

/** Reads `NAME=VALUE`. */
function parseVariable(
  text: string,
  earlier: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const equals = text.indexOf("=");
  if (equals < 1) throw new InvalidArgumentError("It must be NAME=VALUE.");
  return new Map([...earlier, [text.slice(0, equals), text.slice(equals + 1)]]);
}
