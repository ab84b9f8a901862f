/**
 * The log as the rest of the code sees it. What writes the lines is in `lib/host/log.ts`.
 *
 * @module
 */

/** A value that a log line can carry. Never a token, a hash, an Authorization header or the text of an upstream error. */
export type LogValue = string | number | boolean | null | readonly string[];

/** The fields of a log line, in the order in which they are written. */
export type LogFields = Readonly<Record<string, LogValue>>;

/** Writes structured log lines. It never throws. */
export interface Logger {
  /** For whoever looks for a fault in this program. */
  debug(message: string, fields?: LogFields): void;
  /** What happened, once per event. */
  info(message: string, fields?: LogFields): void;
  /** Something is wrong and the program goes on. */
  warn(message: string, fields?: LogFields): void;
  /** Something failed that was asked for. */
  error(message: string, fields?: LogFields): void;
}

/** A logger that writes nothing: for tests, and for library users who bring none. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
