/**
 * The few words of SMT-LIB that the proofs need, written and read.
 *
 * @module
 */

/** One expression of SMT-LIB: an atom, or a list. */
export type Expression = string | readonly Expression[];

/** A name that stands in SMT-LIB as it is, whatever characters it has (but `|` and `\`). */
export function symbol(name: string): string {
  return `|${name}|`;
}

/** An integer; SMT-LIB has no negative literals. */
export function integer(value: number): string {
  return value < 0 ? `(- ${BigInt(-value)})` : String(BigInt(value));
}

/** A call; without arguments it is the name alone. */
export function apply(name: string, ...args: readonly string[]): string {
  return args.length === 0 ? name : `(${name} ${args.join(" ")})`;
}

/** All of them; true when there are none. */
export function and(terms: readonly string[]): string {
  if (terms.length === 0) return "true";
  return terms.length === 1 ? terms.join() : apply("and", ...terms);
}

/** Reads all expressions of a text. Quoted symbols lose their bars. */
export function parseExpressions(text: string): Expression[] {
  const tokens = text.match(/\|[^|]*\||"(?:[^"]|"")*"|[()]|[^\s()|"]+/g) ?? [];
  const stack: Expression[][] = [[]];
  for (const token of tokens) {
    const top = stack.at(-1);
    if (token === "(") {
      stack.push([]);
    } else if (token === ")") {
      const closed = stack.pop();
      const outer = stack.at(-1);
      if (closed === undefined || outer === undefined) {
        throw new Error(`Cannot read an answer of the solver as it closes too much: ${text}`);
      }
      outer.push(closed);
    } else {
      top?.push(token.startsWith("|") ? token.slice(1, -1) : token);
    }
  }
  const [all] = stack;
  if (all === undefined || stack.length !== 1) {
    throw new Error(`Cannot read an answer of the solver as it ends too early: ${text}`);
  }
  return all;
}
