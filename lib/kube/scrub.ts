/**
 * Takes secrets out of a text that comes from elsewhere, before it can reach a log (kubernetes-plugin 9). Pure.
 *
 * It hides too much rather than too little: what only looks like a secret is hidden too. Our own error texts hold no such
 * text at all; this is the second wall, for texts that a debugger or a warning shows.
 *
 * @module
 */

const HIDDEN = "***";

/** An HTTP authentication scheme at the end of a word, with quotes or colons around it: the secret is the next word. */
const SCHEME_WORD = /(?:^|[^a-z0-9])(?:bearer|basic)[^a-z0-9]*$/i;

/** A scheme and its secret in one word: `Bearer:abc`, `Bearer%20abc`. */
const SCHEME_AND_SECRET = /\b(bearer|basic)((?:[:=+,"'\\]|%20)+)(?=[^\s])\S*/gi;

/** A parameter whose value is secret, up to the next parameter; a quoted value up to its quote. */
const PARAMETER =
  /((?:token|access_token|password|secret|api_key)=)(?:"[^"]*"?|'[^']*'?|[^&\s"']*)/gi;

/** The same as a member of JSON. */
const MEMBER =
  /(["'](?:\w*token|\w*password|\w*secret|\w*api_key|authorization)["']\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)/gi;

/** A JSON Web Token. */
const JSON_WEB_TOKEN = /\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g;

/**
 * Hides what may be secret in a text: passwords in URLs, secret parameters, what follows `Bearer` or `Basic`, and JSON Web
 * Tokens.
 *
 * ```ts
 * scrub("proxy http://user:pass@host:3128 refused"); // "proxy http://***@host:3128 refused"
 * ```
 *
 * @param text Any text. Its spaces are kept.
 */
export function scrub(text: string): string {
  const words = text.split(/(\s+)/);
  // Words stand at even places, the spaces between them at odd ones.
  const hidden = words.map((word, place) => {
    if (place % 2 === 1 || word === "") return word;
    const before = words[place - 2];
    return before !== undefined && SCHEME_WORD.test(before) ? HIDDEN : scrubWord(word);
  });
  // Last, since the value of a parameter may itself be a scheme whose secret is the next word.
  return hidden.join("").replace(MEMBER, `$1"${HIDDEN}"`).replace(PARAMETER, `$1${HIDDEN}`);
}

function scrubWord(word: string): string {
  const at = word.lastIndexOf("@");
  return scrubUser(word, at)
    .replace(SCHEME_AND_SECRET, `$1$2${HIDDEN}`)
    .replace(JSON_WEB_TOKEN, HIDDEN);
}

/** Hides what stands before the last `@`: a password may hold `@` and `/` itself. */
function scrubUser(word: string, at: number): string {
  if (at < 0) return word;
  const before = word.slice(0, at);
  if (!before.includes(":")) return word;
  // The scheme of a URL may stay. With a colon before it, it may be a part of a password.
  const scheme = /^[^:]*:\/\//.exec(before)?.[0] ?? "";
  return scheme + HIDDEN + word.slice(at);
}
