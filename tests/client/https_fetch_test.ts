import assert from "node:assert/strict";
import { createServer } from "node:https";
import { httpsFetch } from "../../lib/client/https_fetch.ts";
import { createAuthority } from "../../lib/testing/mod.ts";

type Handler = NonNullable<Parameters<typeof createServer>[1]>;

/** Serves over TLS for the length of a test. */
async function withServer(
  handler: Handler,
  test: (url: string, caPem: string) => Promise<void>,
): Promise<void> {
  const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const { certPem, keyPem } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
  const server = createServer({ cert: certPem, key: keyPem }, handler);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("No address");
  try {
    await test(`https://127.0.0.1:${address.port}`, authority.caPem);
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}

Deno.test("a request carries its method, headers and body, and its answer comes back whole", async () => {
  await withServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => body += chunk);
    request.on("end", () => {
      response.writeHead(201, { "X-Lease-Fence": "42", "Content-Type": "application/json" });
      const { method, headers } = request;
      response.write(`{"said":`);
      response.end(`${JSON.stringify([method, headers["x-lease-token"], body])}}`);
    });
  }, async (url, caPem) => {
    const init = { method: "POST", headers: { "X-Lease-Token": "t" }, body: "é" };
    const answer = await httpsFetch(caPem)(url, init);
    assert.equal(answer.status, 201);
    assert.equal(answer.headers.get("x-lease-fence"), "42");
    assert.deepEqual(await answer.json(), { said: ["POST", "t", "é"] });
  });
});

Deno.test("an answer without a body is one", async () => {
  await withServer((_request, response) => {
    response.writeHead(204);
    response.end();
  }, async (url, caPem) => {
    const answer = await httpsFetch(caPem)(url, { method: "DELETE" });
    assert.deepEqual([answer.status, await answer.text()], [204, ""]);
  });
});

Deno.test("a certificate of another authority is refused", async () => {
  await withServer((_request, response) => response.end("{}"), async (url) => {
    const other = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    await assert.rejects(httpsFetch(other.caPem)(url, {}));
    await assert.rejects(httpsFetch()(url, {}));
  });
});

Deno.test("a certificate for another name is refused", async () => {
  await withServer((_request, response) => response.end("{}"), async (url, caPem) => {
    await assert.rejects(httpsFetch(caPem)(url.replace("127.0.0.1", "localhost"), {}));
  });
});

Deno.test("a request ends with its signal, also when the server swallows it", async () => {
  await withServer(() => {}, async (url, caPem) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("over")), 100);
    await assert.rejects(httpsFetch(caPem)(url, { signal: controller.signal }));
    const aborted = AbortSignal.abort();
    await assert.rejects(httpsFetch(caPem)(url, { signal: aborted }));
  });
});

Deno.test("an answer that breaks off, or never ends, is an error", async () => {
  await withServer((_request, response) => {
    response.writeHead(200, { "Content-Length": "100" });
    response.write("{");
    setTimeout(() => response.destroy(), 20);
  }, async (url, caPem) => {
    await assert.rejects(httpsFetch(caPem)(url, {}));
  });
  await withServer((_request, response) => {
    const more = () => {
      if (response.destroyed) return;
      if (response.write("x".repeat(1 << 20))) setImmediate(more);
      else response.once("drain", more);
    };
    more();
  }, async (url, caPem) => {
    await assert.rejects(httpsFetch(caPem)(url, {}));
  });
});

Deno.test("a refused connection has the platform's code", async () => {
  await assert.rejects(httpsFetch()("https://127.0.0.1:1", {}), { code: "ECONNREFUSED" });
});
