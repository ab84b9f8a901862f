/**
 * `deno task openapi`: writes the description of the deployment API, `docs/openapi.json`.
 *
 * @module
 */

import manifest from "../deno.json" with { type: "json" };
import { describeDeployApi } from "../handlers/http/openapi.ts";

/** Where the description is. */
export const DESCRIPTION = new URL("../docs/openapi.json", import.meta.url);

/** The text of the description. */
export function renderDescription(): string {
  return `${JSON.stringify(describeDeployApi(manifest.version), null, 2)}\n`;
}

if (import.meta.main) await Deno.writeTextFile(DESCRIPTION, renderDescription());
