/**
 * The room of the client as programs import it: with the clocks, the randomness and the files of the machine.
 *
 * It is here and not in lib, since this is the composition root: nothing else reads a clock by itself.
 *
 * @module
 */

import { readFile } from "node:fs/promises";
import process from "node:process";
import { clientFrom, type ClientSettings, type HoldfastClient } from "../../lib/client/mod.ts";
import { systemClock, systemEntropy } from "./system.ts";

export * from "../../lib/client/mod.ts";

/**
 * Makes a client from the environment: `HOLDFAST_URL`, `HOLDFAST_CA_FILE`, `HOLDFAST_TOKEN_FILE`, `HOLDFAST_GROUP` and
 * `HOLDFAST_INSTANCE`. It runs under Deno and under Node 20 and newer.
 *
 * ```ts
 * import { fromEnvironment } from "@holdfast/holdfast/client";
 *
 * const client = await fromEnvironment({ group: "orders" });
 * console.log((await client.observe()).activeSite);
 * ```
 *
 * @param settings What is given here wins over the environment.
 * @throws {ClientSettingsError} A setting is missing or cannot be used.
 */
export async function fromEnvironment(settings: ClientSettings = {}): Promise<HoldfastClient> {
  return await clientFrom(settings, {
    env: process.env,
    readTextFile: (path) => readFile(path, "utf8"),
    clock: systemClock,
    entropy: systemEntropy,
  });
}
