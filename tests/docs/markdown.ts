/**
 * What tests read from the documents: fenced blocks, links, headings and tables.
 *
 * @module
 */

import { ROOT } from "../checks/shell.ts";

/** A fenced block. */
export interface Block {
  /** The word behind the fence, for example `sh`. */
  readonly language: string;
  readonly text: string;
}

/** A link, as it stands in a document. */
export interface Link {
  /** What it points at, without a title. */
  readonly target: string;
  /** From 1. */
  readonly line: number;
}

const FENCE = /^( *)```(\S*)[^\n]*\n([\s\S]*?)^\1```$/gm;
const LINK = /(?<!`)\[[^\]]*\]\(<?([^()\s>]+)>?(?:\s+"[^"]*")?\)/g;

/** Reads a document of the repository. */
export function readDocument(path: string): Promise<string> {
  return Deno.readTextFile(new URL(path, ROOT));
}

/** The fenced blocks of a document, in their order. The indentation of a block in a list is taken off. */
export function blocksIn(markdown: string): Block[] {
  return [...markdown.matchAll(FENCE)].map(([, indent = "", language = "", text = ""]) => ({
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
}

/** A document without its fenced blocks: as many lines, with nothing in them. */
export function withoutBlocks(markdown: string): string {
  return markdown.replaceAll(FENCE, (block) => block.replaceAll(/[^\n]/g, ""));
}

/** The links of a document, those in fenced blocks left out. */
export function linksIn(markdown: string): Link[] {
  return withoutBlocks(markdown).split("\n").flatMap((text, index) =>
    [...text.matchAll(LINK)].map(([, target = ""]) => ({ target, line: index + 1 }))
  );
}

/** The fragments that a document's headings have, as hosts of repositories make them. */
export function anchorsIn(markdown: string): ReadonlySet<string> {
  const headings = withoutBlocks(markdown).matchAll(/^#{1,6} +(.+?) *#*$/gm);
  const anchors = new Set<string>();
  for (const [, heading = ""] of headings) {
    const anchor = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
      .replaceAll(" ", "-");
    let name = anchor;
    for (let copy = 1; anchors.has(name); copy++) name = `${anchor}-${copy}`;
    anchors.add(name);
  }
  return anchors;
}

/** The cells of the rows of all tables, without heads and rules. */
export function tableRowsIn(markdown: string): string[][] {
  const lines = withoutBlocks(markdown).split("\n");
  const isRule = (line: string | undefined) => /^\|[ :|-]+\|$/.test(line ?? "");
  return lines.filter((line, at) => line.startsWith("|") && !isRule(line) && !isRule(lines[at + 1]))
    .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
}
