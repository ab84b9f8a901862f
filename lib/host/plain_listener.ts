/**
 * A listener without TLS: metrics, probes, and an application behind a proxy.
 *
 * @module
 */

import { createServer } from "node:http";
import {
  DEFAULT_LIMITS,
  type Listener,
  type ListenerOptions,
  runListener,
  serverOptions,
} from "./listener.ts";

/**
 * Binds a port and answers HTTP/1.1 on it.
 *
 * @throws {ListenError} When the address cannot be bound.
 */
export function startPlainListener(options: ListenerOptions): Promise<Listener> {
  const server = createServer(serverOptions({ ...DEFAULT_LIMITS, ...options.limits }));
  return runListener(server, "connection", options);
}
