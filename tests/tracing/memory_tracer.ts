/**
 * Spans in memory.
 *
 * @module
 */

import type { Span, SpanValue, Tracer } from "../../lib/tracing/tracer.ts";
import { errorClass } from "../../lib/runtime/error_class.ts";

/** A span as it was at its end. */
export interface EndedSpan {
  readonly name: string;
  readonly values: Readonly<Record<string, SpanValue>>;
  /** The class of the error; `null` when the work reached its end. */
  readonly failed: string | null;
}

/** Keeps the spans that ended, in the order of their ends. */
export class MemoryTracer implements Tracer {
  readonly spans: EndedSpan[] = [];
  /** How many are under way. */
  open = 0;

  async span<R>(
    name: string,
    values: Readonly<Record<string, SpanValue>>,
    work: (span: Span) => Promise<R>,
  ): Promise<R> {
    const all: Record<string, SpanValue> = { ...values };
    let failed: string | null = null;
    this.open++;
    try {
      return await work({
        set: (name, value) => void (all[name] = value),
        fail: (errorClass) => void (failed = errorClass),
      });
    } catch (error) {
      failed = errorClass(error);
      throw error;
    } finally {
      this.open--;
      this.spans.push({ name, values: all, failed });
    }
  }
}
