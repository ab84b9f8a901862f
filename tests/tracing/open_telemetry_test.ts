import assert from "node:assert/strict";
import { createTracer } from "../../lib/tracing/create_tracer.ts";
import {
  openTelemetryTracer,
  type ProvidedSpan,
  type TracerProvider,
} from "../../lib/tracing/open_telemetry.ts";
import { MemoryLog } from "../election/world.ts";

/** A provider that writes down what is asked of it. */
class Recorder implements TracerProvider {
  readonly events: unknown[] = [];

  getTracer(name: string) {
    this.events.push(["tracer", name]);
    return {
      startActiveSpan: <R>(
        name: string,
        { attributes }: { readonly attributes: Readonly<Record<string, unknown>> },
        work: (span: ProvidedSpan) => R,
      ): R => {
        this.events.push(["start", name, attributes]);
        return work({
          setAttribute: (name, value) => this.events.push(["set", name, value]),
          setStatus: ({ code }) => this.events.push(["status", code]),
          end: () => this.events.push(["end"]),
        });
      },
    };
  }

  /** What was asked since the tracer was made. */
  sinceStart(): unknown[] {
    return this.events.slice(3);
  }
}

Deno.test("a span begins with what is known, gets what becomes known, and ends with the work", async () => {
  const provider = new Recorder();
  const tracer = openTelemetryTracer(provider);
  assert.deepEqual(provider.events, [
    ["tracer", "holdfast"],
    ["start", "tracing starts", {}],
    ["end"],
  ]);
  const answer = await tracer.span("work", { lease: "app" }, async (span) => {
    await Promise.resolve();
    span.set("leading", true);
    return 7;
  });
  assert.equal(answer, 7);
  assert.deepEqual(provider.sinceStart(), [
    ["start", "work", { lease: "app" }],
    ["set", "leading", true],
    ["end"],
  ]);
});

Deno.test("work that throws, or fails without throwing, shows the class of the error alone", async () => {
  const provider = new Recorder();
  const tracer = openTelemetryTracer(provider);
  const error = new RangeError("secret text");
  await assert.rejects(tracer.span("work", {}, () => Promise.reject(error)), error);
  await assert.rejects(tracer.span("work", {}, () => Promise.reject("secret text")));
  await tracer.span("work", {}, (span) => Promise.resolve(span.fail("timeout")));
  const failed = (name: string) => [
    ["start", "work", {}],
    ["set", "error.type", name],
    ["status", 2],
    ["end"],
  ];
  assert.deepEqual(provider.sinceStart(), [
    ...failed("RangeError"),
    ...failed("unknown"),
    ...failed("timeout"),
  ]);
});

Deno.test("tracing that is off asks nothing of a provider", () => {
  const provider = new Recorder();
  const logger = new MemoryLog();
  assert.equal(createTracer({ config: { enabled: false }, logger, provider }), undefined);
  assert.deepEqual([provider.events, logger.lines], [[], []]);
  assert.ok(createTracer({ config: { enabled: true }, logger, provider }) !== undefined);
  assert.deepEqual(logger.lines, []);
});

Deno.test("tracing that Deno was not started for is off, and a warning says how to start it", () => {
  // This process was started without OTEL_DENO, and Deno's own provider is asked.
  const logger = new MemoryLog();
  assert.equal(createTracer({ config: { enabled: true }, logger }), undefined);
  const [line, ...more] = logger.at("warn");
  assert.match(line?.message ?? "", /OTEL_DENO=true/);
  assert.deepEqual(more, []);
});
