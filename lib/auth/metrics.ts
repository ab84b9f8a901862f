/**
 * The figures of authentication.
 *
 * @module
 */

import { Counter, type Registry } from "prom-client";
import type { ReviewMetrics } from "./token_review.ts";

/** Registers `holdfast_token_reviews_total{outcome}`. */
export function reviewMetrics(registry: Registry): ReviewMetrics {
  const outcomes = new Counter({
    name: "holdfast_token_reviews_total",
    help: "Tokens of callers by what became of their review",
    labelNames: ["outcome"],
    registers: [registry],
  });
  return { reviewed: (outcome) => outcomes.inc({ outcome }) };
}
