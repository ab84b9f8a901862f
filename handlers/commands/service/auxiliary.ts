/**
 * The auxiliary listener, wired together: the endpoints, `/ws/status`, the status page, and the view of the groups behind
 * them. It works on every replica, leader or not.
 *
 * @module
 */

import { Gauge, type Registry } from "prom-client";
import { LiveGroups } from "../../../lib/auxiliary/live_groups.ts";
import { PitrCutoff } from "../../../lib/auxiliary/pitr_cutoff.ts";
import { StatusFeed } from "../../../lib/auxiliary/status_feed.ts";
import type { ControllerMetrics } from "../../../lib/controllers/metrics.ts";
import type { Host } from "../../../lib/host/hooks.ts";
import type { FetchHandler, ListenerOptions } from "../../../lib/host/listener.ts";
import type { HttpMetrics } from "../../../lib/host/metrics.ts";
import { allowedOrigins } from "../../../lib/host/origins.ts";
import { createWebSockets, type WebSocketPath } from "../../../lib/host/web_sockets.ts";
import type { KubeApi } from "../../../lib/kube/api.ts";
import type { LeaseClock } from "../../../lib/lease_time/lease_time.ts";
import type { Logger } from "../../../lib/runtime/log.ts";
import { createAuxiliary, WS_STATUS_HANDLER, WS_STATUS_PATH } from "../../http/auxiliary.ts";
import { logAuxExchange, remoteOf } from "../../http/middleware/aux_log.ts";
import { WS_PAGE_PATH } from "../../http/status_page.tsx";
import { createPageService } from "./page.ts";
import { errorClass } from "../../../lib/runtime/error_class.ts";

/** What the auxiliary listener is made of. */
export interface AuxiliaryServiceParts {
  readonly host: Host;
  /** Gets the metrics of the WebSockets. */
  readonly registry: Registry;
  readonly http: HttpMetrics;
  /** Count what the watches tell. */
  readonly controllers: ControllerMetrics;
  /** For the ages and countdowns of the status page. */
  readonly leaseTime: LeaseClock;
  /** The name of this replica, once it has one. */
  readonly replica: () => string;
}

/** The auxiliary listener. */
export interface AuxiliaryService {
  /** For the listener's options. */
  readonly handler: FetchHandler;
  /** For the listener's options. */
  readonly onUpgrade: NonNullable<ListenerOptions["onUpgrade"]>;
  /** Begins to follow the groups. Before it, nothing is known of any group. */
  start(api: KubeApi): void;
}

/** Makes the auxiliary listener. Its end is registered with the host. */
export function createAuxiliaryService(parts: AuxiliaryServiceParts): AuxiliaryService {
  const { host, registry, http, controllers, leaseTime, replica } = parts;
  const { config, logger, system: { clock } } = host;
  const { ws_allowed_origins, ws_max_clients, status_page } = config.auxiliary;
  const groups = new LiveGroups({ clock, logger, metrics: controllers, leases: status_page });
  const feed = new StatusFeed({ groups, clock });
  const page = status_page ? createPageService({ host, groups, leaseTime, replica }) : null;
  let cutoff: PitrCutoff | null = null;
  const app = createAuxiliary({
    groups,
    cutoffOf: async (...query) => await cutoff?.of(...query) ?? null,
    clock,
    logger,
    metrics: http,
    page: page?.app,
  });
  const handler: FetchHandler = (request, env) => app.fetch(request, env);
  const paths = new Map<string, WebSocketPath>([[WS_STATUS_PATH, {
    name: WS_STATUS_HANDLER,
    admits: allowedOrigins(ws_allowed_origins),
    maxClients: ws_max_clients,
    open: (client) => feed.open(client),
  }]]);
  if (page !== null) paths.set(WS_PAGE_PATH, page.webSocket);
  const sockets = createWebSockets({
    paths,
    handler,
    clock,
    logger,
    keep: (socket) => host.webSockets.add(socket),
    onOutcome: ({ incoming, target, name, status }) =>
      logAuxExchange({ logger, metrics: http }, {
        target,
        remote: remoteOf(incoming),
        handler: name,
        status,
        durationMs: 0,
      }),
  });
  connectedClients(registry, () => sockets.clients(WS_STATUS_PATH));
  return {
    handler,
    onUpgrade: sockets.onUpgrade,
    start(api) {
      // Not with the first word of the end: requests are still answered then.
      const end = new AbortController();
      cutoff = new PitrCutoff({ api, groups, clock, signal: end.signal });
      const following = follow(groups, api, end.signal, logger);
      const showing = page?.run(end.signal);
      host.onShutdown("auxiliary", async () => {
        end.abort();
        await Promise.all([following, showing]);
      });
    },
  };
}

/** Follows the groups. That nobody sees them any more is no reason to end the process. */
async function follow(
  groups: LiveGroups,
  api: KubeApi,
  signal: AbortSignal,
  logger: Logger,
): Promise<void> {
  try {
    await groups.run(api, signal);
  } catch (error) {
    logger.error("groups are not followed any more", { error: errorClass(error) });
  }
}

/** The gauge of deploy-api 10. */
function connectedClients(registry: Registry, count: () => number): void {
  new Gauge({
    name: "bloodraven_websocket_connected_clients",
    help: "Clients of /ws/status.",
    registers: [registry],
    collect() {
      this.set(count());
    },
  });
}
