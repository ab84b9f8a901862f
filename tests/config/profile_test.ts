import assert from "node:assert/strict";
import { readsDotenv, selectProfile } from "../../lib/config/profile.ts";

function profileOf(env: Record<string, string>, option?: string) {
  const choice = selectProfile(env, option);
  assert.equal(choice.problem, undefined);
  return "value" in choice ? choice.value : undefined;
}

Deno.test("AUTUMN_ENV selects before AUTUMN_PROFILE, and that before the option", () => {
  const env = { AUTUMN_ENV: "one", AUTUMN_PROFILE: "two" };
  assert.equal(profileOf(env, "three")?.name, "one");
  assert.equal(profileOf({ ...env, AUTUMN_ENV: "" }, "three")?.name, "two");
  assert.equal(profileOf({}, "three")?.name, "three");
});

Deno.test("an empty text selects nothing, and default means none", () => {
  assert.equal(profileOf({ AUTUMN_ENV: "", AUTUMN_PROFILE: "" }, ""), undefined);
  assert.equal(profileOf({ AUTUMN_ENV: "default" }, "three"), undefined);
  assert.equal(profileOf({}), undefined);
});

Deno.test("the short alias is above the long one in the file, and the user's spelling is looked for first", () => {
  const table = [
    ["prod", ["production", "prod"], ["prod", "production"]],
    ["production", ["production", "prod"], ["production", "prod"]],
    ["dev", ["development", "dev"], ["dev", "development"]],
    ["development", ["development", "dev"], ["development", "dev"]],
    ["staging", ["staging"], ["staging"]],
  ] as const;
  for (const [name, sections, fileNames] of table) {
    assert.deepEqual(profileOf({ AUTUMN_ENV: name }), { name, sections, fileNames });
  }
});

Deno.test("a profile's name cannot lead out of the folder", () => {
  for (const name of ["../x", "a/b", ".", "..", "a b", "-x", "a\nb"]) {
    const choice = selectProfile({}, name);
    assert.match(choice.problem?.message ?? "", /^Cannot select a profile from --profile as/, name);
  }
  assert.equal(
    selectProfile({ AUTUMN_PROFILE: "a/b" }, undefined).problem?.source,
    "AUTUMN_PROFILE",
  );
});

Deno.test(".env files are read in development and test only, unless AUTUMN_DOTENV says otherwise", () => {
  const table = [
    [undefined, undefined, false],
    ["prod", undefined, false],
    ["dev", undefined, true],
    ["development", undefined, true],
    ["test", undefined, true],
    ["prod", "1", true],
    [undefined, "TRUE", true],
    ["dev", "0", false],
    ["test", " false ", false],
    ["dev", "", true],
  ] as const;
  for (const [name, dotenv, expected] of table) {
    const choice = readsDotenv(
      dotenv === undefined ? {} : { AUTUMN_DOTENV: dotenv },
      profileOf({}, name),
    );
    assert.deepEqual(choice, { value: expected }, `${name} ${dotenv}`);
  }
});

Deno.test("AUTUMN_DOTENV with another word is an error", () => {
  const choice = readsDotenv({ AUTUMN_DOTENV: "maybe" }, undefined);
  assert.deepEqual(choice.problem, {
    source: "AUTUMN_DOTENV",
    message: "Cannot use AUTUMN_DOTENV as it must be one of 1, true, 0, false",
  });
});
