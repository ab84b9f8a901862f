/**
 * Spans for OpenTelemetry, by a provider of its interface: Deno has one of its own.
 *
 * @module
 */

import type { Span, SpanValue, Tracer } from "./tracer.ts";
import { errorClass } from "../runtime/error_class.ts";

/** The part of an OpenTelemetry span that is needed. */
export interface ProvidedSpan {
  setAttribute(name: string, value: SpanValue): unknown;
  setStatus(status: { readonly code: number }): unknown;
  end(): void;
}

/** The part of an OpenTelemetry `TracerProvider` that is needed. */
export interface TracerProvider {
  getTracer(name: string): {
    startActiveSpan<R>(
      name: string,
      options: { readonly attributes: Readonly<Record<string, SpanValue>> },
      work: (span: ProvidedSpan) => R,
    ): R;
  };
}

/** OpenTelemetry's `SpanStatusCode.ERROR`. */
const STATUS_ERROR = 2;

/** The attribute for a class of errors, by OpenTelemetry's conventions. */
const ERROR_TYPE = "error.type";

/**
 * Makes a tracer of a provider.
 *
 * @throws What the provider throws when it cannot be used; Deno's does when OpenTelemetry was not switched on at the start
 * of the process.
 */
export function openTelemetryTracer(provider: TracerProvider): Tracer {
  const tracer = provider.getTracer("holdfast");
  // Deno's own one fails with the first span only. Better now than in the middle of the work.
  tracer.startActiveSpan("tracing starts", { attributes: {} }, (span) => span.end());
  return {
    span: (name, attributes, work) =>
      tracer.startActiveSpan(name, { attributes }, async (provided) => {
        const span = spanOf(provided);
        try {
          return await work(span);
        } catch (error) {
          span.fail(errorClass(error));
          throw error;
        } finally {
          provided.end();
        }
      }),
  };
}

function spanOf(provided: ProvidedSpan): Span {
  return {
    set: (name, value) => void provided.setAttribute(name, value),
    fail(errorClass) {
      provided.setAttribute(ERROR_TYPE, errorClass);
      provided.setStatus({ code: STATUS_ERROR });
    },
  };
}
