import assert from "node:assert/strict";
import { Registry } from "prom-client";
import { createElection } from "../../lib/plugin/leading.ts";
import { startKubernetes } from "../../lib/plugin/start.ts";
import { inWorld, LEASE, withElection } from "../plugin/world.ts";
import { MemoryTracer } from "./memory_tracer.ts";

Deno.test("an application's election has spans when it is given a tracer", () =>
  inWorld(async (world) => {
    const { config, logger, system } = world.parts({ kubernetes: withElection() });
    const tracer = new MemoryTracer();
    const candidate = createElection({
      election: config.kubernetes.leader_election,
      clock: world.clock,
      entropy: system.entropy,
      logger,
      registry: new Registry(),
      identity: "web-1",
      tracer,
    }, { api: world.client("app"), namespace: "default" });
    candidate.start();
    await world.clock.advance(0);
    assert.deepEqual(tracer.spans.map(({ values }) => [values.lease, values.leading]), [
      [LEASE, true],
    ]);
    await candidate.stop(AbortSignal.abort());
    await world.clock.advance(0);
  }));

Deno.test("an application with tracing on, in a process that was not started for it, warns and leads", () =>
  inWorld(async (world) => {
    const parts = world.parts({ kubernetes: withElection() });
    const config = { ...parts.config, tracing: { enabled: true } };
    const runtime = await startKubernetes({ ...parts, config });
    const { user, log, system } = parts;
    world.apps.push({ runtime, user, log, system });
    await world.until(() => world.lease()?.spec?.holderIdentity !== undefined);
    const warnings = log.at("warn").map(({ message }) => message);
    assert.equal(warnings.filter((message) => message.includes("OTEL_DENO=true")).length, 1);
  }));

Deno.test("an application that brings its own tracer, or says that it has none, gets no second one", () =>
  inWorld(async (world) => {
    for (const tracer of [new MemoryTracer(), null]) {
      const parts = world.parts({ kubernetes: withElection(), tracer });
      const config = { ...parts.config, tracing: { enabled: true } };
      const runtime = await startKubernetes({ ...parts, config });
      const { user, log, system } = parts;
      world.apps.push({ runtime, user, log, system });
      await world.until(() => runtime.leadership?.holder !== "");
      assert.deepEqual(log.at("warn"), []);
      if (tracer !== null) assert.ok(tracer.spans.length > 0);
    }
  }));
