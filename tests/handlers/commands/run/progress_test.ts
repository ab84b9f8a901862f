import assert from "node:assert/strict";
import { RunProgress } from "../../../../handlers/commands/run/progress.ts";
import {
  AuthorityLostError,
  HeldError,
  UnreachableError,
  UnstableError,
} from "../../../../lib/client/errors.ts";
import { TestClock } from "../../../../lib/testing/mod.ts";

function stage(isTerminal: boolean) {
  const clock = new TestClock();
  const written: string[] = [];
  const output = { isTerminal, write: (text: string) => void written.push(text) };
  return { clock, written, progress: new RunProgress(output, clock, 600_000) };
}

const held = (operationId: string, expiresAt: string) =>
  new HeldError("orders", { operationId, instance: "tenant", expiresAt });

Deno.test("a pipeline gets one plain line for each change, and none for a renewal of the holder", async () => {
  const { clock, written, progress } = stage(false);
  progress.say("Operation op-1");
  progress.waiting(held("a", "2026-01-01T00:00:30Z"));
  await clock.advance(10_000);
  progress.waiting(held("a", "2026-01-01T00:00:40Z"));
  progress.waiting(held("b", "2026-01-01T00:01:00Z"));
  progress.waiting(new UnstableError("orders", "NoPrimary"));
  progress.waiting(new UnstableError("orders", "NoPrimary"));
  progress.waiting(new UnstableError("orders", "PlannedFailover"));
  progress.waiting(new UnreachableError("connection", "ECONNREFUSED", false));
  progress.ready();
  progress.waiting(new UnreachableError("connection", "ECONNREFUSED", false));
  progress[Symbol.dispose]();
  const lines = written.map((text) => text.trimEnd());
  assert.equal(lines.length, 7);
  assert.ok(lines.every((line) => /^holdfast: \P{Cc}+$/u.test(line)));
  assert.match(lines[1] ?? "", /^holdfast: Waiting for up to 10m: .*'a' of 'tenant'/);
  assert.match(lines[2] ?? "", /^holdfast: Waiting for up to 9m50s: .*'b' of 'tenant'/);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a person sees one line that counts, with the newest word about the holder", async () => {
  const { clock, written, progress } = stage(true);
  progress.waiting(held("a", "2026-01-01T00:00:30Z"));
  await clock.advance(2_000);
  progress.waiting(held("a", "2026-01-01T00:00:40Z"));
  await clock.advance(1_000);
  assert.equal(written.length, 4);
  assert.ok(written.every((text) => text.startsWith("\r\x1b[K") && !text.includes("\n")));
  assert.match(written[0] ?? "", /Waiting, 10m left, for 0s so far: .*until 2026-01-01T00:00:30Z/);
  assert.match(
    written[3] ?? "",
    /Waiting, 9m57s left, for 3s so far: .*until 2026-01-01T00:00:40Z/,
  );
  progress.ready();
  progress.say("Holds the lease");
  assert.deepEqual(written.slice(4), ["\r\x1b[K", "holdfast: Holds the lease\n"]);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("who is stopped learns why, and when it will be killed", () => {
  const { written, progress } = stage(false);
  progress.stopping(new AuthorityLostError("op-1", "operator_revoked", "after-ddl"), 2_000);
  assert.match(
    written[0] ?? "",
    /^holdfast: Cannot go on under operation 'op-1' as an operator revoked it: DDL may have begun.* The command got SIGTERM, and gets SIGKILL in 2.0 s\n$/,
  );
});
