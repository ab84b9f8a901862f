import assert from "node:assert/strict";
import fc from "fast-check";
import {
  formatListenAddress,
  ListenAddressError,
  parseListenAddress,
} from "../../lib/config/listen_address.ts";

Deno.test("an address without a host means every interface", () => {
  assert.deepEqual(parseListenAddress(":8443"), { port: 8443 });
});

Deno.test("a host may be a name, an IPv4 address, or an IPv6 address in brackets", () => {
  assert.deepEqual(parseListenAddress("localhost:0"), { host: "localhost", port: 0 });
  assert.deepEqual(parseListenAddress("127.0.0.1:65535"), { host: "127.0.0.1", port: 65535 });
  assert.deepEqual(parseListenAddress("[::1]:0"), { host: "::1", port: 0 });
});

const wrong: [text: string, message: RegExp][] = [
  ["8443", /must be 'host:port' or ':port': current value is "8443"/],
  ["", /must be 'host:port'/],
  [":", /port must be a whole number from 0 to 65535/],
  [":65536", /port must be/],
  [":-1", /port must be/],
  [":80a", /port must be/],
  [":1e3", /port must be/],
  [":http", /port must be/],
  ["::1:80", /must be in brackets/],
  ["[::1:80", /must be in brackets/],
  ["[localhost]:80", /brackets must hold an IPv6 address/],
  ["[]:80", /brackets must hold an IPv6 address/],
  ["300.1.1.1:80", /host must be a DNS name or an IP address/],
  ["a b:80", /host must be a DNS name/],
  ["-a:80", /host must be a DNS name/],
  ["http://a:80", /brackets/],
];
for (const [text, message] of wrong) {
  Deno.test(`the address ${JSON.stringify(text)} is refused with what would be right`, () => {
    assert.throws(() => parseListenAddress(text), (error: unknown) => {
      assert(error instanceof ListenAddressError);
      assert.match(error.message, message);
      return true;
    });
  });
}

Deno.test("an address that was written reads back the same", () => {
  const host = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain(), fc.constant(undefined));
  fc.assert(fc.property(host, fc.integer({ min: 0, max: 65535 }), (host, port) => {
    const address = host === undefined ? { port } : { host, port };
    assert.deepEqual(parseListenAddress(formatListenAddress(address)), address);
  }));
});

Deno.test("any text is either read or refused with the typed error", () => {
  fc.assert(fc.property(fc.string(), (text) => {
    try {
      assert(parseListenAddress(text).port <= 65535);
    } catch (error) {
      assert(error instanceof ListenAddressError);
    }
  }));
});
