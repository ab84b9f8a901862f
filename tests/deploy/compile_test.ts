import assert from "node:assert/strict";
import { ROOT, run } from "../../deploy/commands.ts";

/** Runs the task with variables that it must refuse, before it makes anything. */
async function refusal(env: Readonly<Record<string, string>>): Promise<string> {
  const args = ["run", "-q", "-A", "deploy/compile.ts"];
  const { success, output } = await run(Deno.execPath(), args, ROOT, env);
  assert.ok(!success);
  return output.trim();
}

Deno.test("a machine that no image is for, and a commit that is none, are refused before anything is made", async () => {
  assert.equal(
    await refusal({ TARGETARCH: "riscv64" }),
    "Cannot compile for 'TARGETARCH' as it must be amd64 or arm64: current value is riscv64",
  );
  assert.equal(
    await refusal({ HOLDFAST_COMMIT: "v1" }),
    "Cannot name the commit as 'HOLDFAST_COMMIT' must be 40 hexadecimal digits: current value is v1",
  );
  // As in the builder of an image, which has no git.
  assert.equal(
    await refusal({ PATH: "/nonexistent" }),
    "Cannot name the commit: this is no clone of git, and 'HOLDFAST_COMMIT' is not set",
  );
});
