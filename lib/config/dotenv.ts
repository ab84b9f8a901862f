/**
 * Reads `.env` files by the rules of kubernetes-plugin 2: no interpolation, and an error that shows the path and the line
 * number alone, since the line may hold a secret. No library that we know tells where a line is wrong: they skip it.
 *
 * @module
 */

/** A line of a `.env` file is wrong. The text of the line is in no member. */
export class DotenvError extends Error {
  override readonly name = "DotenvError";
  /** The file. */
  readonly path: string;
  /** The line, from 1. For a quote that is never closed, the line that opens it. */
  readonly line: number;

  constructor(path: string, line: number) {
    super(
      `Cannot read ${path} as line ${line} is not of the form NAME=value, NAME='value' or NAME="value"`,
    );
    this.path = path;
    this.line = line;
  }
}

const BLANK = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;
const NAME = /[^\S\n]*(?:export[^\S\n]+)?([A-Za-z_][A-Za-z0-9_.]*)[^\S\n]*=[^\S\n]*/y;
const SINGLE_QUOTED = /'([^']*)'/y;
const DOUBLE_QUOTED = /"([^"\\]*(?:\\[^][^"\\]*)*)"/y;
const BARE = /(?!['"])[^\n]*/y;

/** In a value without quotes, `#` begins a comment only where it cannot be a part of a word. */
const TRAILING_COMMENT = /(?:^|\s)#.*$/;

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

/**
 * Reads the text of a `.env` file.
 *
 * One `NAME=value` a line, `export` before it allowed. `#` begins a comment at the start of a line or after a space. Single
 * quotes keep everything; double quotes know `\n`, `\r`, `\t`, and a backslash before any other character stands for that
 * character; both may go over several lines. `$` has no meaning.
 *
 * @param path Names the file in an error.
 * @returns Names and values; of a name that is there twice, the first.
 * @throws {DotenvError} A line is not of that form.
 */
export function parseDotenv(path: string, text: string): ReadonlyMap<string, string> {
  const source = text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n");
  const values = new Map<string, string>();
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (match !== null) at += match[0].length;
    return match;
  };
  while (at < source.length) {
    const start = at;
    if (take(BLANK) !== null) continue;
    const name = take(NAME)?.[1];
    const value = name === undefined
      ? undefined
      : take(SINGLE_QUOTED)?.[1] ?? unescape(take(DOUBLE_QUOTED)?.[1]) ??
        take(BARE)?.[0].replace(TRAILING_COMMENT, "").trim();
    if (name === undefined || value === undefined || take(BLANK) === null) {
      throw new DotenvError(path, source.slice(0, start).split("\n").length);
    }
    if (!values.has(name)) values.set(name, value);
  }
  return values;
}

function unescape(quoted: string | undefined): string | undefined {
  return quoted?.replace(/\\([^])/g, (_, character: string) => ESCAPES[character] ?? character);
}
