/**
 * A listener with TLS whose certificate can change while it serves.
 *
 * @module
 */

import { createServer } from "node:https";
import type { SecureContextOptions } from "node:tls";
import type { CertificatePair } from "./certificate.ts";
import type { RotatingCertificate } from "./certificate_rotation.ts";
import {
  DEFAULT_LIMITS,
  type Listener,
  type ListenerOptions,
  runListener,
  serverOptions,
} from "./listener.ts";

/** What {@linkcode startTlsListener} takes. */
export interface TlsListenerOptions extends ListenerOptions {
  /** The pair to serve. Each later pair is used from the next handshake on; open connections keep theirs. */
  readonly certificate: Pick<RotatingCertificate, "current" | "onChange">;
}

/**
 * Binds a port and answers HTTP/1.1 on it over TLS 1.2 or later (deploy-api 14; HTTP/1.1 alone: design section 3,
 * difference 17).
 *
 * @throws {ListenError} When the address cannot be bound.
 */
export async function startTlsListener(options: TlsListenerOptions): Promise<Listener> {
  const { certificate } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const server = createServer({
    ...serverOptions(limits),
    ...secureContext(certificate.current),
    handshakeTimeout: limits.handshakeMs,
    ALPNProtocols: ["http/1.1"],
  });
  // Before the port is bound: binding waits, and a change meanwhile would be missed.
  const unsubscribe = certificate.onChange((pair) => server.setSecureContext(secureContext(pair)));
  try {
    const { address, stop } = await runListener(server, "secureConnection", options);
    return {
      address,
      stop(graceMs) {
        unsubscribe();
        return stop(graceMs);
      },
    };
  } catch (error) {
    unsubscribe();
    throw error;
  }
}

function secureContext(pair: CertificatePair): SecureContextOptions {
  return { cert: pair.certPem, key: pair.keyPem, minVersion: "TLSv1.2" };
}
