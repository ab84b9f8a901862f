/**
 * What kind of fault a failed connection was. Pure.
 *
 * The platform says it in a text alone, which may hold addresses and credentials. So the text is sorted into a few kinds,
 * and goes no further. A text that is not known is the kind that promises nothing.
 *
 * @module
 */

/** Why no answer came. Every kind but `lost` means that the request was not sent. */
export type ConnectionFault = "certificate" | "lost" | "name" | "proxy" | "refused" | "unreachable";

/** What each kind means to whoever reads the error. */
export const FAULT_TEXTS: Readonly<Record<ConnectionFault, string>> = {
  certificate:
    "the API server's certificate is not trusted; check its authority and the name in its URL",
  lost: "the connection to the API server broke; try again",
  name: "the name of the API server cannot be resolved; check its URL",
  proxy: "the proxy did not let the call through; check its URL, user and password",
  refused: "nothing accepts connections at the API server's address; check its URL",
  unreachable: "the API server cannot be reached; check its URL and the network",
};

/** The kinds that can be told from the text of a connection that was not made. First match wins. */
const NOT_CONNECTED: readonly (readonly [RegExp, ConnectionFault])[] = [
  [/invalid peer certificate/, "certificate"],
  [/dns error/, "name"],
  [/proxy|tunnel/, "proxy"],
  [/Connection refused/i, "refused"],
];

/** How deep the causes of an error are looked into. */
const MAX_CAUSES = 5;

/**
 * Sorts a fault of the platform's `fetch`.
 *
 * @param cause What `fetch` rejected with.
 */
export function connectionFault(cause: unknown): ConnectionFault {
  const texts: string[] = [];
  for (
    let error = cause;
    error instanceof Error && texts.length < MAX_CAUSES;
    error = error.cause
  ) {
    texts.push(error.message);
  }
  // The request's own URL stands before this mark, and could hold any of the words.
  const [, detail] = texts.join("\n").split("client error (Connect)");
  if (detail === undefined) return "lost";
  return NOT_CONNECTED.find(([pattern]) => pattern.test(detail))?.[1] ?? "unreachable";
}

/** True when the request was not sent, so that a write cannot have landed. */
export function wasNotSent(fault: ConnectionFault): boolean {
  return fault !== "lost";
}
