/**
 * The ports of the demo, and what to say when one of them is taken.
 *
 * @module
 */

import { z } from "zod";
import { ListenError } from "../../../lib/host/listener.ts";
import { RefusalError } from "../options.ts";

/** The host of all ports: nobody else's machine reaches the demo. */
export const HOST = "127.0.0.1";

/** What listens, in the order of the ports. */
const LISTENERS = ["tls", "metrics", "probes", "auxiliary", "apiServer"] as const;

/** One of the demo's listeners. */
export type DemoListener = (typeof LISTENERS)[number];

/** A port for each; 0 lets the system choose a free one. */
export type DemoPorts = Readonly<Record<DemoListener, number>>;

const MEANING: Readonly<Record<DemoListener, string>> = {
  tls: "the service",
  metrics: "the service's metrics",
  probes: "the service's probes",
  auxiliary: "the service's auxiliary views",
  apiServer: "the API server in memory",
};

const LAST_PORT = 65_535;

/** What a system's refusal to listen means, by its code. */
const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EACCES: "this user may not use the port",
};

const CodedError = z.object({ code: z.string() });

/**
 * Chooses the ports: the service gets the first, the rest follow.
 *
 * @param first The option `--port`; 0 or nothing for free ones.
 * @throws {RefusalError} There are not enough ports from the first one on.
 */
export function choosePorts(first: number | undefined): DemoPorts {
  const start = first ?? 0;
  if (start + LISTENERS.length - 1 > LAST_PORT) {
    throw new RefusalError(
      `Cannot use --port ${start} as the demo takes ${LISTENERS.length} ports from it on: give at most ${
        LAST_PORT - LISTENERS.length + 1
      }`,
    );
  }
  const port = (listener: DemoListener) => start === 0 ? 0 : start + LISTENERS.indexOf(listener);
  return {
    tls: port("tls"),
    metrics: port("metrics"),
    probes: port("probes"),
    auxiliary: port("auxiliary"),
    apiServer: port("apiServer"),
  };
}

/**
 * Names the port and the option when the service could not listen. Any other error stays what it is.
 *
 * @param error What `openService` threw.
 */
export function serviceListenError(error: unknown, ports: DemoPorts): unknown {
  const cause = error instanceof RefusalError ? error.cause : error;
  const listener = cause instanceof ListenError
    ? LISTENERS.find((name) => name === cause.listener)
    : undefined;
  return listener === undefined ? error : listenError(cause, listener, ports);
}

/**
 * Names the port and the option when something could not listen. Any other error stays what it is.
 *
 * @param error An error with the system's code.
 */
export function listenError(error: unknown, listener: DemoListener, ports: DemoPorts): unknown {
  const coded = CodedError.safeParse(error);
  if (!coded.success) return error;
  const { code } = coded.data;
  const reason = REASONS[code] ?? `the system refuses it (${code})`;
  const wish = ports.tls === 0
    ? "give a first port with --port"
    : `give another first port with --port (the demo takes ${LISTENERS.length} from it on), or leave it out for free ones`;
  return new RefusalError(
    `Cannot listen on port ${ports[listener]} for ${MEANING[listener]} as ${reason}: ${wish}`,
    { cause: error },
  );
}
