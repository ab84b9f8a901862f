import assert from "node:assert/strict";
import { refusalResponse, refusalStatus, refusalText } from "../../lib/host/refusal.ts";

Deno.test("time is 408, size is 431, and anything else is 400", () => {
  assert.equal(refusalStatus("ERR_HTTP_REQUEST_TIMEOUT"), 408);
  assert.equal(refusalStatus("HPE_HEADER_OVERFLOW"), 431);
  assert.equal(refusalStatus("HPE_INVALID_METHOD"), 400);
});

Deno.test("a refusal on a bare socket has the contract's form and ends the connection", () => {
  const [head = "", body] = refusalText(408).split("\r\n\r\n");
  assert.equal(body, '{"error":"invalid_request"}\n');
  assert.deepEqual(head.split("\r\n"), [
    "HTTP/1.1 408 Request Timeout",
    "Content-Type: application/json",
    "Cache-Control: no-store",
    "Content-Length: 28",
    "Connection: close",
  ]);
});

Deno.test("a refusal of a request has the same form", async () => {
  const response = refusalResponse(503);
  assert.equal(response.status, 503);
  assert.equal(response.headers.get("Content-Type"), "application/json");
  assert.equal(response.headers.get("Cache-Control"), "no-store");
  assert.equal(await response.text(), '{"error":"unavailable"}\n');
});
