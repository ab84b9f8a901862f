import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import manifest from "../../../deno.json" with { type: "json" };

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** Runs the program itself. */
async function holdfast(args: readonly string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-q", "-P=serve", "--no-prompt", `${ROOT}/main.ts`, ...args],
    cwd: ROOT,
    env,
    stdout: "piped",
    stderr: "piped",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

Deno.test("the program prints its version with the permissions of serve", async () => {
  assert.deepEqual(await holdfast(["--version"]), {
    code: 0,
    stdout: `${manifest.version} (from the source tree)\n`,
    stderr: "",
  });
});

Deno.test("the program reads its variables, and shows where a value came from", async () => {
  const { code, stdout, stderr } = await holdfast(["config"], {
    HOLDFAST__LOG__LEVEL: "debug",
    KUBERNETES_SERVICE_HOST: "10.0.0.1",
  });
  assert.equal(stderr, "");
  assert.equal(code, 0);
  assert.match(stdout, /^ {2}level: "debug" # HOLDFAST__LOG__LEVEL$/m);
});

Deno.test("serve with a bad configuration ends with code 1 and one line, and starts nothing", async () => {
  const { code, stdout, stderr } = await holdfast(["serve"], {
    HOLDFAST__DEPLOY_API__ENABLED: "true",
  });
  assert.deepEqual({ code, stdout }, { code: 1, stdout: "" });
  assert.match(
    stderr,
    /^holdfast: Cannot serve the deploy API without TLS: [^\n]*HOLDFAST__DEPLOY_API__ENABLED\)\n$/,
  );
});

Deno.test("wrong usage ends with code 2", async () => {
  const { code, stderr } = await holdfast(["server"]);
  assert.equal(code, 2);
  assert.match(stderr, /unknown command 'server'\n\(Did you mean serve\?\)/);
});
