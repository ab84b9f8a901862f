import assert from "node:assert/strict";
import { connectionFault, wasNotSent } from "../../lib/kube/connection_faults.ts";

const fault = (text: string) =>
  connectionFault(new TypeError("fetch failed", { cause: new Error(text) }));

Deno.test("a fault is sorted by what the platform says after the URL, never by the URL", () => {
  const url = "error sending request for url (https://proxy-dns error-Connection refused/)";
  assert.equal(fault(`${url}: client error (SendRequest): connection closed`), "lost");
  assert.equal(fault(`${url}: client error (Connect): something new`), "unreachable");
  assert.equal(
    fault(`${url}: client error (Connect): tcp connect error: Connection refused`),
    "refused",
  );
});

Deno.test("what is not known promises nothing", () => {
  const endless = new Error("a");
  endless.cause = endless;
  for (const cause of [undefined, null, "client error (Connect)", {}, new Error(""), endless]) {
    assert.equal(connectionFault(cause), "lost");
    assert.equal(wasNotSent(connectionFault(cause)), false);
  }
});
