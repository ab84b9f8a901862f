import assert from "node:assert/strict";
import { Keeper, pause } from "./keeper.ts";

const SLEEP = ["-c", "echo started; exec sleep 1000"];

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

async function processId(folder: string, run: string): Promise<number> {
  while (!await exists(`${folder}/${run}.pid`)) await pause(10);
  return Number(await Deno.readTextFile(`${folder}/${run}.pid`));
}

async function isRunning(id: number): Promise<boolean> {
  const { success } = await new Deno.Command("sh", {
    args: ["-c", `kill -0 ${id}`],
    stderr: "null",
  }).output();
  return success;
}

Deno.test("a process can be stopped and started again under its name", async () => {
  const keeper = await Keeper.open();
  await keeper.start("sleeper", "sh", SLEEP);
  const first = await processId(keeper.folder, "sleeper.1");
  assert.equal(await keeper.hasExited("sleeper"), false);
  await keeper.stop("sleeper");
  assert.equal(await keeper.hasExited("sleeper"), true);
  assert.equal(await isRunning(first), false);
  await keeper.start("sleeper", "sh", SLEEP);
  assert.equal(await keeper.hasExited("sleeper"), false);
  const second = await processId(keeper.folder, "sleeper.2");
  assert.equal(await isRunning(second), true);
  await keeper.close();
  assert.equal(await isRunning(second), false);
  assert.equal(await exists(keeper.folder), false);
});

Deno.test("a process that does not heed SIGTERM is killed", async () => {
  const keeper = await Keeper.open();
  await keeper.start("deaf", "sh", [
    "-c",
    "trap '' TERM; echo deaf; while :; do sleep 0.1; done",
  ]);
  while (await keeper.logTail("deaf") !== "deaf") await pause(10);
  await keeper.stop("deaf");
  await keeper.close();
});

Deno.test("a process that ends by itself is seen, with what it printed", async () => {
  const keeper = await Keeper.open();
  await keeper.start("short", "sh", ["-c", "echo it\\'s over; exit 3"]);
  while (!await keeper.hasExited("short")) await pause(10);
  assert.equal(await keeper.logTail("short"), "it's over");
  await assert.rejects(keeper.stop("other"), /start it first/);
  await keeper.close();
});

Deno.test("the processes end and their folder goes when the test process is killed", async () => {
  const script = `
    import { Keeper } from ${JSON.stringify(import.meta.resolve("./keeper.ts"))};
    const keeper = await Keeper.open();
    await keeper.start("sleeper", "sleep", ["1000"]);
    console.log(keeper.folder);
    setInterval(() => {}, 1000);`;
  const doomed = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-check", script],
    stdout: "piped",
  }).spawn();
  const reader = doomed.stdout.getReader();
  const folder = new TextDecoder().decode((await reader.read()).value).trim();
  const id = await processId(folder, "sleeper.1");
  assert.equal(await isRunning(id), true);
  doomed.kill("SIGKILL");
  await doomed.status;
  await reader.cancel();
  while (await exists(folder)) await pause(10);
  assert.equal(await isRunning(id), false);
});

Deno.test("an error that nobody caught ends the tests of a file, and its processes all the same", async () => {
  const folder = await Deno.makeTempDir({ prefix: "holdfast-keeper-" });
  const doomed = `${folder}/doomed_test.ts`;
  await Deno.writeTextFile(
    doomed,
    `
    import { Keeper } from ${JSON.stringify(import.meta.resolve("./keeper.ts"))};
    Deno.test("doomed", async () => {
      const keeper = await Keeper.open();
      // Whatever is stopped after it must not be forgotten.
      await keeper.start("sleeper", "sleep", ["1000"]);
      await keeper.start("slow", "sh", ["-c", "trap 'sleep 1; exit' TERM; while :; do sleep 0.1; done"]);
      await Deno.writeTextFile("${folder}/keeper", keeper.folder);
      void Promise.reject(new Error("nobody catches it"));
      await new Promise(() => {});
    });`,
  );
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-check", "--allow-all", doomed],
    stdout: "null",
    stderr: "null",
  }).output();
  assert.equal(success, false);
  const kept = await Deno.readTextFile(`${folder}/keeper`);
  const id = await processId(kept, "sleeper.1").catch(() => null);
  while (await exists(kept)) await pause(10);
  assert.ok(id === null || !await isRunning(id));
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a signal to the whole group ends the keeper too, though it takes along those who wait for the processes", async () => {
  const folder = await Deno.makeTempDir({ prefix: "holdfast-cluster-" });
  await Deno.writeTextFile(`${folder}/sleeper.1.sh`, "exec sleep 1000\n");
  const keeper = new Deno.Command("sh", {
    args: [new URL("keeper.sh", import.meta.url).pathname, folder],
    stdin: "piped",
    // A group of its own, as a shell gives it to a command.
    detached: true,
  }).spawn();
  const input = keeper.stdin.getWriter();
  await input.write(new TextEncoder().encode("start sleeper.1\n"));
  const id = await processId(folder, "sleeper.1");
  Deno.kill(-keeper.pid, "SIGTERM");
  await keeper.status;
  assert.equal(await isRunning(id), false);
  assert.equal(await exists(folder), false);
  await input.close().catch(() => {});
});
