/**
 * The files of one run.
 *
 * @module
 */

import type { PhaseFile } from "./supervise.ts";
import type { PhaseText } from "./rules.ts";

/** A folder of this user alone, for the length of one run. */
export class RunFolder implements Disposable {
  readonly #path: string;
  /** Where the program says that DDL begins. Empty at first. */
  readonly phaseFile: PhaseFile;

  private constructor(path: string) {
    this.#path = path;
    this.phaseFile = phaseFileAt(`${path}/phase`);
  }

  /** Makes the folder. @throws What the platform says when the folder for temporary files takes none. */
  static make(): RunFolder {
    return new RunFolder(Deno.makeTempDirSync({ prefix: "holdfast-run-" }));
  }

  /** Where the supervisor and its guard talk. */
  get socketPath(): string {
    return `${this.#path}/guard`;
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.#path, { recursive: true });
  }
}

function phaseFileAt(path: string): PhaseFile {
  Deno.writeTextFileSync(path, "", { createNew: true, mode: 0o600 });
  return {
    path,
    read(): PhaseText {
      try {
        return { type: "read", text: Deno.readTextFileSync(path) };
      } catch {
        return { type: "unreadable" };
      }
    },
  };
}
