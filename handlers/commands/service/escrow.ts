/**
 * The keyring escrow, wired together.
 *
 * @module
 */

import type { Registry } from "prom-client";
import { KeyringEscrow } from "../../../lib/escrow/escrow.ts";
import { escrowMetrics } from "../../../lib/escrow/metrics.ts";
import type { Host } from "../../../lib/host/hooks.ts";
import type { FetchHandler } from "../../../lib/host/listener.ts";
import type { HttpMetrics } from "../../../lib/host/metrics.ts";
import type { KubeApi } from "../../../lib/kube/api.ts";
import { createEscrowApp, named } from "../../http/escrow.ts";
import { faultOf } from "../../http/fault.ts";

/** What the escrow is made of. */
export interface EscrowParts {
  readonly host: Host;
  /** Gets the metrics of the escrow. */
  readonly registry: Registry;
  readonly http: HttpMetrics;
  /** The client of the cluster; `null` before it is there. */
  readonly api: () => KubeApi | null;
}

/** Makes the escrow. It works from the moment at which there is a client, on every replica. */
export function createEscrow({ host, registry, http, api }: EscrowParts): FetchHandler {
  const { config, logger, system: { clock } } = host;
  let escrow: KeyringEscrow | null = null;
  const escrowOn = (client: KubeApi) =>
    new KeyringEscrow({
      api: client,
      onForbidden: (site, error) =>
        logger.warn("keyring escrow: token not readable", { ...named(site), ...faultOf(error) }),
      onLeftBehind: (site, error) =>
        logger.warn("keyring escrow: old version left", { ...named(site), ...faultOf(error) }),
    });
  return createEscrowApp({
    clock,
    logger,
    metrics: http,
    results: escrowMetrics(registry),
    requestTimeoutMs: config.deploy_api.request_timeout,
    escrow: () => {
      const client = api();
      return escrow ??= client && escrowOn(client);
    },
  });
}
