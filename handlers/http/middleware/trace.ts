import type { MiddlewareHandler } from "hono";
import type { Tracer } from "../../../lib/tracing/tracer.ts";
import type { DeployEnv } from "../deploy_env.ts";

/** Puts each request of the deployment API under a span, which says what its log line says. */
export function trace(tracer: Tracer): MiddlewareHandler<DeployEnv> {
  return function trace(c, next) {
    return tracer.span("lease request", {}, async (span) => {
      await next();
      const { entry } = c.var;
      span.set("handler", entry.handler);
      for (const name of ["group", "instance", "operationId"] as const) {
        if (entry[name] !== "") span.set(name, entry[name]);
      }
      span.set("http.response.status_code", c.res.status);
      if (c.res.status >= 500) span.fail(String(c.res.status));
    });
  };
}
