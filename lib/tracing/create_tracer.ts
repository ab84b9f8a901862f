/**
 * Switches tracing on: `tracing.enabled`.
 *
 * @module
 */

import type { Logger } from "../runtime/log.ts";
import { openTelemetryTracer, type TracerProvider } from "./open_telemetry.ts";
import type { Tracer } from "./tracer.ts";
import { errorClass } from "../runtime/error_class.ts";

/** What {@linkcode createTracer} takes. */
export interface TracingOptions {
  /** What the configuration says of tracing. */
  readonly config: { readonly enabled: boolean };
  readonly logger: Logger;
  /** @default {Deno.telemetry.tracerProvider} */
  readonly provider?: TracerProvider;
}

/**
 * The tracer of the program, or `undefined` when tracing is off.
 *
 * Deno's OpenTelemetry begins with the process or never. Where it did not, there are no traces, and a warning says why:
 * nobody should be without leases for want of a trace.
 */
export function createTracer({ config, logger, provider }: TracingOptions): Tracer | undefined {
  if (!config.enabled) return undefined;
  try {
    return openTelemetryTracer(provider ?? Deno.telemetry.tracerProvider);
  } catch (error) {
    logger.warn(
      "tracing is enabled and does nothing: start the process with OTEL_DENO=true in its environment",
      { error: errorClass(error) },
    );
    return undefined;
  }
}
