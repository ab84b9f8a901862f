import assert from "node:assert/strict";
import { inWorld, LEASE } from "../election/world.ts";
import { MemoryTracer } from "./memory_tracer.ts";

Deno.test("each tick of an elector is one span: the look that takes the Lease, renewals, and the release", () =>
  inWorld(async (world) => {
    const tracer = new MemoryTracer();
    const a = world.started("a", { tracer });
    await world.clock.advance(5_000);
    await a.stop();
    const phases = tracer.spans.map(({ values }) => values.phase);
    assert.deepEqual(phases, ["follow", "lead", "lead", "release"]);
    assert.deepEqual(tracer.spans[0], {
      name: "elector tick",
      values: { lease: LEASE, phase: "follow", leading: true },
      failed: null,
    });
    assert.deepEqual(tracer.spans.map(({ values }) => values.leading), [true, true, true, false]);
    assert.equal(tracer.open, 0);
  }));

Deno.test("a tick whose call fails has the class of the error, and no text of the server", () =>
  inWorld(async (world) => {
    const tracer = new MemoryTracer();
    const a = world.started("a", { tracer });
    await world.clock.advance(0);
    a.client.fault = () => ({ type: "hang" });
    a.client.watchMode = "silent";
    await world.until(() => !a.leads);
    await a.crash();
    await world.clock.advance(0);
    // The last renewal is cut off by the end of belief.
    const failed = tracer.spans.flatMap((span) => span.failed ?? []);
    assert.ok(failed.length >= 2);
    assert.deepEqual(new Set(failed), new Set(["timeout", "LeadershipLostError"]));
    assert.equal(tracer.open, 0);
  }));

Deno.test("a follower's ticks say that it does not lead", () =>
  inWorld(async (world) => {
    world.foreignLease("other", 3_600);
    const tracer = new MemoryTracer();
    const a = world.started("a", { tracer });
    await world.clock.advance(0);
    assert.deepEqual(tracer.spans.map(({ values }) => [values.phase, values.leading]), [
      ["follow", false],
    ]);
    await a.stop();
    await world.clock.advance(0);
  }));

Deno.test("a resigned term has its release as a span too", () =>
  inWorld(async (world) => {
    const tracer = new MemoryTracer();
    const a = world.started("a", { tracer });
    await world.clock.advance(0);
    a.term.resign();
    await world.clock.advance(0);
    assert.deepEqual(tracer.spans.map(({ values }) => values.phase), ["follow", "release"]);
    await a.stop();
  }));
