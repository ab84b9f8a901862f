import assert from "node:assert/strict";
import { HoldfastClient } from "../../lib/client/client.ts";
import { ClientSettingsError } from "../../lib/client/errors.ts";
import { clientFrom, type ClientSettings, completeSettings } from "../../lib/client/settings.ts";
import { createAuthority, seededEntropy, TestClock } from "../../lib/testing/mod.ts";

const env = {
  HOLDFAST_URL: "https://holdfast.example:8443",
  HOLDFAST_GROUP: "orders",
  HOLDFAST_INSTANCE: "tenant",
};

function make(
  settings: ClientSettings,
  more: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
) {
  return clientFrom(settings, {
    env: { ...env, ...more },
    readTextFile: (path) =>
      files[path] === undefined
        ? Promise.reject(new Error("no such file"))
        : Promise.resolve(files[path]),
    clock: new TestClock(),
    entropy: seededEntropy(1),
  });
}

Deno.test("options win over the environment, and what is left out has its default", () => {
  assert.deepEqual(completeSettings({}, env), {
    url: "https://holdfast.example:8443",
    caFile: "",
    tokenFile: "/var/run/secrets/holdfast/token",
    group: "orders",
    instance: "tenant",
  });
  const all = { HOLDFAST_CA_FILE: "/ca", HOLDFAST_TOKEN_FILE: "/token", ...env };
  assert.deepEqual(completeSettings({ group: "billing", tokenFile: "/mine" }, all), {
    url: "https://holdfast.example:8443",
    caFile: "/ca",
    tokenFile: "/mine",
    group: "billing",
    instance: "tenant",
  });
  const empty = { ...env, HOLDFAST_TOKEN_FILE: "" };
  assert.equal(completeSettings({}, empty).tokenFile, "/var/run/secrets/holdfast/token");
});

Deno.test("a setting that is missing is named with its variable", () => {
  for (
    const [variable, option] of [
      ["HOLDFAST_URL", "url"],
      ["HOLDFAST_GROUP", "group"],
      ["HOLDFAST_INSTANCE", "instance"],
    ] as const
  ) {
    for (const missing of [{ ...env, [variable]: undefined }, { ...env, [variable]: "" }]) {
      assert.throws(() => completeSettings({}, missing), (error) => {
        assert.ok(error instanceof ClientSettingsError);
        assert.match(error.message, new RegExp(`'${option}' is not set.*set ${variable}`));
        return true;
      });
    }
  }
});

Deno.test("a URL without https, or with more than an address, is refused and not shown", async () => {
  const wrong = [
    ["http://holdfast.example", /must begin with https/],
    ["holdfast.example", /must begin with https/],
    ["https://user:hunter2@holdfast.example", /no user, password/],
    ["https://holdfast.example/?a=hunter2", /no user, password, query/],
    ["https://holdfast.example/#a", /no user, password, query or fragment/],
  ] as const;
  for (const [url, text] of wrong) {
    await assert.rejects(make({ url }), (error) => {
      assert.ok(error instanceof ClientSettingsError);
      assert.match(error.message, text);
      assert.doesNotMatch(error.message, /hunter2/);
      return true;
    });
  }
  assert.ok(
    await make({ url: "https://holdfast.example/behind/a/path/" }) instanceof HoldfastClient,
  );
});

Deno.test("an authority that cannot be read, or is no certificate, is refused with its file", async () => {
  await assert.rejects(make({ caFile: "/none" }), /Cannot read the authority .* '\/none'/);
  for (
    const text of ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"]
  ) {
    await assert.rejects(make({ caFile: "/ca" }, {}, { "/ca": text }), (error) => {
      assert.ok(error instanceof ClientSettingsError);
      assert.match(error.message, /'\/ca' as it must hold certificates in PEM form/);
      return true;
    });
  }
  const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const client = await make({ caFile: "/ca" }, {}, { "/ca": `# ours\n${authority.caPem}` });
  assert.equal(client.group, "orders");
});
