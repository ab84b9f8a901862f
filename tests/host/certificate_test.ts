import assert from "node:assert/strict";
import fc from "fast-check";
import {
  CertificateError,
  type CertificateProblem,
  checkCertificate,
  readCertificate,
} from "../../lib/host/certificate.ts";
import { issueFor, testAuthority, writePair } from "./support.ts";

const files = { certFile: "/etc/tls/tls.crt", keyFile: "/etc/tls/tls.key" };
const now = Date.now();
const authority = await testAuthority();
const good = await issueFor(authority, "good");
const other = await issueFor(authority, "other");

function pem(label: string, der: ArrayBuffer): string {
  return `-----BEGIN ${label}-----\n${
    btoa(String.fromCharCode(...new Uint8Array(der)))
  }\n-----END ${label}-----\n`;
}

async function newKey(algorithm: RsaHashedKeyGenParams | EcKeyGenParams): Promise<string> {
  const pair = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  assert("privateKey" in pair);
  return pem("PRIVATE KEY", await crypto.subtle.exportKey("pkcs8", pair.privateKey));
}

function rsa(modulusLength: number): RsaHashedKeyGenParams {
  const publicExponent = new Uint8Array([1, 0, 1]);
  return { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", modulusLength, publicExponent };
}

function problemOf(certPem: string, keyPem: string, nowMs = now) {
  try {
    checkCertificate(files, { certPem, keyPem }, nowMs);
    return "none";
  } catch (error) {
    assert(error instanceof CertificateError);
    assert(error.message.startsWith(`Cannot serve TLS with '${error.file}' as `), error.message);
    return `${error.problem} ${error.file}`;
  }
}

Deno.test("a good pair is taken as it is, with the end of its validity", () => {
  const pair = checkCertificate(files, good, now);
  assert.equal(pair.certPem, good.certPem);
  assert.equal(pair.keyPem, good.keyPem);
  assert(Math.abs(pair.notAfterMs - (now + 30 * 86_400_000)) < 60_000);
});

Deno.test("a chain is taken when each of its certificates parses", () => {
  assert.equal(problemOf(good.certPem + authority.caPem, good.keyPem), "none");
  const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  assert.equal(
    problemOf(good.certPem + broken, good.keyPem),
    `not_a_certificate ${files.certFile}`,
  );
});

const wrong: [what: string, certPem: string, keyPem: string, problem: CertificateProblem][] = [
  ["an empty certificate file", "", good.keyPem, "not_a_certificate"],
  ["a certificate file of garbage", "garbage", good.keyPem, "not_a_certificate"],
  ["a key in the place of the certificate", good.keyPem, good.keyPem, "not_a_certificate"],
  ["an empty key file", good.certPem, "", "not_a_key"],
  ["a key file of garbage", good.certPem, "garbage", "not_a_key"],
  ["a certificate in the place of the key", good.certPem, good.certPem, "not_a_key"],
  ["the key of another certificate", good.certPem, other.keyPem, "key_mismatch"],
  ["a key too short for TLS", good.certPem, await newKey(rsa(1024)), "unsupported_key"],
  ["a long key of another kind", good.certPem, await newKey(rsa(2048)), "key_mismatch"],
];
for (const [what, certPem, keyPem, problem] of wrong) {
  Deno.test(`${what} is refused as ${problem}`, () => {
    const file = problem === "not_a_certificate" ? files.certFile : files.keyFile;
    assert.equal(problemOf(certPem, keyPem), `${problem} ${file}`);
  });
}

Deno.test("a key that no handshake can use is refused, whatever its curve", () => {
  // X25519 agrees on keys and signs nothing.
  const x25519 = "-----BEGIN PRIVATE KEY-----\n" +
    "MC4CAQAwBQYDK2VuBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n-----END PRIVATE KEY-----\n";
  assert.equal(problemOf(good.certPem, x25519), `unsupported_key ${files.keyFile}`);
});

Deno.test("validity is judged by the time that is given", () => {
  const { notAfterMs } = checkCertificate(files, good, now);
  assert.equal(problemOf(good.certPem, good.keyPem, notAfterMs), "none");
  assert.equal(problemOf(good.certPem, good.keyPem, notAfterMs + 1), `expired ${files.certFile}`);
  const early = now - 86_400_000;
  assert.equal(problemOf(good.certPem, good.keyPem, early), `not_yet_valid ${files.certFile}`);
});

Deno.test("an expired certificate is refused with the time at which it ended", async () => {
  const expired = await authority.issue({ notAfterMs: Date.UTC(2020, 0, 2, 3, 4, 5) });
  assert.throws(() => checkCertificate(files, expired, now), {
    message: "Cannot serve TLS with '/etc/tls/tls.crt' as the certificate expired at " +
      "2020-01-02T03:04:05.000Z: give one that is valid now",
  });
});

Deno.test("any text is refused with the typed error, and the error holds nothing of it", () => {
  const text = fc.string({ minLength: 12 });
  fc.assert(fc.property(text, fc.boolean(), (text, asKey) => {
    assert.throws(
      () =>
        checkCertificate(
          files,
          asKey ? { ...good, keyPem: text } : { ...good, certPem: text },
          now,
        ),
      (error: unknown) => error instanceof CertificateError && !error.message.includes(text),
    );
  }));
});

Deno.test("a file that is missing or that cannot be read is named", async () => {
  await using pair = await writePair(good);
  await assert.rejects(readCertificate({ ...pair, keyFile: `${pair.directory}/none` }), {
    name: "CertificateError",
    problem: "unreadable",
    file: `${pair.directory}/none`,
    message: `Cannot serve TLS with '${pair.directory}/none' as there is no such file`,
  });
  await assert.rejects(readCertificate({ ...pair, certFile: pair.directory }), {
    message: `Cannot serve TLS with '${pair.directory}' as it cannot be read: ` +
      "give a file that this process may read",
  });
  assert.deepEqual(await readCertificate(pair), good);
});
