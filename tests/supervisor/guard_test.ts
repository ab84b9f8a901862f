import assert from "node:assert/strict";
import { systemClock } from "../../handlers/commands/system.ts";
import { GuardError, GuardProcess } from "../../lib/supervisor/guard.ts";
import { CommandNotFoundError } from "../../lib/supervisor/process_group.ts";
import { RunFolder } from "../../lib/supervisor/run_folder.ts";
import { pathOf, ROOT } from "../checks/shell.ts";

const clock = systemClock;

function guardOf(folder: RunFolder) {
  const { socketPath } = folder;
  const args = ["run", "-q", "-A", `${pathOf(ROOT)}/main.ts`, "run-guard", socketPath];
  return { clock, socketPath, command: { path: Deno.execPath(), args } };
}

Deno.test("a guard starts a program, and tells how it ended", async () => {
  using folder = RunFolder.make();
  await using guard = await GuardProcess.start(guardOf(folder));
  guard.killAt(clock.monotonic() + 60_000);
  const child = await guard.start({ path: "sh", args: ["-c", 'exit "$CODE"'] }, { CODE: "6" });
  assert.ok(child.pid > 1 && child.pid !== guard.pid);
  assert.equal(await child.ended, 6);
});

Deno.test("a program that is not there is told", async () => {
  using folder = RunFolder.make();
  await using guard = await GuardProcess.start(guardOf(folder));
  await assert.rejects(
    guard.start({ path: "no-such-program", args: [] }, {}),
    CommandNotFoundError,
  );
});

Deno.test("a deadline of the supervisor's clock is kept on the guard's", async () => {
  using folder = RunFolder.make();
  await using guard = await GuardProcess.start(guardOf(folder));
  const startMs = clock.monotonic();
  guard.killAt(startMs + 600);
  const child = await guard.start({ path: "sleep", args: ["60"] }, {});
  assert.equal(await child.ended, 137);
  const tookMs = clock.monotonic() - startMs;
  // Early by no more than the word of the guard took, and late by no more than a busy machine is.
  assert.ok(tookMs > 300 && tookMs < 3_000, String(tookMs));
});

Deno.test("a guard that is disposed of takes its program with it", async () => {
  using folder = RunFolder.make();
  const guard = await GuardProcess.start(guardOf(folder));
  const child = await guard.start({ path: "sleep", args: ["60"] }, {});
  const ended = child.ended.catch((error) => error);
  await guard[Symbol.asyncDispose]();
  const end = await ended;
  assert.ok(end === 137 || end instanceof GuardError);
  assert.throws(() => Deno.kill(child.pid, "SIGKILL"));
});

Deno.test("a guard that is frozen is killed when it is disposed of", async () => {
  using folder = RunFolder.make();
  const guard = await GuardProcess.start(guardOf(folder));
  Deno.kill(guard.pid, "SIGSTOP");
  const startMs = clock.monotonic();
  await guard[Symbol.asyncDispose]();
  assert.ok(clock.monotonic() - startMs < 10_000);
  assert.throws(() => Deno.kill(guard.pid, "SIGKILL"), Deno.errors.NotFound);
});

Deno.test("a guard that cannot start, ends at once, or talks nonsense, is an error and leaves nothing", async () => {
  const say = (text: string) =>
    `const c = await Deno.connect({ transport: "unix", path: Deno.args[0] });` +
    `await c.write(new TextEncoder().encode(${
      JSON.stringify(text)
    })); await c.read(new Uint8Array(1));`;
  const script = (text: string) => ({
    path: Deno.execPath(),
    args: ["eval", text],
  });
  for (
    const command of [
      { path: "no-such-program", args: [] },
      { path: "false", args: [] },
      script(say("nonsense\n")),
      script(say(`{"type":"ended","code":0}\n`)),
    ]
  ) {
    using folder = RunFolder.make();
    const { socketPath } = folder;
    const withPath = { ...command, args: [...command.args, socketPath] };
    await assert.rejects(
      GuardProcess.start({ clock, socketPath, command: withPath }),
      GuardError,
    );
  }
});

Deno.test("the folder of a run is this user's alone, its phase file is empty, and both go in the end", () => {
  let path = "";
  {
    using folder = RunFolder.make();
    path = folder.phaseFile.path;
    assert.deepEqual(folder.phaseFile.read(), { type: "read", text: "" });
    assert.equal((Deno.statSync(path).mode ?? 0) & 0o077, 0);
    Deno.writeTextFileSync(path, "ddl\n");
    assert.deepEqual(folder.phaseFile.read(), { type: "read", text: "ddl\n" });
    Deno.removeSync(path);
    assert.deepEqual(folder.phaseFile.read(), { type: "unreadable" });
  }
  assert.throws(() => Deno.statSync(path), Deno.errors.NotFound);
});
