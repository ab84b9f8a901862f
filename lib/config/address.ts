/**
 * Addresses to listen on: `:8443`, `127.0.0.1:0`, `localhost:3000`, `[::1]:8443`.
 *
 * @module
 */

/** An address to listen on. */
export interface ListenAddress {
  /** A host name or IP address, without brackets; `undefined` for every interface. */
  readonly host: string | undefined;
  /** 0 to 65535; 0 lets the system choose a free one. */
  readonly port: number;
}

const ADDRESS = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]*)):(\d{1,5})$/;

/**
 * Reads an address.
 *
 * @param text `host:port`, with an IPv6 address in brackets; without a host, every interface.
 * @returns The address, or `undefined` when the text is none.
 */
export function parseAddress(text: string): ListenAddress | undefined {
  const match = ADDRESS.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) return undefined;
  const host = match[1] ?? match[2];
  return { host: host === "" ? undefined : host, port };
}

/** Writes an address in the form that {@linkcode parseAddress} reads. */
export function formatAddress(address: ListenAddress): string {
  const host = address.host ?? "";
  return host.includes(":") ? `[${host}]:${address.port}` : `${host}:${address.port}`;
}
