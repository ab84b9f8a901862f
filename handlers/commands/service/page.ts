/**
 * The status page, wired together: what it shows, its part of the auxiliary application, and its WebSocket.
 *
 * @module
 */

import type { Hono } from "hono";
import type { WholeView } from "../../../lib/auxiliary/mod.ts";
import type { Host } from "../../../lib/host/hooks.ts";
import { sameOrigin } from "../../../lib/host/origins.ts";
import type { WebSocketPath } from "../../../lib/host/web_sockets.ts";
import { type LeaseClock, timeForView } from "../../../lib/lease_time/lease_time.ts";
import { toHex } from "../../../lib/runtime/entropy.ts";
import { LivePage } from "../../../lib/status_page/live_page.ts";
import type { AuxEnv } from "../../http/middleware/aux_log.ts";
import {
  createStatusPage,
  knownPage,
  renderPart,
  WS_PAGE_HANDLER,
} from "../../http/status_page.tsx";

/** What {@linkcode createPageService} takes. */
export interface PageServiceParts {
  readonly host: Pick<Host, "config" | "system">;
  /** The groups with their Leases. */
  readonly groups: WholeView;
  readonly leaseTime: LeaseClock;
  /** The name of this replica, once it has one. */
  readonly replica: () => string;
}

/** The page on the auxiliary listener. */
export interface PageService {
  readonly app: Hono<AuxEnv>;
  readonly webSocket: WebSocketPath;
  /** Keeps the page as new as the groups, until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes the page. */
export function createPageService(parts: PageServiceParts): PageService {
  const { host: { config, system: { clock, entropy } }, groups, leaseTime, replica } = parts;
  const time = () => timeForView(clock, leaseTime);
  const page = new LivePage({
    view: groups,
    clock,
    time,
    replica,
    epoch: toHex(entropy.bytes(8)),
    render: (placed) => renderPart(placed, time),
  });
  return {
    app: createStatusPage({ page, time }),
    webSocket: {
      name: WS_PAGE_HANDLER,
      // The page shows who holds what. Only itself may read it, whoever may read the contract's endpoints.
      admits: sameOrigin,
      maxClients: config.auxiliary.ws_max_clients,
      open: (client, target) => page.open(client, knownPage(target)),
    },
    run: (signal) => page.run(signal),
  };
}
