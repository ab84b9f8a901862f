/**
 * `holdfast config`: the effective configuration, with the source of every value.
 *
 * @module
 */
import { inOneLine } from "../../lib/config/errors.ts";
import type { ConfigEntry, ConfigReading } from "../../lib/config/layers.ts";
import type { RawValue } from "../../lib/config/keys.ts";
import type { TextOutput } from "./system.ts";

/** What stands for a value that must not be shown. */
const HIDDEN = "(hidden)";

/** The value of a key as it may be shown. An empty secret is shown as empty: that it is not set is no secret. */
function visible({ value, secret }: ConfigEntry): RawValue {
  return secret && value !== "" ? HIDDEN : value;
}

/**
 * Writes the configuration as a `holdfast.yaml`, with the source of every value in a comment.
 *
 * @param entries The keys, those of one section together.
 */
export function renderYaml(entries: readonly ConfigEntry[]): string {
  let open: readonly string[] = [];
  const lines: string[] = [];
  for (const entry of entries) {
    const parts = entry.key.split(".");
    const sections = parts.slice(0, -1);
    const shared = sections.findIndex((section, depth) => section !== open[depth]);
    sections.forEach((section, depth) => {
      if (shared >= 0 && depth >= shared) lines.push(`${"  ".repeat(depth)}${section}:`);
    });
    open = sections;
    // JSON is YAML, and keeps any text in one line.
    const value = JSON.stringify(visible(entry));
    lines.push(
      `${"  ".repeat(sections.length)}${parts.at(-1)}: ${value} # ${inOneLine(entry.source)}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

/** Writes the configuration, and what is wrong with it, as one JSON document. */
export function renderJson({ entries, problems }: ConfigReading): string {
  const keys = entries.map((entry) => ({
    key: entry.key,
    value: visible(entry),
    source: entry.source,
  }));
  return `${JSON.stringify({ keys, problems }, null, 2)}\n`;
}

/**
 * Shows the configuration. What is wrong with it goes to the error output, one line each, so that what is right can still
 * be seen.
 *
 * @returns The exit code: 0, or 1 when the configuration cannot be used.
 */
export function showConfig(
  reading: ConfigReading,
  json: boolean,
  stdout: TextOutput,
  stderr: TextOutput,
): number {
  stdout.write(json ? renderJson(reading) : renderYaml(reading.entries));
  for (const { message } of reading.problems) stderr.write(`holdfast: ${message}\n`);
  return reading.problems.length === 0 ? 0 : 1;
}
