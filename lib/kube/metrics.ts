/**
 * The figures of calls to the API server.
 *
 * @module
 */

import { Counter, Histogram, type Registry } from "prom-client";
import type { CallReport } from "./exchange.ts";

/**
 * Registers `holdfast_kube_calls_total{verb,resource,outcome}` and `holdfast_kube_call_duration_seconds{verb}`.
 *
 * @returns What an `HttpApi` takes as `onCall`.
 */
export function callMetrics(registry: Registry): (report: CallReport) => void {
  const calls = new Counter({
    name: "holdfast_kube_calls_total",
    help: "Calls to the Kubernetes API by verb, resource and outcome",
    labelNames: ["verb", "resource", "outcome"],
    registers: [registry],
  });
  const duration = new Histogram({
    name: "holdfast_kube_call_duration_seconds",
    help: "Time from the sending of a call to the end of its answer",
    labelNames: ["verb"],
    registers: [registry],
  });
  return ({ verb, resource, outcome, durationMs }) => {
    calls.inc({ verb, resource, outcome });
    duration.observe({ verb }, durationMs / 1000);
  };
}
