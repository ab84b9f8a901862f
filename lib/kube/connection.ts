/**
 * The sockets to an API server: kept alive, verified, and thrown away when they seem dead.
 *
 * A connection that is black-holed (its packets vanish) looks alive, and every further call on it would wait for its
 * time limit. So a call that runs out of time takes the whole pool out of use: the next one starts with new sockets, and
 * those that wait on the old ones end there undisturbed.
 *
 * Two limits of the platform:
 * - It trusts its own list of public authorities too, beside the cluster's. `DENO_TLS_CA_STORE` of the process decides
 *   about these.
 * - It always follows `HTTPS_PROXY`. In a pod, whoever starts the program puts the API server's host into `NO_PROXY` before
 *   the first connection is made: see {@linkcode noProxyWith}.
 *
 * @module
 */

import { DeadlineExceededError } from "../runtime/clock.ts";
import { MAX_CONCURRENT_CALLS } from "./call_slots.ts";
import { ClusterConfigError } from "./connect_errors.ts";

/** A text in PEM form, and where it is from, for errors. */
export interface PemSource {
  readonly pem: string;
  /** For example a file's name. */
  readonly from: string;
}

/** What this program shows to say who it is. */
export interface ClientCertificate {
  readonly certificate: PemSource;
  /** Its private key, not encrypted. */
  readonly key: PemSource;
}

/** What a {@linkcode Connection} is made of. */
export interface ConnectionOptions {
  /** Who signs the API server's certificate. Only the public authorities are trusted when it is left out. */
  readonly authority?: PemSource;
  readonly clientCertificate?: ClientCertificate;
  /** An HTTP proxy, `http:` or `https:`, with or without user and password. It wins over `HTTPS_PROXY`. */
  readonly proxyUrl?: string;
  /**
   * Allows HTTP/2. With HTTP/1.1 a dead socket takes only its own call with it.
   *
   * @default {false}
   */
  readonly http2?: boolean;
  /** How many idle sockets are kept. With fewer than calls under way, sockets are opened for one call. @default {64} */
  readonly maxIdleSockets?: number;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/;
const PRIVATE_KEY = /-----BEGIN ([A-Z]+ )?PRIVATE KEY-----/;
const ENCRYPTED_KEY = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

/**
 * A pool of sockets to one API server.
 *
 * ```ts
 * async function isAlive(url: string, caPem: string, signal: AbortSignal): Promise<boolean> {
 *   using connection = new Connection({ authority: { pem: caPem, from: "ca.crt" } });
 *   const response = await connection.fetch(new Request(`${url}/livez`, { signal }));
 *   await response.body?.cancel();
 *   return response.ok;
 * }
 * ```
 */
export class Connection implements Disposable {
  #options: ConnectionOptions;
  #client: Deno.HttpClient;
  #closed = false;

  /** @throws {ClusterConfigError} A certificate or a key cannot be used. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#client = createClient(options);
  }

  /**
   * Sends a request over a socket of this pool. When the request's signal aborts with a {@linkcode DeadlineExceededError},
   * no later request uses the sockets of this one.
   *
   * @throws {TypeError} The connection failed, or this pool was closed.
   */
  readonly fetch = (request: Request): Promise<Response> => {
    const client = this.#client;
    request.signal.addEventListener("abort", () => {
      if (request.signal.reason instanceof DeadlineExceededError) this.#discard(client);
    }, { once: true });
    return fetch(request, { client });
  };

  /**
   * Shows another client certificate from the next request on.
   *
   * @throws {ClusterConfigError} It cannot be used; the one before stays in use.
   */
  useClientCertificate(clientCertificate: ClientCertificate | undefined): void {
    this.#replace({ ...this.#options, clientCertificate });
  }

  /** Closes the idle sockets. Calls under way end undisturbed; further ones fail. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#client.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Takes a pool out of use, unless another call did so before. */
  #discard(client: Deno.HttpClient): void {
    if (client === this.#client) this.#replace(this.#options);
  }

  #replace(options: ConnectionOptions): void {
    if (this.#closed) return;
    const old = this.#client;
    this.#client = createClient(options);
    this.#options = options;
    // Closing leaves the calls that are under way alone: the platform ends their sockets after them.
    old.close();
  }
}

/**
 * The value of `NO_PROXY` that also keeps a host off the proxy. Pure: whoever starts the program sets it.
 *
 * @param host The API server's host, without a port.
 * @param current The value now, when there is one.
 */
export function noProxyWith(host: string, current: string | undefined): string {
  const entries = (current ?? "").split(",").map((entry) => entry.trim()).filter((entry) => entry);
  const bare = host.replace(/^\[|\]$/g, "");
  return entries.includes("*") || entries.includes(bare)
    ? entries.join(",")
    : [...entries, bare].join(",");
}

function createClient(options: ConnectionOptions): Deno.HttpClient {
  const {
    authority,
    clientCertificate,
    proxyUrl,
    http2 = false,
    maxIdleSockets = MAX_CONCURRENT_CALLS,
  } = options;
  const pool: Deno.CreateHttpClientOptions = {
    http2,
    poolMaxIdlePerHost: maxIdleSockets,
    caCerts: authority === undefined ? [] : [requireCertificate(authority)],
    proxy: proxyUrl === undefined ? undefined : readProxy(proxyUrl),
  };
  const trusting = tryCreate(pool, () => unusable("trust", authority));
  if (clientCertificate === undefined) return trusting;
  trusting.close();
  const { certificate, key } = clientCertificate;
  const shown = { cert: requireCertificate(certificate), key: requireKey(key) };
  return tryCreate({ ...pool, ...shown }, () =>
    new ClusterConfigError(
      `Cannot use the client certificate of ${certificate.from} with the key of ${key.from}: they must be a valid pair in PEM form`,
    ));
}

function tryCreate(
  options: Deno.CreateHttpClientOptions & Partial<Deno.TlsCertifiedKeyPem>,
  fault: () => ClusterConfigError,
): Deno.HttpClient {
  try {
    return Deno.createHttpClient(options);
  } catch {
    // The platform's own text is left out: it may quote what it was given.
    throw fault();
  }
}

function readProxy(proxyUrl: string): Deno.Proxy {
  try {
    const url = new URL(proxyUrl);
    if (url.protocol !== "http:" && url.protocol !== "https:") throw new TypeError("not HTTP");
    const username = decodeURIComponent(url.username);
    const password = decodeURIComponent(url.password);
    url.username = "";
    url.password = "";
    return username ? { url: url.href, basicAuth: { username, password } } : { url: url.href };
  } catch {
    // The URL may hold a password.
    throw new ClusterConfigError("Cannot use the proxy: it must be an http or https URL");
  }
}

/** The platform ignores anything that is not PEM, and would then trust the public authorities only. */
function requireCertificate(source: PemSource): string {
  if (!CERTIFICATE.test(source.pem)) throw unusable("use", source);
  return source.pem;
}

function requireKey({ pem, from }: PemSource): string {
  if (ENCRYPTED_KEY.test(pem)) {
    throw new ClusterConfigError(
      `Cannot use the private key of ${from}: it is encrypted, and must be stored without a passphrase`,
    );
  }
  if (!PRIVATE_KEY.test(pem)) {
    throw new ClusterConfigError(
      `Cannot use the private key of ${from}: it must be a private key in PEM form`,
    );
  }
  return pem;
}

function unusable(action: string, source: PemSource | undefined): ClusterConfigError {
  return new ClusterConfigError(
    `Cannot ${action} the certificate of ${
      source?.from ?? "the platform"
    }: it must be a valid certificate in PEM form`,
  );
}
