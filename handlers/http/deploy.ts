/**
 * The deployment API, `/deploy/v1`: deploy-api 1 and 2.
 *
 * The app is a value built from injected parts. It parses, calls the coordinator and encodes: no decision about a lease
 * is made here.
 *
 * @module
 */

import { Hono } from "hono";
import {
  type Access,
  type AccessControl,
  AccessDeniedError,
  type Question,
} from "../../lib/auth/access.ts";
import type { TokenReviewer } from "../../lib/auth/token_review.ts";
import { GroupNotFoundError } from "../../lib/group/topology.ts";
import { rawTarget } from "../../lib/host/raw_target.ts";
import type { LeaseCoordinator } from "../../lib/lease/coordinator.ts";
import type { Granted } from "../../lib/lease/grant.ts";
import type { LeaseMetrics } from "../../lib/lease/metrics.ts";
import { NotLeaderError, type Refused } from "../../lib/lease/turn.ts";
import type { Logger } from "../../lib/runtime/log.ts";
import type { Tracer } from "../../lib/tracing/tracer.ts";
import { answer, refusalAnswer, simpleError, success } from "./answers.ts";
import { isLeaseKind, isOperationId, readGrantBody, readRenewBody } from "./deploy_body.ts";
import type { DeployEnv, LogEntry } from "./deploy_env.ts";
import { faultOf } from "./fault.ts";
import { type DeployCall, type DeployHandler, parseDeployCall } from "./deploy_path.ts";
import { accessLog, type AccessLogParts } from "./middleware/access_log.ts";
import { authenticate } from "./middleware/authenticate.ts";
import { deadline } from "./middleware/deadline.ts";
import { leaderOnly } from "./middleware/leader_only.ts";
import { trace } from "./middleware/trace.ts";

/** What the API is made of. */
export interface DeployApiParts extends AccessLogParts {
  readonly leads: () => boolean;
  /** Milliseconds for one request. */
  readonly requestTimeoutMs: number;
  readonly reviewer: Pick<TokenReviewer, "review">;
  readonly access: Pick<AccessControl, "open">;
  readonly coordinator: Pick<LeaseCoordinator, "view" | "grant" | "renew" | "release">;
  readonly leases: Pick<LeaseMetrics, "grant">;
  /** Puts each request under a span. @default {undefined}, which costs nothing */
  readonly tracer?: Tracer;
}

/** What a handler works on. */
interface Call {
  readonly request: Request;
  readonly entry: LogEntry;
  readonly signal: AbortSignal;
  /** Opens the caller's permission for the group. */
  readonly open: (about: Omit<Question, "caller">) => Access;
}

/** Builds the API. Its `fetch` answers every request, also those of unknown paths. */
export function createDeployApi(parts: DeployApiParts): Hono<DeployEnv> {
  const { coordinator, clock, leases, leads, logger, requestTimeoutMs, reviewer, tracer } = parts;
  const app = new Hono<DeployEnv>();

  app.use(async function entry(c, next) {
    c.set("entry", emptyEntry());
    await next();
  });
  if (tracer !== undefined) app.use(trace(tracer));
  app.use(accessLog(parts), leaderOnly(leads), deadline(clock, requestTimeoutMs));
  app.use(authenticate(reviewer));

  app.all("*", async (c) => {
    const { method, target } = rawTarget(c.env, c.req.raw);
    const call = parseDeployCall(method, target);
    c.set("call", call);
    const { entry, signal, caller } = c.var;
    enter(entry, call);
    const opened: { access?: Access } = {};
    try {
      return await serve(call, {
        request: c.req.raw,
        entry,
        signal,
        open: (about) => opened.access = parts.access.open({ caller, ...about }, signal),
      });
    } finally {
      // Known only after the permission was given: a caller without one learns nothing, and neither does the log.
      const granted = opened.access?.granted;
      entry.namespace = granted?.namespace ?? "";
      if (entry.instance === "") entry.instance = granted?.sole ?? "";
    }
  });

  app.onError((error, c) => {
    const { call, entry } = c.var;
    if (error instanceof NotLeaderError) return simpleError("not_leader");
    if (error instanceof AccessDeniedError) return simpleError("forbidden");
    if (error instanceof GroupNotFoundError) {
      return call?.type === "release" ? answer(204, null) : simpleError("not_found");
    }
    report(logger, entry, error);
    return simpleError("unavailable");
  });

  async function serve(call: DeployCall, context: Call): Promise<Response> {
    switch (call.type) {
      case "not_found":
        return simpleError("not_found");
      case "method_not_allowed":
        return simpleError("method_not_allowed", { Allow: call.allow });
      case "group":
        return await view(context, call.group);
      case "grant":
        return await grant(context, call.group);
      default:
        return isLeaseKind(call.kind) && isOperationId(call.operationId)
          ? await (call.type === "renew" ? renew : release)(context, { ...call, kind: call.kind })
          : simpleError("invalid_request");
    }
  }

  async function view({ open, signal }: Call, group: string): Promise<Response> {
    const outcome = await coordinator.view(open({ group }), signal);
    return outcome.type === "refused" ? refused(outcome) : success(200, outcome.view);
  }

  async function grant({ request, entry, open, signal }: Call, group: string): Promise<Response> {
    // The body is read before the permission is asked: deploy-api 1.2 step 7.
    const body = await readGrantBody(request);
    if (body.type === "request_too_large") return simpleError("request_too_large");
    entry.instance = body.value.instance ?? "";
    entry.operationId = body.value.operationId ?? "";
    if (body.type === "invalid_request") return simpleError("invalid_request");
    const { instance, operationId } = body.value;
    try {
      const access = open({ group, instance, operationId });
      const outcome = await coordinator.grant(access, body.value, signal);
      return outcome.type === "refused" ? refused(outcome) : granted(outcome);
    } catch (error) {
      // Without the name of the group, so that nobody can make series by asking: deploy-api 4.
      if (error instanceof AccessDeniedError) leases.grant("", body.value.kind, "unauthorized");
      throw error;
    }
  }

  async function renew({ request, entry, open, signal }: Call, call: HolderCall) {
    const access = open(call);
    const body = await readRenewBody(request);
    if (body.type !== "ok") {
      // A fault of the body shows only to a caller with a permission: deploy-api 1.2 step 12.
      await access.confirm();
      return simpleError(body.type);
    }
    const outcome = await coordinator.renew(access, { ...call, ...body.value }, signal);
    if (outcome.type === "refused") return refused(outcome);
    entry.instance = outcome.instance;
    const { expiresAt, topologyGeneration } = outcome.record;
    return success(200, { expiresAt, topologyGeneration });
  }

  async function release({ request, entry, open, signal }: Call, call: HolderCall) {
    const token = request.headers.get("X-Lease-Token") ?? "";
    const outcome = await coordinator.release(open(call), { ...call, token }, signal);
    if (outcome.type === "refused") return refused(outcome);
    if (outcome.instance !== "") entry.instance = outcome.instance;
    return answer(204, null);
  }

  return app;
}

function emptyEntry(): LogEntry {
  return { handler: "notfound", group: "", instance: "", namespace: "", operationId: "" };
}

interface HolderCall {
  readonly group: string;
  readonly kind: "migration" | "failover-hold";
  readonly operationId: string;
}

function refused({ refusal, nowMs }: Refused): Response {
  return refusalAnswer(refusal, nowMs);
}

function granted({ created, record, token, fence }: Granted): Response {
  const { kind, operationId, expiresAt, topologyGeneration } = record;
  const body = { kind, operationId, token, expiresAt, topologyGeneration };
  return success(created ? 201 : 200, body, { "X-Lease-Fence": fence });
}

/** Notes what the path says, as sent. A path that means nothing says nothing. */
function enter(entry: LogEntry, call: DeployCall): void {
  if (call.type === "not_found") return;
  const handler: DeployHandler = call.type === "method_not_allowed" ? call.handler : call.type;
  entry.handler = handler;
  entry.group = call.group;
  if ("operationId" in call) entry.operationId = call.operationId;
}

/** Says in the log why the answer is 503: the class of the fault and its call, never a text of the API server. */
function report(logger: Logger, entry: LogEntry, error: unknown): void {
  logger.warn("deploy api unavailable", { group: entry.group, ...faultOf(error) });
}
