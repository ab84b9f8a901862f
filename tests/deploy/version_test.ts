import assert from "node:assert/strict";
import { buildSource, COMMIT } from "../../deploy/build_source.ts";
import { run } from "../../deploy/commands.ts";
import { versionText } from "../../handlers/commands/version.ts";

const commit = "0123456789abcdef0123456789abcdef01234567";

Deno.test("the version tells the commit, the changes, or that it is the source tree", () => {
  assert.equal(versionText({ version: "1.2.3", source: null }), "1.2.3 (from the source tree)");
  assert.equal(
    versionText({ version: "1.2.3", source: { commit, changed: false } }),
    `1.2.3 (commit ${commit})`,
  );
  assert.equal(
    versionText({ version: "1.2.3", source: { commit, changed: true } }),
    `1.2.3 (commit ${commit}, with changes)`,
  );
});

/** A repository with one commit. */
async function withRepository(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "build-source-" });
  const git = async (...args: readonly string[]) => {
    const author = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
    const { success, output } = await run("git", [...author, ...args], folder);
    assert.ok(success, output);
  };
  try {
    await git("init", "--quiet");
    await Deno.mkdir(`${folder}/lib`);
    await Deno.writeTextFile(`${folder}/main.ts`, "first\n");
    await git("add", ".");
    await git("commit", "--quiet", "--no-gpg-sign", "-m", "First");
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("git tells the commit, and a changed or new file of the product is told; another file is not", async () => {
  await withRepository(async (folder) => {
    const clean = await buildSource(folder, {});
    assert.match(clean.commit, /^[0-9a-f]{40}$/);
    assert.equal(clean.changed, false);
    await Deno.writeTextFile(`${folder}/notes.md`, "mine\n");
    assert.deepEqual(await buildSource(folder, {}), clean);
    await Deno.writeTextFile(`${folder}/lib/new.ts`, "new\n");
    assert.deepEqual(await buildSource(folder, {}), { ...clean, changed: true });
  });
});

Deno.test("without a clone the variable tells the commit, and a wrong one or none is refused", async () => {
  const folder = await Deno.makeTempDir({ prefix: "build-source-" });
  try {
    assert.deepEqual(await buildSource(folder, { [COMMIT]: commit }), { commit, changed: false });
    await assert.rejects(buildSource(folder, { [COMMIT]: "main" }), {
      name: "StepError",
      message:
        "Cannot name the commit as 'HOLDFAST_COMMIT' must be 40 hexadecimal digits: current value is main",
    });
    await assert.rejects(buildSource(folder, {}), {
      message: "Cannot name the commit: this is no clone of git, and 'HOLDFAST_COMMIT' is not set",
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
