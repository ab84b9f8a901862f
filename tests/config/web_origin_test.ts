import assert from "node:assert/strict";
import fc from "fast-check";
import { webOrigin } from "../../lib/config/web_origin.ts";

Deno.test("an origin is a scheme and a host, and a port where it is not the scheme's own", () => {
  assert.equal(webOrigin("https://dashboard.example.org"), "https://dashboard.example.org");
  assert.equal(webOrigin("HTTPS://Dashboard.Example.ORG:443"), "https://dashboard.example.org");
  assert.equal(webOrigin("http://127.0.0.1:8082"), "http://127.0.0.1:8082");
  assert.equal(webOrigin("http://[::1]:8082"), "http://[::1]:8082");
});

Deno.test("what is no origin of a web page is none", () => {
  const wrong = [
    "",
    "null",
    "*",
    "dashboard.example.org",
    "https://",
    "https://a/",
    "https://a/path",
    "https://a?b",
    "https://a#b",
    "https://user@a",
    "https://a\\b",
    "https://a b",
    "ftp://a",
    "file://",
    "chrome-extension://abc",
    "https://a:99999",
  ];
  for (const text of wrong) assert.equal(webOrigin(text), null, JSON.stringify(text));
});

Deno.test("an origin is read back as itself, and never throws", () => {
  fc.assert(fc.property(fc.oneof(fc.webUrl(), fc.string()), (text) => {
    const origin = webOrigin(text);
    if (origin !== null) assert.equal(webOrigin(origin), origin);
  }));
});
