/**
 * What a supervisor and its guard say to each other: one line each.
 *
 * @module
 */

/** What a guard is told. */
export type GuardOrder =
  /** Kill at this instant of the guard's own clock, in milliseconds. The newest one counts. */
  | { readonly type: "kill-at"; readonly atMs: number }
  /** The process group to kill. */
  | { readonly type: "watch"; readonly group: number }
  /** The group is gone. End, and kill nothing. */
  | { readonly type: "done" };

/** Writes an order. */
export function formatOrder(order: GuardOrder): string {
  switch (order.type) {
    case "kill-at":
      return `kill-at ${order.atMs}\n`;
    case "watch":
      return `watch ${order.group}\n`;
    case "done":
      return "done\n";
  }
}

/**
 * Reads an order; `null` for a line that is none.
 *
 * A group is above 1: 0 means the reader's own group, and 1 every process of the machine.
 */
export function parseOrder(line: string): GuardOrder | null {
  const [type, text = "", more] = line.split(" ");
  if (more !== undefined) return null;
  const isNumber = /^-?\d{1,15}(\.\d{1,20})?$/.test(text);
  const value = Number(text);
  if (type === "done" && text === "") return { type };
  if (type === "kill-at" && isNumber) return { type, atMs: value };
  if (type === "watch" && isNumber && Number.isSafeInteger(value) && value > 1) {
    return { type, group: value };
  }
  return null;
}

/** What a guard says first: its clock, in milliseconds. */
export function formatReady(nowMs: number): string {
  return `ready ${nowMs}\n`;
}

/** Reads what a guard says first; `null` for anything else. */
export function parseReady(line: string): number | null {
  const [, text] = /^ready (\d{1,15}(?:\.\d{1,20})?)$/.exec(line) ?? [];
  return text === undefined ? null : Number(text);
}
