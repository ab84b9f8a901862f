import assert from "node:assert/strict";
import {
  CommandNotFoundError,
  isRunnable,
  signalGroup,
  startGroup,
} from "../../lib/supervisor/process_group.ts";
import { livingOf, untilGone } from "../handlers/commands/run_process.ts";

Deno.test("a program is the leader of its own group, gets its environment, and its exit code comes back", async () => {
  const script = `test "$GIVEN" = yes -a -n "$PATH" || exit 1; exit 9`;
  const { ended } = startGroup({ path: "sh", args: ["-c", script] }, { GIVEN: "yes" });
  assert.equal(await ended, 9);
});

Deno.test("a signal reaches all of a group, and a group that is gone is no error", async () => {
  const script = "sh -c 'sleep 60 & sleep 60' & sleep 60";
  const { pid, ended } = startGroup({ path: "sh", args: ["-c", script] }, {});
  while ((await livingOf(pid)).length < 5) await new Promise((done) => setTimeout(done, 10));
  assert.equal(signalGroup(pid, "SIGKILL"), true);
  assert.equal(await ended, 137);
  await untilGone(pid, 2_000);
  // The kernel has groups below this number alone.
  assert.equal(signalGroup(4_194_305, "SIGKILL"), false);
});

Deno.test("a signal to every process of the machine, or to our own group, is refused", () => {
  for (const group of [1, 0, -5, 1.5, NaN]) {
    assert.throws(() => signalGroup(group, "SIGKILL"), RangeError);
  }
});

Deno.test("a program that is not there, or must not be run, is an error of its own", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/plain`, "", { mode: 0o644 });
    await Deno.writeTextFile(`${folder}/program`, "#!/bin/sh\n", { mode: 0o755 });
    for (const path of ["no-such-program-here", `${folder}/none`, `${folder}/plain`]) {
      assert.throws(() => startGroup({ path, args: [] }, {}), CommandNotFoundError);
    }
    assert.equal(await isRunnable(`${folder}/program`, ""), true);
    assert.equal(await isRunnable("program", `/none:${folder}`), true);
    assert.equal(await isRunnable("program", "/none"), false);
    assert.equal(await isRunnable("plain", folder), false);
    assert.equal(await isRunnable(folder, ""), false);
    assert.equal(await isRunnable("", folder), false);
    assert.equal(await isRunnable("no-such-program-here", ""), false);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
