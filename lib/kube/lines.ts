/**
 * From chunks of bytes to lines of text.
 *
 * @module
 */

/**
 * Splits a stream of UTF-8 into lines, however the chunks fall: a chunk may hold many lines, a part of one, or half a
 * character.
 *
 * ```ts
 * const splitter = new LineSplitter();
 * splitter.push(new TextEncoder().encode("one\ntw")); // ["one"]
 * splitter.push(new TextEncoder().encode("o\n")); // ["two"]
 * ```
 */
export class LineSplitter {
  readonly #decoder = new TextDecoder();
  #rest = "";

  /** Takes the next bytes and gives the lines that they complete, without their ends. Empty lines are left out. */
  push(chunk: Uint8Array): string[] {
    const [first = "", ...others] = this.#decoder.decode(chunk, { stream: true }).split("\n");
    // Only the new text is searched, so that a line of many chunks costs what it holds and not its square.
    this.#rest += first;
    if (others.length === 0) return [];
    const lines = [this.#rest, ...others];
    this.#rest = lines.pop() ?? "";
    return lines.filter((line) => line.trim() !== "");
  }
}
