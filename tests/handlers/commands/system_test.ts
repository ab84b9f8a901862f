import assert from "node:assert/strict";
import {
  productionSystem,
  systemClock as clock,
  systemEntropy as entropy,
  textOutput,
} from "../../../handlers/commands/system.ts";

// These tests are about the real machine, so they wait for real timers: a few milliseconds each.

Deno.test("the monotonic clock goes on, and the wall clock is the time of day", () => {
  const before = clock.monotonic();
  assert(clock.monotonic() >= before);
  assert(Math.abs(clock.wall() - Date.now()) < 1_000);
});

Deno.test("a timer fires once, and never before its time", async () => {
  for (const delay of [0, 1, 2.5, 7]) {
    const start = clock.monotonic();
    let calls = 0;
    await new Promise<void>((resolve) => {
      clock.timer(delay, () => {
        calls++;
        resolve();
      });
    });
    assert(clock.monotonic() - start >= delay);
    assert.equal(calls, 1);
  }
});

Deno.test("a timer that was stopped does not fire, and may be stopped again", async () => {
  let fired = false;
  const cancel = clock.timer(1, () => fired = true);
  cancel();
  cancel();
  await new Promise<void>((resolve) => void clock.timer(5, resolve));
  assert.equal(fired, false);
});

Deno.test("a timer of more than 25 days does not fire at once, as the platform's own would", async () => {
  let fired = false;
  const cancels = [2 ** 31, Number.MAX_SAFE_INTEGER].map((delay) =>
    clock.timer(delay, () => fired = true)
  );
  await new Promise<void>((resolve) => void clock.timer(5, resolve));
  cancels.forEach((cancel) => cancel());
  assert.equal(fired, false);
});

Deno.test("random bytes come in any length", () => {
  for (const length of [0, 1, 32, 65_536, 65_537, 200_000]) {
    assert.equal(entropy.bytes(length).length, length);
  }
  const tail = entropy.bytes(65_536 + 64).subarray(65_536);
  assert(tail.some((byte) => byte !== 0));
  assert.notDeepEqual(entropy.bytes(32), entropy.bytes(32));
});

Deno.test("a UUID is one of version 4, in lower case", () => {
  assert.match(
    entropy.uuid(),
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  assert.notEqual(entropy.uuid(), entropy.uuid());
});

Deno.test("a fraction is 0 or more and below 1, and they are spread out", () => {
  const drawn = Array.from({ length: 1_000 }, () => entropy.fraction());
  assert(drawn.every((value) => value >= 0 && value < 1));
  assert(drawn.some((value) => value < 0.25) && drawn.some((value) => value > 0.75));
});

Deno.test("a file is read, a missing one is undefined, and one that cannot be read is an error", () => {
  const system = productionSystem();
  const folder = Deno.makeTempDirSync();
  try {
    Deno.writeTextFileSync(`${folder}/a`, "text");
    assert.equal(system.readTextFile(`${folder}/a`), "text");
    assert.equal(system.readTextFile(`${folder}/b`), undefined);
    assert.throws(() => system.readTextFile(folder));
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});

Deno.test("the environment is a copy of what was there at the start", () => {
  Deno.env.set("HOLDFAST_TEST_VARIABLE", "before");
  const system = productionSystem();
  Deno.env.set("HOLDFAST_TEST_VARIABLE", "after");
  assert.equal(system.env.HOLDFAST_TEST_VARIABLE, "before");
  Deno.env.delete("HOLDFAST_TEST_VARIABLE");
});

const SYSTEM = new URL("../../../handlers/commands/system.ts", import.meta.url).href;

/** Runs a piece of a program in a process of its own. */
async function evaluate(code: string) {
  const { code: exitCode, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "eval",
      `import { productionSystem } from ${JSON.stringify(SYSTEM)};
      const system = productionSystem(); ${code}`,
    ],
    stdout: "piped",
    stderr: "piped",
  }).output();
  const decoder = new TextDecoder();
  return { exitCode, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

Deno.test("output is written whole, and exit ends the process with its code", async () => {
  const result = await evaluate(
    `system.stdout.write("x".repeat(1_000_000)); system.stderr.write(String(system.stderr.isTerminal)); system.exit(3);`,
  );
  assert.equal(result.exitCode, 3);
  assert.equal(result.stdout.length, 1_000_000);
  assert.equal(result.stderr, "false");
});

Deno.test("a stream that takes a part at a time gets the whole text", () => {
  const bytes: number[] = [];
  const output = textOutput({
    isTerminal: () => true,
    writeSync: (rest) => {
      bytes.push(...rest.subarray(0, 3));
      return Math.min(3, rest.length);
    },
  });
  output.write("zwölf Boxkämpfer");
  assert.equal(new TextDecoder().decode(new Uint8Array(bytes)), "zwölf Boxkämpfer");
  assert.equal(output.isTerminal, true);
});

Deno.test("a broken pipe drops the text, and any other fault of a stream is told", () => {
  const failing = (error: Error) =>
    textOutput({
      isTerminal: () => false,
      writeSync: () => {
        throw error;
      },
    });
  failing(new Deno.errors.BrokenPipe()).write("x");
  const full = new Error("No space left");
  assert.throws(() => failing(full).write("x"), full);
});

Deno.test("a handler of a signal can be added and removed", () => {
  productionSystem().onSignal("SIGTERM", () => {})();
});

Deno.test("a signal calls its handler, and does not end the process", async () => {
  const { exitCode, stdout } = await evaluate(`
    system.onSignal("SIGTERM", () => { system.stdout.write("handled"); system.exit(5); });
    system.clock.timer(30_000, () => system.exit(9));
    Deno.kill(Deno.pid, "SIGTERM");
  `);
  assert.deepEqual({ exitCode, stdout }, { exitCode: 5, stdout: "handled" });
});

Deno.test("a signal whose handler was removed ends the process, as it does by default", async () => {
  const { exitCode, stdout } = await evaluate(`
    system.onSignal("SIGTERM", () => system.stdout.write("handled"))();
    system.clock.timer(30_000, () => system.exit(9));
    Deno.kill(Deno.pid, "SIGTERM");
  `);
  assert.deepEqual({ exitCode, stdout }, { exitCode: 143, stdout: "" });
});

Deno.test("a reader that went away is no error", async () => {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "eval",
      `import { productionSystem } from ${JSON.stringify(SYSTEM)};
      const system = productionSystem();
      for (let i = 0; i < 100; i++) system.stdout.write("x".repeat(100_000)); system.exit(4);`,
    ],
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  await child.stdout.cancel();
  const [{ code }, errors] = await Promise.all([child.status, new Response(child.stderr).text()]);
  assert.equal(errors, "");
  assert.equal(code, 4);
});
