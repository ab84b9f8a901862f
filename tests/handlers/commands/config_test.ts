import assert from "node:assert/strict";
import { parse } from "yaml";
import { renderJson, renderYaml, showConfig } from "../../../handlers/commands/config.ts";
import { type ConfigEntry, readConfig } from "../../../lib/config/layers.ts";
import { fakeSystem } from "./fake_system.ts";

const entry = (key: string, value: ConfigEntry["value"], source = "default", secret = false) => ({
  key,
  value,
  source,
  secret,
});

Deno.test("the configuration is shown as YAML, with the source of every value in a comment", () => {
  const text = renderYaml([
    entry("a.b", true),
    entry("a.c.d", "x # y", "holdfast.yaml"),
    entry("a.c.e", 5, "HOLDFAST__A__C__E"),
    entry("f.c.g", ["h", "i"], "--set f.c.g"),
  ]);
  assert.equal(
    text,
    [
      "a:",
      "  b: true # default",
      "  c:",
      '    d: "x # y" # holdfast.yaml',
      "    e: 5 # HOLDFAST__A__C__E",
      "f:",
      "  c:",
      '    g: ["h","i"] # --set f.c.g',
      "",
    ].join("\n"),
  );
});

Deno.test("what is shown is a holdfast.yaml that gives the same configuration", () => {
  const env = { HOLDFAST__TLS__CERT_FILE: "a\nb: 'c'", HOLDFAST__TLS__KEY_FILE: "\u2028" };
  const first = readConfig({ env, readTextFile: () => undefined });
  const shown = renderYaml(first.entries);
  const second = readConfig({
    env: {},
    readTextFile: (path) => path === "holdfast.yaml" ? shown : undefined,
  });
  assert.deepEqual(second.problems, []);
  assert.deepEqual(second.config, first.config);
});

Deno.test("a source with a line end in it stays in its comment", () => {
  const text = renderYaml([entry("a.b", 1, "x\nc: 2")]);
  assert.deepEqual(parse(text), { a: { b: 1 } });
});

Deno.test("a secret is hidden in both forms, and an empty one is shown as empty", () => {
  const entries = [
    entry("a.b", "hunter2", "holdfast.yaml", true),
    entry("a.c", "", "default", true),
  ];
  const { config } = readConfig({ env: {}, readTextFile: () => undefined });
  const shown = [renderYaml(entries), renderJson({ config, entries, problems: [] })];
  for (const text of shown) {
    assert(!text.includes("hunter2"));
    assert.match(text, /"\(hidden\)"/);
    assert.match(text, /""/);
  }
});

Deno.test("the exit code says whether the configuration can be used", () => {
  const reading = readConfig({ env: {}, readTextFile: () => undefined });
  const system = fakeSystem();
  assert.equal(showConfig(reading, false, system.stdout, system.stderr), 0);
  assert.equal(system.written.stderr, "");
  const problems = [{ source: "x", message: "Cannot a" }, { source: "y", message: "Cannot b" }];
  assert.equal(showConfig({ ...reading, problems }, true, system.stdout, system.stderr), 1);
  assert.equal(system.written.stderr, "holdfast: Cannot a\nholdfast: Cannot b\n");
});
