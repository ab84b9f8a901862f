import assert from "node:assert/strict";
import fc from "fast-check";
import { readText, readVariables, settingFromText } from "../../lib/config/env.ts";
import { configKeys } from "../../lib/config/schema.ts";

const read = (variables: Record<string, string>) =>
  readVariables(configKeys, new Map(Object.entries(variables)), "HOLDFAST__", "", (name) => name);

function valueOf(name: string, text: string) {
  const { settings, problems } = read({ [name]: text });
  assert.deepEqual(problems, []);
  return settings[0]?.value;
}

Deno.test("a switch takes four words for each way, in any case, with spaces around", () => {
  const name = "HOLDFAST__DEPLOY_API__ENABLED";
  for (const word of ["true", "1", "yes", "on", "TRUE", "Yes", " on\n"]) {
    assert.equal(valueOf(name, word), true, word);
  }
  for (const word of ["false", "0", "no", "off", "FALSE", "No", "\toff "]) {
    assert.equal(valueOf(name, word), false, word);
  }
});

Deno.test("a whole number takes digits, with spaces around", () => {
  assert.equal(valueOf("HOLDFAST__HOST__PRESTOP_GRACE_SECS", " 7 "), 7);
  assert.equal(valueOf("HOLDFAST__HOST__PRESTOP_GRACE_SECS", "0"), 0);
});

Deno.test("a list is split at commas, trimmed, without empty items", () => {
  const name = "HOLDFAST__KUBERNETES__LEADER_ELECTION__ROLES";
  assert.deepEqual(valueOf(name, " web, worker ,,"), ["web", "worker"]);
});

Deno.test("an empty text gives an empty list", () => {
  assert.deepEqual(valueOf("HOLDFAST__KUBERNETES__LEADER_ELECTION__ROLES", ""), []);
});

Deno.test("a text is kept exactly", () => {
  assert.equal(valueOf("HOLDFAST__TLS__CERT_FILE", " a b "), " a b ");
});

Deno.test("names are lower-cased, and other variables are ignored", () => {
  assert.deepEqual(
    read({
      PATH: "x",
      HOLDFAST_URL: "y",
      holdfast__log__level: "z",
      HOLDFAST__Log__LEVEL: "debug",
    }),
    {
      settings: [{ key: "log.level", value: "debug", source: "HOLDFAST__Log__LEVEL" }],
      problems: [],
    },
  );
});

Deno.test("each bad variable is told by its name, in sorted order, without its text", () => {
  const { settings, problems } = read({
    HOLDFAST__TLS: "hunter2",
    HOLDFAST__DEPLOY_API__ENABLED: "hunter2",
    HOLDFAST__HOST__PRESTOP_GRACE_SECS: "-1",
    HOLDFAST__HOST__SHUTDOWN_TIMEOUT_SECS: "99999999999999999999",
    HOLDFAST__DEPLOY_API__REQUEST_TIMEOUT: "hunter2",
    HOLDFAST__LISTEN__TLS: "hunter2",
    HOLDFAST__LOG__LEVEL: "hunter2",
    HOLDFAST__LOG__COLOUR: "hunter2",
    HOLDFAST__NOTHING__HERE: "hunter2",
    HOLDFAST__: "hunter2",
  });
  assert.deepEqual(settings, []);
  assert.deepEqual(problems.map(({ message }) => message), [
    "Cannot use HOLDFAST__ as there is no key '': the keys at the top level are listen, tls, deploy_api, auxiliary, planned_operations, kubernetes, host, log, tracing",
    "Cannot use 'deploy_api.enabled' from HOLDFAST__DEPLOY_API__ENABLED as it must be true or false: current value is a text",
    "Cannot use 'deploy_api.request_timeout' from HOLDFAST__DEPLOY_API__REQUEST_TIMEOUT as it must be a duration such as 10s or 1m30s, from 100ms to 1m: current value is a text",
    "Cannot use 'host.prestop_grace_secs' from HOLDFAST__HOST__PRESTOP_GRACE_SECS as it must be a whole number from 0 to 3600: current value is a text",
    "Cannot use 'host.shutdown_timeout_secs' from HOLDFAST__HOST__SHUTDOWN_TIMEOUT_SECS as it must be a whole number from 1 to 3600: current value is the number 100000000000000000000",
    "Cannot use 'listen.tls' from HOLDFAST__LISTEN__TLS as it must be an address such as :8443, 127.0.0.1:8443 or [::1]:8443: current value is a text",
    "Cannot use HOLDFAST__LOG__COLOUR as there is no key 'log.colour': the keys in 'log' are level, format",
    "Cannot use 'log.level' from HOLDFAST__LOG__LEVEL as it must be one of debug, info, warn, error: current value is a text",
    "Cannot use HOLDFAST__NOTHING__HERE as there is no key 'nothing.here': the keys at the top level are listen, tls, deploy_api, auxiliary, planned_operations, kubernetes, host, log, tracing",
    "Cannot use HOLDFAST__TLS as 'tls' is a section, not a key: the keys in 'tls' are cert_file, key_file",
  ]);
});

Deno.test("a key of a part that does not exist yet is unknown, and not accepted and ignored", () => {
  for (const key of ["auxiliary.timeline", "log.audit", "listen.other"]) {
    assert.equal(settingFromText(configKeys, key, "1", "--set").problems.length, 1, key);
  }
});

Deno.test("the words for a switch are the only ones, whatever the text", () => {
  const words = ["true", "1", "yes", "on", "false", "0", "no", "off"];
  fc.assert(fc.property(fc.oneof(fc.string(), fc.constantFrom(...words)), (text) => {
    const expected = words.indexOf(text.trim().toLowerCase());
    const value = readText("boolean", text);
    assert.equal(value, expected < 0 ? undefined : expected < 4);
  }));
});

Deno.test("a whole number is read back as itself, and nothing else is one", () => {
  fc.assert(fc.property(fc.maxSafeNat(), (number) => {
    assert.equal(readText("integer", ` ${number} `), number);
    for (const text of [`-${number}`, `+${number}`, `${number}.5`, `${number}e1`, `0x${number}`]) {
      assert.equal(readText("integer", text), undefined);
    }
  }));
});

Deno.test("a list of plain items is read back as itself", () => {
  const item = fc.string({ minLength: 1 }).map((text) => text.replaceAll(",", "").trim())
    .filter((text) => text !== "");
  fc.assert(fc.property(fc.array(item), (items) => {
    assert.deepEqual(readText("list", items.join(" , ")), items);
  }));
});

Deno.test("a text is never changed", () => {
  fc.assert(fc.property(fc.string(), (text) => assert.equal(readText("text", text), text)));
});
