/**
 * The demo's folder: certificates, tokens, kubeconfigs and the log of the service. It goes when the demo ends.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { join, resolve } from "node:path";
import { RefusalError } from "../options.ts";

/** Tokens and keys are for the user who runs the demo. */
const PRIVATE = { mode: 0o600 };

/** The name of the service's log in the folder. */
const LOG_FILE = "service.log";

/** A temporary folder of this user alone. */
export class DemoFolder implements AsyncDisposable {
  /** The absolute path. */
  readonly path: string;
  /** The path of the service's log. */
  readonly logPath: string;
  readonly #log: Deno.FsFile;

  private constructor(path: string, log: Deno.FsFile, logPath: string) {
    this.path = path;
    this.#log = log;
    this.logPath = logPath;
  }

  /** Makes the folder, with an empty log in it. @throws {RefusalError} The system's folder for these takes none. */
  static async create(): Promise<DemoFolder> {
    try {
      const path = resolve(await Deno.makeTempDir({ prefix: "holdfast-demo-" }));
      const logPath = join(path, LOG_FILE);
      const log = await Deno.open(logPath, { create: true, append: true, ...PRIVATE });
      return new DemoFolder(path, log, logPath);
    } catch (error) {
      const why = error instanceof Error ? error.name : "it failed";
      throw new RefusalError(
        `Cannot make a temporary folder (${why}): let TMPDIR name a folder that this user can write`,
        { cause: error },
      );
    }
  }

  /** Writes a file that only this user can read, and answers with its path. */
  async write(name: string, text: string): Promise<string> {
    const path = join(this.path, name);
    await Deno.writeTextFile(path, text, PRIVATE);
    return path;
  }

  /** Adds a line to the service's log. It is there at once, so that `tail -f` shows it. */
  readonly writeLog = (line: string): void => {
    let rest = new TextEncoder().encode(line);
    while (rest.length > 0) rest = rest.subarray(this.#log.writeSync(rest));
  };

  /** The last lines of the service's log. */
  async lastLogLines(count: number): Promise<readonly string[]> {
    return (await Deno.readTextFile(this.logPath)).trimEnd().split("\n").slice(-count);
  }

  /** Closes the log and removes the folder with all that is in it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#log.close();
    await Deno.remove(this.path, { recursive: true });
  }
}

/** What a kubeconfig says. */
export interface KubeconfigParts {
  /** The URL of the API server. */
  readonly server: string;
  readonly caPem: string;
  readonly token: string;
  /** The namespace of calls that name none. */
  readonly namespace: string;
}

/** The text of a kubeconfig with one context. JSON is YAML: nothing is gained by another way to write it. */
export function kubeconfig({ server, caPem, token, namespace }: KubeconfigParts): string {
  const name = "holdfast-demo";
  const authority = Buffer.from(caPem).toString("base64");
  return JSON.stringify(
    {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name, cluster: { server, "certificate-authority-data": authority } }],
      users: [{ name, user: { token } }],
      contexts: [{ name, context: { cluster: name, user: name, namespace } }],
      "current-context": name,
    },
    null,
    2,
  );
}
