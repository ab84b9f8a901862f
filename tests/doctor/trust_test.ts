import assert from "node:assert/strict";
import { createAuthority } from "../../lib/testing/mod.ts";
import {
  certificateFacts,
  certificatesOf,
  isFor,
  isSignedBy,
  keyBelongsTo,
  readCertificate,
} from "../../lib/doctor/trust.ts";

const ours = await createAuthority({ webCrypto: crypto, nowMs: Date.now(), commonName: "ours" });
const theirs = await createAuthority({ webCrypto: crypto, nowMs: Date.now(), commonName: "ours" });

async function issued(request: Parameters<typeof ours.issue>[0]) {
  const { certPem, keyPem } = await ours.issue(request);
  const [certificate] = certificatesOf(certPem);
  assert(certificate !== undefined);
  return { certificate, keyPem };
}

Deno.test("a certificate is for its alternative names and addresses, and not for its common name", async () => {
  const { certificate } = await issued({
    commonName: "common.svc",
    dnsNames: ["a.b.svc", "*.c.svc"],
    ipAddresses: ["127.0.0.1"],
  });
  for (const host of ["a.b.svc", "A.B.svc", "x.c.svc", "127.0.0.1"]) {
    assert(isFor(certificate, host), host);
  }
  for (const host of ["b.svc", "x.y.c.svc", "c.svc", "common.svc", "127.0.0.2"]) {
    assert(!isFor(certificate, host), host);
  }
  assert(!isFor((await issued({ commonName: "common.svc" })).certificate, "common.svc"));
});

Deno.test("an authority of the same name with another key signed nothing; a chain without an end comes to one", async () => {
  const { certificate } = await issued({ dnsNames: ["a"] });
  const [own] = certificatesOf(ours.caPem);
  const [other] = certificatesOf(theirs.caPem);
  assert(own !== undefined && other !== undefined);
  assert(isSignedBy([certificate], [other, own]));
  assert(!isSignedBy([certificate], [other]));
  assert(
    !isSignedBy([certificate, own, other], [other]),
    "Its own signer is not signed by the other",
  );
  assert(!isSignedBy([], [own]));
  assert(!isSignedBy([certificate], []));
});

Deno.test("a key belongs to its certificate alone; what is no key or no certificate is nothing", async () => {
  const { certificate, keyPem } = await issued({ dnsNames: ["a"] });
  assert(keyBelongsTo(certificate, keyPem));
  assert(!keyBelongsTo(certificate, (await issued({ dnsNames: ["a"] })).keyPem));
  assert(
    !keyBelongsTo(certificate, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
  );
  assert.equal(readCertificate("hello"), null);
  assert.deepEqual(
    certificatesOf("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"),
    [],
  );
});

Deno.test("a certificate says whose it is, who signed it, and when it is valid", async () => {
  const endMs = Math.floor(Date.now() / 1_000) * 1_000 + 86_400_000;
  const { certificate } = await issued({ commonName: "one", dnsNames: ["a"], notAfterMs: endMs });
  const facts = certificateFacts(certificate);
  assert.deepEqual([facts.subject, facts.issuer, facts.names], ["one", "ours", ["a"]]);
  assert.equal(facts.notAfterMs, endMs);
  assert(facts.notBeforeMs < Date.now());
});
