import assert from "node:assert/strict";
import { allowedOrigins, sameOrigin } from "../../lib/host/origins.ts";

const from = (origin: string | null, host: string | null = "holdfast:8082") => ({ origin, host });

Deno.test("with * every origin may connect, and a client without one", () => {
  for (const list of [["*"], ["https://a.example.org", "*"]]) {
    const rule = allowedOrigins(list);
    for (const origin of ["https://evil.example.org", "null", "", null]) {
      assert.equal(rule(from(origin)), true, String(origin));
    }
  }
});

Deno.test("with a list only its origins may connect, and a client without an origin may not", () => {
  const rule = allowedOrigins(["https://a.example.org", "http://b.example.org:8080"]);
  for (
    const origin of [
      "https://a.example.org",
      "https://A.example.org:443",
      "http://b.example.org:8080",
    ]
  ) {
    assert.equal(rule(from(origin)), true, origin);
  }
  const wrong = [
    "http://a.example.org",
    "https://a.example.org.evil.example",
    "https://a.example.org:8443",
    "https://evil.example/?https://a.example.org",
    "http://b.example.org",
    "null",
    "",
    null,
  ];
  for (const origin of wrong) assert.equal(rule(from(origin)), false, String(origin));
});

Deno.test("a list of what is no origin allows nobody", () => {
  for (const list of [[], ["a.example.org"], ["null"]]) {
    for (const origin of ["https://a.example.org", "null", null]) {
      assert.equal(allowedOrigins(list)(from(origin)), false);
    }
  }
});

Deno.test("a page may open its own WebSocket, with TLS in front of the listener or not", () => {
  assert.equal(sameOrigin(from("http://holdfast:8082")), true);
  assert.equal(sameOrigin(from("https://holdfast:8082")), true);
  assert.equal(sameOrigin(from("https://status.example.org", "status.example.org")), true);
  for (const origin of ["http://holdfast", "http://other:8082", "null", "", null]) {
    assert.equal(sameOrigin(from(origin)), false, String(origin));
  }
  for (const host of [null, "", "a/b", "holdfast:8082/"]) {
    assert.equal(sameOrigin(from("http://holdfast:8082", host)), false, String(host));
  }
});
