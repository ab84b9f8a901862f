/**
 * Which program this is. `deno task compile` puts a module of the same form in the place of this one, with the commit in it.
 *
 * @module
 */

import manifest from "../../deno.json" with { type: "json" };

/** What a program was built from. */
export interface Build {
  /** The version of the product. */
  readonly version: string;
  /** What the source was; `null` where the program runs from its source, which nobody can name. */
  readonly source: {
    /** The commit, 40 hexadecimal digits. */
    readonly commit: string;
    /** True when the files were not those of the commit. */
    readonly changed: boolean;
  } | null;
}

/** This program, from its source. */
export const build: Build = { version: manifest.version, source: null };
