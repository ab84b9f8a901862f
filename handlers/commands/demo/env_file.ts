/**
 * The option `--env-file`: where the demo is, for scripts that wait for it.
 *
 * @module
 */

import { dirname } from "node:path";
import { toHex } from "../../../lib/runtime/entropy.ts";
import type { Entropy } from "../../../lib/runtime/entropy.ts";
import { RefusalError } from "../options.ts";

/** What the file says, by variable. */
export interface DemoVariables {
  /** The base URL of the service. */
  readonly HOLDFAST_URL: string;
  /** The path of the authority that signed its certificate, in PEM form. */
  readonly HOLDFAST_CA_FILE: string;
  /** The path of a file with the bearer token of a deployment client. */
  readonly HOLDFAST_TOKEN_FILE: string;
  /** The group. */
  readonly HOLDFAST_GROUP: string;
  /** The database that the token may deploy to. */
  readonly HOLDFAST_INSTANCE: string;
  /** The URL of the status page. */
  readonly HOLDFAST_STATUS_URL: string;
  /** The path of the administrator's kubeconfig. */
  readonly DEMO_KUBECONFIG: string;
}

/**
 * A file that is there, whole, once the demo is ready, and not before: one that an earlier demo left is removed first, so
 * that whoever waits for the file does not find the addresses of a demo that is gone.
 */
export class EnvFile {
  readonly #path: string;
  readonly #unfinished: string;

  private constructor(path: string, unfinished: string) {
    this.#path = path;
    this.#unfinished = unfinished;
  }

  /**
   * Makes sure that the file can be written later.
   *
   * @throws {RefusalError} It cannot.
   */
  static async prepare(path: string, entropy: Entropy): Promise<EnvFile> {
    const file = new EnvFile(path, `${path}.${toHex(entropy.bytes(4))}.tmp`);
    try {
      if (await isFolder(path)) throw new RefusalError(complaint(path, "it is a folder"));
      await Deno.writeTextFile(file.#unfinished, "", { createNew: true });
      await Deno.remove(file.#unfinished);
      await removeIfThere(path);
      return file;
    } catch (error) {
      if (error instanceof RefusalError) throw error;
      const why = error instanceof Deno.errors.NotFound
        ? `the folder ${dirname(path)} does not exist`
        : `the folder ${dirname(path)} takes no file of this user (${nameOf(error)})`;
      throw new RefusalError(complaint(path, why), { cause: error });
    }
  }

  /** Writes the file: a reader finds all of it or nothing. @throws {RefusalError} */
  async write(variables: DemoVariables): Promise<void> {
    try {
      await Deno.writeTextFile(this.#unfinished, renderDotenv(variables), { createNew: true });
      await Deno.rename(this.#unfinished, this.#path);
    } catch (error) {
      await removeIfThere(this.#unfinished);
      const message = complaint(this.#path, `the file system refuses it (${nameOf(error)})`);
      throw new RefusalError(message, { cause: error });
    }
  }
}

/** The dotenv form of variables. A shell can `source` it too. */
export function renderDotenv(variables: DemoVariables): string {
  return Object.entries(variables).map(([name, value]) => `${name}=${quoted(value)}\n`).join("");
}

function quoted(value: string): string {
  if (/^[\w./:@%+-]*$/.test(value)) return value;
  return `"${value.replace(/[\\"$\`]/g, "\\$&")}"`;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isDirectory;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function complaint(path: string, why: string): string {
  return `Cannot write the env file ${path} as ${why}: let --env-file name a file in a folder that can be written`;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "it failed";
}
