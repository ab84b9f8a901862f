import assert from "node:assert/strict";
import { once } from "node:events";
import https from "node:https";
import { X509Certificate } from "node:crypto";
import type { AddressInfo } from "node:net";
import { createAuthority } from "../../lib/testing/authority.ts";
import {
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  X509Certificate as Parsed,
} from "@peculiar/x509";

const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });

async function serveHello(certPem: string, keyPem: string) {
  const server = https.createServer({ cert: certPem, key: keyPem }, (_request, response) => {
    response.end("hello");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}/`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

Deno.test("a client that trusts the authority reads from a server with its certificate", async () => {
  const { certPem, keyPem } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
  const server = await serveHello(certPem, keyPem);
  const client = Deno.createHttpClient({ caCerts: [authority.caPem] });
  const response = await fetch(server.url, { client });
  assert.equal(await response.text(), "hello");
  client.close();
  await server.close();
});

Deno.test("a client refuses a server whose certificate names another host", async () => {
  const { certPem, keyPem } = await authority.issue({ dnsNames: ["api.example"] });
  const server = await serveHello(certPem, keyPem);
  const client = Deno.createHttpClient({ caCerts: [authority.caPem] });
  await assert.rejects(fetch(server.url, { client }));
  client.close();
  await server.close();
});

Deno.test("a client refuses an expired certificate", async () => {
  const { certPem, keyPem } = await authority.issue({
    ipAddresses: ["127.0.0.1"],
    notAfterMs: Date.now() - 60_000,
  });
  const server = await serveHello(certPem, keyPem);
  const client = Deno.createHttpClient({ caCerts: [authority.caPem] });
  await assert.rejects(fetch(server.url, { client }));
  client.close();
  await server.close();
});

Deno.test("a client certificate carries the user as common name and the groups as organizations", async () => {
  const { certPem } = await authority.issue({
    commonName: "alice",
    organizations: ["system:masters", "dev"],
    client: true,
  });
  const certificate = new X509Certificate(certPem);
  assert.equal(certificate.subject, "O=system:masters\nO=dev\nCN=alice");
  const usages = new Parsed(certPem).getExtension(ExtendedKeyUsageExtension)?.usages;
  assert.deepEqual([...usages ?? []], [ExtendedKeyUsage.clientAuth]);
  assert.ok(certificate.verify(new X509Certificate(authority.caPem).publicKey));
});

Deno.test("certificates of one authority have different serial numbers and keys", async () => {
  const one = await authority.issue({ dnsNames: ["a"] });
  const two = await authority.issue({ dnsNames: ["a"] });
  assert.notEqual(
    new X509Certificate(one.certPem).serialNumber,
    new X509Certificate(two.certPem).serialNumber,
  );
  assert.notEqual(one.keyPem, two.keyPem);
});

Deno.test("days bound the validity", async () => {
  const { certPem } = await authority.issue({ dnsNames: ["a"], days: 2 });
  const leftMs = Date.parse(new X509Certificate(certPem).validTo) - Date.now();
  assert.ok(leftMs > 1.9 * 86_400_000 && leftMs <= 2 * 86_400_000, String(leftMs));
});
