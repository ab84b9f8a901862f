import assert from "node:assert/strict";
import { renderReference } from "../../lib/config/reference.ts";
import { configKeys } from "../../lib/config/schema.ts";

const PAGE = new URL("../../docs/configuration.md", import.meta.url);

Deno.test("docs/configuration.md is what the schema says (else: deno run -A main.ts config --reference > docs/configuration.md)", async () => {
  assert.equal(await Deno.readTextFile(PAGE), renderReference());
});

Deno.test("the page has every key with its meaning", () => {
  const page = renderReference();
  for (const [key, { description }] of configKeys.keys) {
    const name = key.slice(key.lastIndexOf(".") + 1);
    assert(
      page.split("\n").some((line) =>
        line.startsWith(`| \`${name}\` `) && line.includes(description)
      ),
      key,
    );
  }
});

Deno.test("the page is formatted as the repository wants it", async () => {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--check", PAGE.pathname],
    stdout: "null",
    stderr: "piped",
  }).output();
  assert(success, new TextDecoder().decode(stderr));
});
