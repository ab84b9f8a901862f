/**
 * The address that a listener is to bind, as it is written in the configuration.
 *
 * @module
 */

import { isIP, isIPv6 } from "node:net";

/** Where to listen. */
export interface ListenAddress {
  /** A DNS name, or an IP address without brackets. Absent: every interface, IPv6 and IPv4. */
  readonly host?: string;
  /** 0 to 65535. With 0 the operating system chooses a free port. */
  readonly port: number;
}

/** Says what is wrong with the text of an address, and what would be right. */
export class ListenAddressError extends Error {
  override readonly name = "ListenAddressError";
}

/** Letters, digits, `-` and `.`, as in a DNS name; `_` too, which container networks use. */
const DNS_NAME = /^(?!-)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

/** Dotted numbers alone: meant as an IPv4 address, never as a name. */
const DOTTED_NUMBERS = /^[\d.]+$/;

/**
 * Reads `:8443`, `localhost:8443`, `10.0.0.1:8443` or `[::1]:8443`: the form that Go programs use for an address.
 *
 * @param text The address. Port 0 stands for any free port.
 * @throws {ListenAddressError} When the text is not of that form.
 */
export function parseListenAddress(text: string): ListenAddress {
  const fail = (rule: string) => {
    throw new ListenAddressError(
      `Cannot listen on an address as ${rule}: current value is ${JSON.stringify(text)}`,
    );
  };
  const colon = text.lastIndexOf(":");
  if (colon < 0) return fail("it must be 'host:port' or ':port'");
  const host = text.slice(0, colon);
  const portText = text.slice(colon + 1);
  if (!/^\d{1,5}$/.test(portText) || Number(portText) > 65535) {
    return fail("its port must be a whole number from 0 to 65535");
  }
  const port = Number(portText);
  if (host === "") return { port };
  if (host.startsWith("[") && host.endsWith("]")) {
    const inner = host.slice(1, -1);
    return isIPv6(inner) ? { host: inner, port } : fail("its brackets must hold an IPv6 address");
  }
  if (isIPv6(host) || host.includes(":")) {
    return fail("an IPv6 address must be in brackets, as in '[::1]:8443'");
  }
  if (DOTTED_NUMBERS.test(host) ? isIP(host) === 0 : !DNS_NAME.test(host)) {
    return fail("its host must be a DNS name or an IP address");
  }
  return { host, port };
}

/** Writes an address in the form that {@linkcode parseListenAddress} reads: an IPv6 address gets its brackets. */
export function formatListenAddress(address: ListenAddress): string {
  const host = address.host ?? "";
  return `${isIPv6(host) ? `[${host}]` : host}:${address.port}`;
}
