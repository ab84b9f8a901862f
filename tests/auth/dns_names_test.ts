import assert from "node:assert/strict";
import { isDnsLabel, isDnsSubdomain } from "../../lib/auth/dns_names.ts";

Deno.test("labels and subdomains are told from what they are not", () => {
  const label = "a".repeat(63);
  for (const name of ["a", "0", "a-b", "a--b", "kube-system", label]) {
    assert.equal(isDnsLabel(name), true, name);
    assert.equal(isDnsSubdomain(name), true, name);
  }
  for (const name of ["a.b", "a.b-c.d", `${"a.".repeat(126)}a`, "a".repeat(253)]) {
    assert.equal(isDnsLabel(name), false, name);
    assert.equal(isDnsSubdomain(name), true, name);
  }
  const bad = ["", "-", "-a", "a-", ".", ".a", "a.", "a..b", "a.-b", "a-.b", "A", "a_b", "a b"];
  for (const name of [...bad, "a\n", "ä", `${"a.".repeat(127)}a`, "a".repeat(254)]) {
    assert.equal(isDnsLabel(name), false, name);
    assert.equal(isDnsSubdomain(name), false, name);
  }
  assert.equal(isDnsLabel("a".repeat(64)), false);
});
