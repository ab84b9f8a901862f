/**
 * Switches tracing on: `tracing.enabled`.
 *
 * @module
 */

import manifest from "../../deno.json" with { type: "json" };
import type { Config } from "../../lib/config/schema.ts";
import type { Logger } from "../../lib/runtime/log.ts";
import { openTelemetryTracer, type TracerProvider } from "../../lib/tracing/open_telemetry.ts";
import { errorClass, type Tracer } from "../../lib/tracing/tracer.ts";

/** What {@linkcode createTracer} takes. */
export interface TracingOptions {
  readonly config: Config["tracing"];
  readonly logger: Logger;
  /** @default {Deno.telemetry.tracerProvider} */
  readonly provider?: TracerProvider;
}

/**
 * The tracer of the program, or `undefined` when tracing is off.
 *
 * Deno's OpenTelemetry begins with the process or never. Where it did not, there are no traces, and a warning says why:
 * nobody should be without a lease service for want of a trace.
 */
export function createTracer({ config, logger, provider }: TracingOptions): Tracer | undefined {
  if (!config.enabled) return undefined;
  try {
    return openTelemetryTracer({
      provider: provider ?? Deno.telemetry.tracerProvider,
      version: manifest.version,
    });
  } catch (error) {
    logger.warn(
      "tracing is enabled and does nothing: start the process with OTEL_DENO=true in its environment",
      { error: errorClass(error) },
    );
    return undefined;
  }
}
