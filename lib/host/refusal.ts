/**
 * The answer to what cannot be served as a request: it was not HTTP, it was too big, or it never ended.
 *
 * @module
 */

/** Statuses that a listener answers by itself. */
export type RefusalStatus = 400 | 408 | 431 | 503;

const REASONS: Readonly<Record<RefusalStatus, string>> = {
  400: "Bad Request",
  408: "Request Timeout",
  431: "Request Header Fields Too Large",
  503: "Service Unavailable",
};

/** The headers of every answer of a listener's own (deploy-api 1.1). */
const HEADERS = { "Content-Type": "application/json", "Cache-Control": "no-store" };

/**
 * Chooses the status for an error of the HTTP parser or of its timers.
 *
 * @param code The `code` of the error that `clientError` brings.
 */
export function refusalStatus(code: string): RefusalStatus {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return 408;
    case "HPE_HEADER_OVERFLOW":
      return 431;
    default:
      return 400;
  }
}

/** The body of a refusal: one of the contract's own error bodies (deploy-api 1.5), and a line end. */
function refusalBody(status: RefusalStatus): string {
  return `{"error":"${status === 503 ? "unavailable" : "invalid_request"}"}\n`;
}

/** A refusal where there is a request to answer. */
export function refusalResponse(status: RefusalStatus): Response {
  return new Response(refusalBody(status), { status, headers: HEADERS });
}

/** A refusal where there is only a socket: the whole answer as text, after which the connection ends. */
export function refusalText(status: RefusalStatus): string {
  const body = refusalBody(status);
  const headers = Object.entries({
    ...HEADERS,
    "Content-Length": String(body.length),
    "Connection": "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${status} ${REASONS[status]}\r\n${headers}\r\n${body}`;
}
