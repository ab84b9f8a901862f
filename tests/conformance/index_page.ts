/**
 * A page that says, item by item, which tests show what a contract asks for: how it is read, and what can be wrong with it.
 *
 * @module
 */

import type { SourceTexts } from "../checks/syntax.ts";

/** A test, by its file and its name. */
export interface NamedTest {
  readonly file: string;
  readonly name: string;
}

/** What the contract asks for, and what shows it. */
export interface Item {
  readonly number: number;
  readonly text: string;
  readonly notes: readonly string[];
  readonly tests: readonly NamedTest[];
}

/** The items of the page: a numbered list, and below each item its tests and what is to be said of it. */
export function itemsIn(page: string): Item[] {
  return page.split(/^(?=\d+\. )/m).slice(1).map((part) => {
    const [own = ""] = part.split(/^## /m);
    const [head = "", ...points] = own.split(/^ +- /m).map((text) =>
      text.trim().replaceAll(/\s+/g, " ")
    );
    const [, number = "", text = ""] = /^(\d+)\. (.*)$/.exec(head) ?? [];
    const tests: NamedTest[] = [];
    const notes: string[] = [];
    for (const point of points) {
      const [, file, target, name] = /^\[(tests\/[^\]]+)\]\(([^)]+)\): "(.+)"$/.exec(point) ?? [];
      if (file === undefined || name === undefined || target !== `../${file}`) notes.push(point);
      else tests.push({ file, name });
    }
    return { number: Number(number), text, notes, tests };
  });
}

/**
 * What is wrong with the items: one that is missing, there twice or none of the contract's, one without a test, and a test
 * that does not exist.
 *
 * @param sources The files of the repository.
 * @param count How many items the contract has.
 */
export function pageFaults(items: readonly Item[], sources: SourceTexts, count: number): string[] {
  const faults: string[] = [];
  const numbers = items.map(({ number }) => number);
  for (let number = 1; number <= count; number++) {
    const times = numbers.filter((found) => found === number).length;
    if (times !== 1) faults.push(`item ${number} is there ${times} times`);
  }
  for (const { number, text, notes, tests } of items) {
    if (number < 1 || number > count) faults.push(`item ${number} is none of the contract's`);
    if (text === "") faults.push(`item ${number} says nothing`);
    if (tests.length === 0 && !notes.some((note) => note.startsWith("Left to "))) {
      faults.push(`item ${number} has no test and does not say why`);
    }
    for (const note of notes.filter((note) => note.startsWith("["))) {
      faults.push(`item ${number}: not a link to a test and its name: ${note}`);
    }
    for (const { file, name } of tests) {
      const source = sources.get(file) ?? "";
      const exists = [`"${name}"`, `\`${name}\``].some((literal) => source.includes(literal));
      if (!exists) faults.push(`item ${number}: ${file} has no test "${name}"`);
    }
  }
  return faults;
}
