import assert from "node:assert/strict";
import { demo } from "../../../../handlers/commands/demo.ts";
import type { DemoOptions } from "../../../../handlers/commands/options.ts";
import { type StopSignal, systemClock } from "../../../../handlers/commands/system.ts";
import { fakeSystem } from "../fake_system.ts";

/** What happens when the demo prints a line that matches. */
interface Interference {
  readonly at: RegExp;
  readonly act: (hands: Hands) => void;
}

/** What a test can do to a demo. */
interface Hands {
  readonly send: (signal: StopSignal) => void;
  /** Moves the wall clock of the demo on. */
  readonly skip: (delayMs: number) => void;
}

/** Runs the demo in this process, so that the sanitizers see what it leaves. */
async function play({ at, act }: Interference, options: Partial<DemoOptions> = {}) {
  const machine = fakeSystem();
  const handlers: { readonly signal: StopSignal; readonly handler: () => void }[] = [];
  let skippedMs = 0;
  let done = false;
  const hands: Hands = {
    send: (signal) =>
      handlers.filter((one) => one.signal === signal).forEach((one) => one.handler()),
    skip: (delayMs) => void (skippedMs += delayMs),
  };
  const code = await demo({
    envFile: undefined,
    once: false,
    port: undefined,
    paceMs: 0,
    ...options,
    system: {
      ...machine,
      readTextFile: (path) => Deno.readTextFileSync(path),
      clock: { ...systemClock, wall: () => systemClock.wall() + skippedMs },
      stdout: {
        isTerminal: false,
        write(text) {
          machine.stdout.write(text);
          if (done || !at.test(text)) return;
          done = true;
          act(hands);
        },
      },
      onSignal(signal, handler) {
        const entry = { signal, handler };
        handlers.push(entry);
        return () => void handlers.splice(handlers.indexOf(entry), 1);
      },
    },
  });
  const folder = /\s(\S+)\/service\.log\n/.exec(machine.written.stdout)?.[1] ?? "";
  const left = await Deno.stat(folder).then(() => true, () => false);
  return { code, left, handlers: handlers.length, ...machine.written };
}

Deno.test("a signal in the story ends a demo in order, with 0, or with 1 when only the story was asked for", async () => {
  for (const once of [false, true]) {
    const end = await play({ at: /^3\. /, act: ({ send }) => send("SIGINT") }, { once });
    assert.deepEqual(
      { code: end.code, left: end.left, handlers: end.handlers, stderr: end.stderr },
      { code: once ? 1 : 0, left: false, handlers: 0, stderr: "" },
    );
    assert.doesNotMatch(end.stdout, /^8\. /m);
  }
});

Deno.test("a signal while the demo is being set up ends it too", async () => {
  const end = await play({ at: /^Holdfast/, act: ({ send }) => send("SIGTERM") });
  assert.deepEqual(
    { code: end.code, handlers: end.handlers, stderr: end.stderr },
    { code: 0, handlers: 0, stderr: "" },
  );
  assert.doesNotMatch(end.stdout, /^1\. /m);
});

Deno.test("a signal after the story ends a demo that stays up", async () => {
  const end = await play({ at: /^kubectl annotate /, act: ({ send }) => send("SIGTERM") });
  assert.deepEqual(
    { code: end.code, left: end.left, handlers: end.handlers, stderr: end.stderr },
    { code: 0, left: false, handlers: 0, stderr: "" },
  );
});

Deno.test("a step that goes wrong ends the demo with 1, the reason and the end of the service's log", async () => {
  // After a month all tokens have ended: the second step cannot go well.
  const days = 40 * 86_400_000;
  const end = await play({ at: /^1\. /, act: ({ skip }) => skip(days) });
  assert.equal(end.code, 1);
  assert.match(end.stderr, /^holdfast: Cannot go on after step 2 of 20 \("[^"]+"\) as /);
  assert.match(end.stderr, /The end of the service's log:\n(.+\n)*.* deploy api /);
  assert.deepEqual([end.left, end.handlers], [false, 0]);
  assert.doesNotMatch(end.stderr, /eyJ|Bearer/);
});
