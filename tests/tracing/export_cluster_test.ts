/** The service with Deno's OpenTelemetry, against a collector: what really leaves the process. */

import assert from "node:assert/strict";
import { z } from "zod";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { pause } from "../cluster/keeper.ts";
import { AUDIENCE, Workplace } from "../service/workplace.ts";

const clusterTest = useCluster();

const exported = z.object({
  resourceSpans: z.array(z.object({
    scopeSpans: z.array(z.object({
      scope: z.object({ name: z.string() }),
      spans: z.array(z.object({
        name: z.string(),
        spanId: z.string(),
        parentSpanId: z.string(),
        attributes: z.array(
          z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) }),
        ),
      })),
    })),
  })),
});

type ExportedSpan = z.infer<
  typeof exported
>["resourceSpans"][number]["scopeSpans"][number]["spans"][number];

/** Takes spans as a collector of OpenTelemetry does. */
class Collector implements AsyncDisposable {
  readonly ours: ExportedSpan[] = [];
  readonly denos: ExportedSpan[] = [];
  /** All that came, as it came. */
  text = "";
  readonly #server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async (request) => {
      const text = await request.text();
      if (new URL(request.url).pathname === "/v1/traces") this.#take(text);
      return Response.json({});
    },
  );

  get env(): Record<string, string> {
    return {
      OTEL_DENO: "true",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${this.#server.addr.port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "100",
    };
  }

  async until(holds: () => boolean): Promise<void> {
    const endMs = performance.now() + 30_000;
    while (!holds()) {
      if (performance.now() > endMs) throw new Error(`Cannot wait any longer: ${this.text}`);
      await pause(50);
    }
  }

  #take(text: string): void {
    this.text += text;
    for (const { scopeSpans } of exported.parse(JSON.parse(text)).resourceSpans) {
      for (const { scope, spans } of scopeSpans) {
        (scope.name === "holdfast" ? this.ours : this.denos).push(...spans);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

function valueOf(span: ExportedSpan | undefined, key: string): unknown {
  const value = span?.attributes.find((attribute) => attribute.key === key)?.value ?? {};
  return Object.values(value)[0];
}

clusterTest(
  "with tracing on, ticks and requests are exported, with the calls that they make, and no secret",
  async (cluster) => {
    await using collector = new Collector();
    await using place = await Workplace.open(cluster, "tracing");
    const service = await place.startService({
      ...collector.env,
      HOLDFAST__TRACING__ENABLED: "true",
    });
    const token = await cluster.token({
      namespace: place.namespace,
      serviceAccount: "deployer",
      audiences: [AUDIENCE],
    });
    const client = (await place.client(service)).with({ token });
    await place.untilLeading(client);
    const granted = await client.grant("release-1", "tenant");
    assert.equal(granted.status, 201);
    const requests = () => collector.ours.filter(({ name }) => name === "lease request");
    const grant = () => requests().find((span) => valueOf(span, "handler") === "grant");
    const ticks = () => collector.ours.filter(({ name }) => name === "elector tick");
    await collector.until(() => grant() !== undefined && ticks().length >= 2);

    assert.equal(valueOf(grant(), "group"), "orders");
    assert.equal(valueOf(grant(), "operationId"), "release-1");
    assert.equal(String(valueOf(grant(), "http.response.status_code")), "201");
    assert.ok(ticks().some((span) => valueOf(span, "phase") === "lead"));
    const children = (id: string | undefined) =>
      collector.denos.filter(({ parentSpanId }) => parentSpanId === id);
    await collector.until(() => children(grant()?.spanId).length > 0);
    const took = ticks().find((span) =>
      valueOf(span, "phase") === "follow" && valueOf(span, "leading") === true
    );
    assert.ok(children(took?.spanId).length > 0, "the write of the Lease belongs to its tick");

    for (const secret of [token, granted.body.token]) {
      assert.ok(typeof secret === "string" && secret.length > 20);
      assert.ok(!collector.text.includes(secret));
    }
    assert.ok(!service.lines.some(({ msg }) => msg.includes("tracing")));
  },
);

clusterTest(
  "tracing without Deno's OpenTelemetry is a warning, and the service serves",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "untraced");
    const service = await place.startService({ HOLDFAST__TRACING__ENABLED: "true" });
    const { level } = await service.logged(({ msg }) => msg.startsWith("tracing is enabled"));
    assert.equal(level.toLowerCase(), "warn");
    await place.untilLeading(await place.client(service));
  },
);
