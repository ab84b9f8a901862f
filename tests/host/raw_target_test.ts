import assert from "node:assert/strict";
import { Socket } from "node:net";
import { rawTarget } from "../../lib/host/raw_target.ts";

const request = new Request("http://localhost/normal?x=1", { method: "DELETE" });

function sent(method: string, url: string) {
  return rawTarget({ incoming: { method, url, socket: new Socket() } }, request);
}

Deno.test("the target is what the client sent, dots and doubled slashes included", () => {
  assert.deepEqual(sent("HEAD", "//deploy/./v1/%2e%2e/x?y#z"), {
    method: "HEAD",
    target: "//deploy/./v1/%2e%2e/x?y#z",
  });
});

Deno.test("scheme and authority of an absolute target are left out, and nothing else", () => {
  assert.equal(sent("GET", "https://host:1/a/../b?c=http://d/").target, "/a/../b?c=http://d/");
  assert.equal(sent("GET", "http://host").target, "/");
  assert.equal(sent("GET", "http://host?x").target, "/?x");
  assert.equal(sent("OPTIONS", "*").target, "*");
  assert.equal(sent("GET", "//host/a").target, "//host/a");
});

Deno.test("without a socket the request's own URL stands in", () => {
  const expected = { method: "DELETE", target: "/normal?x=1" };
  assert.deepEqual(rawTarget(undefined, request), expected);
  assert.deepEqual(rawTarget({}, request), expected);
});
