/**
 * Writes log lines: JSON for machines, text for people at a terminal.
 *
 * Every text passes the scrubbing rules first. That is a last line of defence: the callers already keep secrets out, and a
 * rule that hides too much is accepted here, one that hides too little is not.
 *
 * @module
 */

import { scrub } from "../kube/scrub.ts";
import type { Clock } from "../runtime/clock.ts";
import type { LogFields, Logger, LogValue } from "../runtime/log.ts";

/** How much is written: the level itself and what is graver. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** `json`: one object a line (deploy-api 11). `text`: for a terminal. */
export type LogFormat = "json" | "text";

/** What {@linkcode createLogger} takes. */
export interface LoggerOptions {
  /** Gets one line at a time, its line end included. What it throws is ignored. */
  readonly write: (line: string) => void;
  /** Gives the time of a line. */
  readonly clock: Pick<Clock, "wall">;
  /** @default {"info"} */
  readonly level?: LogLevel;
  /** @default {"json"} */
  readonly format?: LogFormat;
}

const GRAVITY: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Control characters, those of the terminal's second set included: JSON leaves the latter as they are. */
const CONTROL = /\p{Cc}/gu;

/** What a text may hold and still stand without quotes in the text format. */
const PLAIN_WORD = /^[\w.,:;/@+*()[\]{}<>~!?#$%&-]+$/;

/**
 * Makes a {@linkcode Logger}. The members of a JSON line are `time` (RFC 3339, UTC), `level` in capitals, `msg`, and then
 * the fields in the order in which they were given (deploy-api 11). A field cannot take the place of the first three.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { write, clock, level = "info", format = "json" } = options;
  const encode = format === "json" ? encodeJson : encodeText;

  function log(lineLevel: LogLevel, message: string, fields: LogFields = {}): void {
    if (GRAVITY[lineLevel] < GRAVITY[level]) return;
    // A log that throws would turn a line about a fault into a second fault.
    try {
      const time = new Date(clock.wall()).toISOString();
      write(`${encode(time, lineLevel.toUpperCase(), scrub(message), scrubFields(fields))}\n`);
    } catch {
      return;
    }
  }

  return {
    debug: (message, fields) => log("debug", message, fields),
    info: (message, fields) => log("info", message, fields),
    warn: (message, fields) => log("warn", message, fields),
    error: (message, fields) => log("error", message, fields),
  };
}

function scrubFields(fields: LogFields): [string, LogValue][] {
  return Object.entries(fields).map(([name, value]) => [name, scrubValue(value)]);
}

function scrubValue(value: LogValue): LogValue {
  if (typeof value === "string") return scrub(value);
  return Array.isArray(value) ? value.map((item) => scrub(item)) : value;
}

function encodeJson(
  time: string,
  level: string,
  msg: string,
  fields: [string, LogValue][],
): string {
  const head = { time, level, msg };
  return JSON.stringify({ ...head, ...Object.fromEntries(fields), ...head });
}

function encodeText(
  time: string,
  level: string,
  msg: string,
  fields: [string, LogValue][],
): string {
  const pairs = fields.map(([name, value]) => ` ${name}=${encodeTextValue(value)}`).join("");
  return escapeControls(`${time} ${level.padEnd(5)} ${msg}${pairs}`);
}

function encodeTextValue(value: LogValue): string {
  if (typeof value === "string") return PLAIN_WORD.test(value) ? value : JSON.stringify(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Keeps a text from another system from moving the cursor, or from looking like a line of its own. */
function escapeControls(line: string): string {
  return line.replace(
    CONTROL,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
