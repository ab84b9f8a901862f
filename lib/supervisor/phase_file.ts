/**
 * The file in which a program says that DDL begins.
 *
 * @module
 */

import type { PhaseFile } from "./supervise.ts";
import type { PhaseText } from "./rules.ts";

/** A file of this user alone, empty at first. It is removed in the end. */
export class TemporaryPhaseFile implements PhaseFile, Disposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Makes the file. @throws What the platform says when the folder for temporary files takes none. */
  static make(): TemporaryPhaseFile {
    return new TemporaryPhaseFile(Deno.makeTempFileSync({ prefix: "holdfast-phase-" }));
  }

  read(): PhaseText {
    try {
      return { type: "read", text: Deno.readTextFileSync(this.path) };
    } catch {
      return { type: "unreadable" };
    }
  }

  [Symbol.dispose](): void {
    try {
      Deno.removeSync(this.path);
    } catch {
      // The program removed it.
    }
  }
}
