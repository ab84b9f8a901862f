import assert from "node:assert/strict";
import fc from "fast-check";
import { ownDeadline } from "../../lib/client/rules.ts";
import {
  childEnvironment,
  ddlMayHaveBegun,
  EXIT_CODES,
  killAtMs,
  onGuardClock,
  REVOKED_GRACE_MS,
} from "../../lib/supervisor/rules.ts";

const instant = fc.integer({ min: 0, max: 1e12 });

Deno.test("a deadline that comes near leaves one margin, a revocation 2 s at most, and neither more than the deadline", () => {
  fc.assert(
    fc.property(instant, instant, fc.integer({ min: 2_000, max: 20_000 }), (at, now, margin) => {
      const deadline = ownDeadline(at, margin);
      assert.equal(killAtMs("deadline", deadline, now), deadline.killAtMs);
      for (const reason of ["topology_changed", "operator_revoked", "not_found"] as const) {
        const kill = killAtMs(reason, deadline, now);
        assert.ok(kill <= deadline.killAtMs && kill <= now + REVOKED_GRACE_MS);
        assert.ok(kill === deadline.killAtMs || kill === now + REVOKED_GRACE_MS);
      }
    }),
  );
});

Deno.test("a deadline on the guard's clock is never late, and early by the time that its word took", () => {
  // Both clocks go at the same rate; `zero` is how far the guard's is ahead.
  fc.assert(
    fc.property(instant, instant, fc.nat(100_000), fc.integer(), (deadline, told, took, zero) => {
      const guardMs = told + zero;
      const heardMs = told + took;
      const onGuard = onGuardClock(deadline, guardMs, heardMs);
      assert.equal(onGuard - zero, deadline - took);
      assert.ok(onGuard - zero <= deadline);
    }),
  );
});

Deno.test("DDL may have begun when the file says so, or is gone", () => {
  const read = (text: string) => ddlMayHaveBegun({ type: "read", text });
  for (const text of ["ddl", "ddl\n", "  ddl  ", "begin\nddl\n", "ddl\nddl\n"]) {
    assert.equal(read(text), true, text);
  }
  for (const text of ["", "\n", "ddls", "before-ddl", "no"]) assert.equal(read(text), false, text);
  assert.equal(ddlMayHaveBegun({ type: "unreadable" }), true);
});

Deno.test("a command is told its operation, fence, generation, site and phase file", () => {
  const context = {
    operationId: "op-1",
    fence: 2n ** 63n,
    topologyGeneration: 7,
    activeSite: "iad",
    phaseFile: "/tmp/phase",
  };
  assert.deepEqual(childEnvironment(context), {
    HOLDFAST_OPERATION_ID: "op-1",
    HOLDFAST_FENCE: "9223372036854775808",
    HOLDFAST_TOPOLOGY_GENERATION: "7",
    HOLDFAST_ACTIVE_SITE: "iad",
    HOLDFAST_PHASE_FILE: "/tmp/phase",
  });
  assert.equal(childEnvironment({ ...context, fence: null }).HOLDFAST_FENCE, "");
});

Deno.test("no two outcomes of run have one exit code", () => {
  const codes = Object.values(EXIT_CODES);
  assert.equal(new Set(codes).size, codes.length);
});
