/**
 * What the page's script decides: pure functions, without the page.
 *
 * @module
 */

const DAY = 86_400;
const HOUR = 3_600;
const MINUTE = 60;

/**
 * A span of time in at most two units, as the server writes it: `24s`, `2m 3s`, `5h 1m`, `3d 4h`.
 *
 * @param {number} ms Milliseconds; what is below 0 counts as 0.
 * @returns {string}
 */
export function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  /** @type {[number, string][]} */
  const units = [[DAY, "d"], [HOUR, "h"], [MINUTE, "m"], [1, "s"]];
  const at = units.findIndex(([unit]) => seconds >= unit);
  const [unit, sign] = units[at] ?? [1, "s"];
  const [below, belowSign] = units[at + 1] ?? [1, ""];
  const rest = belowSign === "" ? 0 : Math.floor((seconds % unit) / below);
  return `${Math.floor(seconds / unit)}${sign}${rest === 0 ? "" : ` ${rest}${belowSign}`}`;
}

/**
 * A group as it is chosen and sorted.
 *
 * @typedef {object} Facts
 * @property {string} key Its namespace and name.
 * @property {string} attention `closed`, `busy`, `held` or `quiet`.
 * @property {number} expires When its first lease ends; Infinity without one.
 * @property {number} lag Seconds; -1 when it is not known.
 * @property {string} words All of its words, in lower case.
 */

/**
 * True when a group is to be shown.
 *
 * @param {Facts} facts
 * @param {{ find: string, show: string }} wish
 * @returns {boolean}
 */
export function isWanted(facts, { find, show }) {
  const { attention, expires } = facts;
  if (show === "closed" && attention !== "closed") return false;
  if (show === "busy" && attention !== "closed" && attention !== "busy") return false;
  if (show === "held" && expires === Infinity) return false;
  if (find === "") return true;
  const { words } = facts;
  return find.toLowerCase().split(/\s+/).every((word) => words.includes(word));
}

/** `orders-9` comes before `orders-10`. */
const names = new Intl.Collator("en", { numeric: true });

/**
 * Says which of two groups comes first.
 *
 * @param {string} sort `attention`, `name`, `expiry` or `lag`.
 * @returns {(a: Facts, b: Facts) => number}
 */
export function byWish(sort) {
  /** @type {Record<string, (facts: Facts) => number>} */
  const ranks = {
    // A lease comes and goes many times a day: that moves no group.
    attention: ({ attention }) => attention === "closed" ? 0 : attention === "busy" ? 1 : 2,
    expiry: ({ expires }) => expires,
    lag: ({ lag }) => -lag,
  };
  const rank = ranks[sort] ?? (() => 0);
  return (a, b) => {
    const [first, second] = [rank(a), rank(b)];
    if (first !== second) return first < second ? -1 : 1;
    return names.compare(a.key, b.key);
  };
}

/**
 * How long to wait before the next try to connect, in milliseconds.
 *
 * @param {number} failures How many tries in a row have failed; 0 after a connection.
 * @param {number} chance From 0 to 1: so that not all pages come at once when a server is back.
 * @returns {number}
 */
export function pauseAfter(failures, chance) {
  return Math.round(Math.min(10_000, 500 * 2 ** Math.min(failures, 10)) * (0.5 + chance / 2));
}

/**
 * What is said to somebody who does not see the page: the news in a few words.
 *
 * @param {readonly string[]} lines One for each thing that happened.
 * @returns {string}
 */
export function newsInWords(lines) {
  const [first, second] = lines;
  if (first === undefined) return "";
  if (second === undefined) return first;
  return lines.length === 2
    ? `${first}. ${second}`
    : `${lines.length} changes. Last: ${lines.at(-1)}`;
}
