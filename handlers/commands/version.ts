/**
 * What `holdfast --version` prints.
 *
 * @module
 */

import type { Build } from "./build.ts";

/** The version, and what it was built from, in one line. The first word is the version alone. */
export function versionText({ version, source }: Build): string {
  if (source === null) return `${version} (from the source tree)`;
  return `${version} (commit ${source.commit}${source.changed ? ", with changes" : ""})`;
}
