import assert from "node:assert/strict";
import { z } from "zod";
import { flag, keysOf, text } from "../../lib/config/keys.ts";
import { configKeys, configSchema, serviceDefaults } from "../../lib/config/schema.ts";

Deno.test("every key has a description, a default that it takes, and a name in snake_case", () => {
  for (const [key, { description, fallback, accepts }] of configKeys.keys) {
    assert.match(key, /^[a-z]+(_[a-z]+)*(\.[a-z]+(_[a-z]+)*)+$/);
    assert.match(description, /^[A-Z][^]*\.$/, key);
    assert(accepts(fallback), key);
  }
});

Deno.test("every default of the service is a value of an existing key", () => {
  for (const [key, value] of Object.entries(serviceDefaults)) {
    assert(configKeys.keys.get(key)?.accepts(value), key);
  }
});

Deno.test("no key holds a secret: credentials are in files, and the page says so", () => {
  assert.deepEqual([...configKeys.keys.values()].filter(({ secret }) => secret), []);
});

Deno.test("the keys and sections of a schema are listed with their paths", () => {
  const schema = z.strictObject({
    a: z.strictObject({ b: flag(true, "B."), c: text("x", "C.", { secret: true }) }).prefault({}),
  });
  const { keys, sections } = keysOf(schema);
  assert.deepEqual([...keys.keys()], ["a.b", "a.c"]);
  assert.deepEqual(Object.fromEntries(sections), { "": ["a"], a: ["b", "c"] });
  assert.equal(keys.get("a.c")?.secret, true);
});

Deno.test("a schema with a value that is not described is a mistake", () => {
  assert.throws(() => keysOf(z.object({ a: z.string() })), {
    name: "TypeError",
    message: "Cannot list the configuration keys as 'a' has no description",
  });
});

Deno.test("an unknown key is refused by the schema itself, at every level", () => {
  for (
    const input of [{ x: 1 }, { tls: { x: 1 } }, { kubernetes: { leader_election: { x: 1 } } }]
  ) {
    assert.equal(configSchema.safeParse(input).success, false);
  }
});
