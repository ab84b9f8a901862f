/**
 * The settings of a client: given, or read from the environment.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import { HoldfastClient } from "./client.ts";
import { ClientSettingsError } from "./errors.ts";
import { checkedAuthorities, httpsFetch } from "./https_fetch.ts";

/** Where the token is when nothing else is said: a projected token for the service's audience. */
export const DEFAULT_TOKEN_FILE = "/var/run/secrets/holdfast/token";

/** Where a client calls, and who it is. What is left out comes from the environment. */
export interface ClientSettings {
  /** @default {HOLDFAST_URL} */
  readonly url?: string;
  /** The file with the authority of the service's certificate, PEM. @default {HOLDFAST_CA_FILE; else the platform's} */
  readonly caFile?: string;
  /** @default {HOLDFAST_TOKEN_FILE; else "/var/run/secrets/holdfast/token"} */
  readonly tokenFile?: string;
  /** @default {HOLDFAST_GROUP} */
  readonly group?: string;
  /** @default {HOLDFAST_INSTANCE} */
  readonly instance?: string;
}

/** What a client needs of the machine. */
export interface ClientPlatform {
  /** The environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The text of a file. It rejects or throws when the file cannot be read. */
  readonly readTextFile: (path: string) => Promise<string>;
  readonly clock: Clock;
  readonly entropy: Entropy;
}

/** Settings with nothing left out; `caFile` is empty for the platform's authorities. */
export type EffectiveSettings = Required<ClientSettings>;

/**
 * Completes settings from the environment. An empty variable counts as not set.
 *
 * @throws {ClientSettingsError} One is missing: the message names the option and the variable.
 */
export function completeSettings(
  given: ClientSettings,
  env: ClientPlatform["env"],
): EffectiveSettings {
  return {
    url: required("url", "HOLDFAST_URL", given.url ?? env.HOLDFAST_URL),
    caFile: given.caFile ?? env.HOLDFAST_CA_FILE ?? "",
    tokenFile: given.tokenFile ?? (env.HOLDFAST_TOKEN_FILE || DEFAULT_TOKEN_FILE),
    group: required("group", "HOLDFAST_GROUP", given.group ?? env.HOLDFAST_GROUP),
    instance: required("instance", "HOLDFAST_INSTANCE", given.instance ?? env.HOLDFAST_INSTANCE),
  };
}

/**
 * Makes a client from settings and the environment. The token's file is read before each request, the authority's once.
 *
 * @throws {ClientSettingsError} A setting is missing or cannot be used.
 */
export async function clientFrom(
  given: ClientSettings,
  platform: ClientPlatform,
): Promise<HoldfastClient> {
  const { clock, entropy, env, readTextFile } = platform;
  const { url, caFile, tokenFile, group, instance } = completeSettings(given, env);
  const authorities = caFile === ""
    ? undefined
    : checkedAuthorities(await readAuthority(caFile, readTextFile), caFile);
  return new HoldfastClient({
    url,
    group,
    instance,
    token: () => readTextFile(tokenFile),
    fetch: httpsFetch(authorities),
    clock,
    entropy,
  });
}

function required(option: string, variable: string, value: string | undefined): string {
  if (value !== undefined && value !== "") return value;
  throw new ClientSettingsError(
    `Cannot call the service as '${option}' is not set: give the option, or set ${variable}`,
  );
}

async function readAuthority(
  path: string,
  readTextFile: ClientPlatform["readTextFile"],
): Promise<string> {
  try {
    return await readTextFile(path);
  } catch (cause) {
    throw new ClientSettingsError(
      `Cannot read the authority of the service in '${path}': HOLDFAST_CA_FILE must name a file that can be read`,
      { cause },
    );
  }
}
