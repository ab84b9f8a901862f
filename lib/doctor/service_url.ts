/**
 * The URL of the service, read for the checks.
 *
 * @module
 */

/** The parts of a URL that can be used. */
export interface ServiceUrl {
  readonly type: "usable";
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** What to put the path of the API behind. */
  readonly base: string;
}

/** A URL, or why it cannot be used. */
export type ReadUrl =
  | ServiceUrl
  | { readonly type: "missing" | "no_url" | "not_https" | "password" | "query" };

/** Reads a URL by the rules of the client: `https:`, no password, no query. */
export function readUrl(text: string): ReadUrl {
  if (text === "") return { type: "missing" };
  const url = URL.parse(text);
  if (url === null) return { type: "no_url" };
  if (url.protocol !== "https:") return { type: "not_https" };
  if (url.username !== "" || url.password !== "") return { type: "password" };
  if (url.search !== "" || url.hash !== "") return { type: "query" };
  return {
    type: "usable",
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? 443 : Number(url.port),
    base: url.href.replace(/\/+$/, ""),
  };
}
