/**
 * What an API server is, as far as this project relies on it: one list of facts, for the real one and for the one in
 * memory.
 *
 * @module
 */

import { ACCESS } from "./access_contract.ts";
import { CLIENT } from "./client_contract.ts";
import { CUSTOM_RESOURCES } from "./custom_resources_contract.ts";
import { LIBRARY } from "./library_contract.ts";
import { READS } from "./reads_contract.ts";
import type { Assertion } from "./scope.ts";
import { WATCHES } from "./watch_contract.ts";
import { WRITES } from "./writes_contract.ts";

/** All facts. Each is checked in a namespace of its own, in any order. */
export const CONTRACT: readonly Assertion[] = [
  ...WRITES,
  ...READS,
  ...CUSTOM_RESOURCES,
  ...WATCHES,
  ...ACCESS,
  ...CLIENT,
  ...LIBRARY,
];
