/**
 * The auxiliary endpoints: what a group's status says, for dashboards and scripts inside the cluster, without
 * authentication (deploy-api 14). Every replica answers them, leader or not.
 *
 * @module
 */

import { type Context, Hono } from "hono";
import {
  activeSiteAnswer,
  type JsonAnswer,
  pitrCutoffAnswer,
  statusAnswer,
} from "../../lib/auxiliary/answers.ts";
import type { GroupsView } from "../../lib/auxiliary/live_groups.ts";
import { answer } from "./answers.ts";
import { type AuxEnv, auxLog, type AuxLogParts } from "./middleware/aux_log.ts";
import { errorClass } from "../../lib/runtime/error_class.ts";

/** Where `/ws/status` is. */
export const WS_STATUS_PATH = "/ws/status";

/** The name of its handler in log lines and figures. */
export const WS_STATUS_HANDLER = "ws-status";

/** What {@linkcode createAuxiliary} takes. */
export interface AuxiliaryParts extends AuxLogParts {
  readonly groups: GroupsView;
  /** Tells the PITR cut-off of a group's profile; `null` when there is none. */
  readonly cutoffOf: (namespace: string, group: string, profile: string) => Promise<string | null>;
  /** A page beside the endpoints; `null` for none. Its handlers set `handler` for the log. @default {null} */
  readonly page?: Hono<AuxEnv> | null;
}

/** Makes the application for the auxiliary port. */
export function createAuxiliary(parts: AuxiliaryParts): Hono<AuxEnv> {
  const { groups, cutoffOf, logger, page = null } = parts;
  const app = new Hono<AuxEnv>();
  app.use(auxLog(parts));
  for (const path of ["/healthz", "/readyz"]) {
    endpoint(app, path, path.slice(1), () => text("ok", 200));
  }
  endpoint(app, "/status", "status", () => json(statusAnswer(groups)));
  endpoint(app, "/active-site", "active-site", (c) => {
    const { namespace, group } = c.req.query();
    return json(activeSiteAnswer(groups, { namespace, group }));
  });
  endpoint(app, "/pitr-cutoff", "pitr-cutoff", async (c) => {
    const { namespace, group, profile } = c.req.query();
    const query = { namespace, group, profile };
    return json(
      await pitrCutoffAnswer(groups, query, cutoffOf, (error) => {
        logger.warn("pitr cutoff not found", { error: errorClass(error) });
      }),
    );
  });
  // The request to switch never comes here: the listener's WebSockets take it.
  endpoint(
    app,
    WS_STATUS_PATH,
    WS_STATUS_HANDLER,
    () => text("websocket upgrade required", 426, { "Upgrade": "websocket" }),
  );
  if (page !== null) app.route("/", page);
  app.notFound(() => text("404 page not found", 404));
  app.onError((error) => {
    logger.error("aux http failed", { error: error.name });
    return json({ status: 500, body: { error: "internal error" } });
  });
  return app;
}

/** Answers GET and HEAD, and nothing else: whatever the contract does not name is 404. */
function endpoint(
  app: Hono<AuxEnv>,
  path: string,
  name: string,
  handle: (c: Context<AuxEnv>) => Response | Promise<Response>,
): void {
  app.get(path, (c) => {
    c.set("handler", name);
    return handle(c);
  });
}

function json({ status, body }: JsonAnswer): Response {
  return answer(status, body);
}

function text(
  body: string,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(body, {
    status,
    headers: {
      "Content-Type": "text/plain; charset=utf-8",
      "Cache-Control": "no-store",
      ...headers,
    },
  });
}
