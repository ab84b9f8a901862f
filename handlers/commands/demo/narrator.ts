/**
 * How the demo speaks: plain text, in lines that fit a terminal.
 *
 * @module
 */

import type { TextOutput } from "../system.ts";
import type { ToldStep } from "./story.ts";

/** Columns of a line. */
const WIDTH = 100;

/** Columns before the text of a step. */
const INDENT = "   ";

/** Tells what happens, as it happens. */
export class Narrator {
  readonly #output: TextOutput;

  constructor(output: TextOutput) {
    this.#output = output;
  }

  /** A line as it is: commands stay whole, so that they can be copied. */
  line(text = ""): void {
    this.#output.write(`${text}\n`);
  }

  /** Lines as they are, one below the other. */
  lines(texts: readonly string[]): void {
    for (const text of texts) this.line(text);
  }

  /** Text that is broken into lines. */
  paragraph(text: string): void {
    this.lines(wrap(text, ""));
  }

  /** A fact with its name. */
  fact(name: string, text: string): void {
    this.line(`  ${name.padEnd(12)} ${text}`);
  }

  /** The title of a part of the story. */
  part(title: string): void {
    this.line();
    this.line(title);
    this.line("-".repeat(title.length));
  }

  /** A step of the story: what was called and answered, what happened, and why it matters. */
  step({ number, title, call, status, what, why }: ToldStep): void {
    this.line();
    this.line(`${number}. ${title}`);
    this.line(`${INDENT}${call} -> ${status}`);
    this.lines(wrap(what, INDENT));
    this.lines(wrap(`Why: ${why}`, INDENT));
  }
}

/**
 * Breaks a text into lines of at most 100 columns. A word that is longer stays whole.
 *
 * @param indent Stands before each line.
 */
export function wrap(text: string, indent: string): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent.length + line.length + 1 + word.length > WIDTH) {
      lines.push(indent + line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, indent + line];
}
