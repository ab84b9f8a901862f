/**
 * The option `--set` of the commands that read the configuration.
 *
 * @module
 */

import { InvalidArgumentError, Option } from "commander";
import type { OptionSetting } from "../../lib/config/layers.ts";

/** Makes the option: each one sets a key, a later one wins. */
export function settingOption(): Option {
  return new Option(
    "--set <key=value>",
    "set any key of the configuration; may be given many times",
  ).argParser(parseSetting).default([], "none");
}

/** Reads `KEY=VALUE`. */
function parseSetting(text: string, earlier: readonly OptionSetting[]): readonly OptionSetting[] {
  const equals = text.indexOf("=");
  if (equals < 1) throw new InvalidArgumentError("It must be KEY=VALUE.");
  const key = text.slice(0, equals).trim();
  return [...earlier, { option: `--set ${key}`, key, text: text.slice(equals + 1) }];
}
