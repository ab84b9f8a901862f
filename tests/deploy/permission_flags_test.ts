import assert from "node:assert/strict";
import { permissionFlags } from "../../deploy/permission_flags.ts";
import manifest from "../../deno.json" with { type: "json" };

Deno.test("the compiled program is granted the union of the sets, and never asks", () => {
  assert.deepEqual(
    permissionFlags({
      serve: { net: true, env: { allow: ["B", "A"], ignore: true } },
      demo: { net: ["127.0.0.1"], write: ["/tmp"], env: { allow: ["A", "C"] }, run: false },
    }),
    ["--allow-env=A,B,C", "--ignore-env", "--allow-net", "--allow-write=/tmp", "--no-prompt"],
  );
});

Deno.test("a permission that is written in an unknown way is refused and not passed over", () => {
  assert.throws(() => permissionFlags({ serve: { net: { deny: ["x"] } } }), { name: "ZodError" });
  assert.throws(() => permissionFlags({ serve: { net: "all" } }), { name: "ZodError" });
});

Deno.test("only run may start programs, and no command may load libraries or see every variable", () => {
  const flags = permissionFlags(manifest.permissions);
  assert.ok(flags.includes("--allow-net") && flags.includes("--ignore-env"));
  assert.deepEqual(
    flags.filter((flag) => /^--allow-(ffi|sys|all)|^--allow-env$/.test(flag)),
    [],
  );
  const starters = Object.entries(manifest.permissions).filter(([, set]) => "run" in set);
  assert.deepEqual(starters.map(([name]) => name), ["run"]);
});
