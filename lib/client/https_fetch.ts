/**
 * Requests over HTTPS that trust one authority. The web's `fetch` has no way to name one, so this uses `node:https`, which
 * Deno, Node and Bun have.
 *
 * Each request has a connection of its own: one that swallows what is sent to it takes no later request with it, and a
 * Service can choose another replica. At one request every few seconds this costs nothing.
 *
 * @module
 */

import { X509Certificate } from "node:crypto";
import { request } from "node:https";
import type { Fetch } from "./calls.ts";
import { ClientSettingsError } from "./errors.ts";

/** The most bytes of an answer. The largest one, a look at a group, is far below. */
const MOST_BYTES = 4 * 1024 * 1024;

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Checks a text with certificates: the platform ignores what is none, and would then trust whom it likes.
 *
 * @param path Where it is from, for the error.
 * @throws {ClientSettingsError} It holds no certificate.
 */
export function checkedAuthorities(pem: string, path: string): string {
  const found = pem.match(PEM_CERTIFICATE) ?? [];
  try {
    if (found.length === 0) throw new TypeError("none");
    for (const one of found) new X509Certificate(one);
  } catch {
    // What the platform says may quote the file.
    throw new ClientSettingsError(
      `Cannot trust the authority of '${path}' as it must hold certificates in PEM form: HOLDFAST_CA_FILE names it`,
    );
  }
  return found.join("\n");
}

/**
 * Makes a {@linkcode Fetch}.
 *
 * @param authorities Certificates in PEM form, which alone are trusted; the platform's own when left out.
 */
export function httpsFetch(authorities?: string): Fetch {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const call = request(url, {
        method,
        headers: Object.fromEntries(new Headers(headers)),
        agent: false,
        ...(authorities === undefined ? {} : { ca: authorities }),
        ...(signal ? { signal } : {}),
      }, (incoming) => {
        const chunks: Uint8Array[] = [];
        let size = 0;
        incoming.on("data", (chunk: Uint8Array) => {
          size += chunk.length;
          if (size <= MOST_BYTES) chunks.push(chunk);
          else incoming.destroy(new TypeError("The answer is too long"));
        });
        incoming.on("error", reject);
        incoming.on("close", () => {
          // It does nothing when the answer is complete.
          reject(new TypeError("The connection was lost"));
        });
        incoming.on("end", () => {
          const { statusCode = 0 } = incoming;
          const answered = new Headers();
          for (const [name, value = ""] of Object.entries(incoming.headers)) {
            answered.set(name, String(value));
          }
          const isEmpty = statusCode === 204 || statusCode === 304;
          try {
            const whole = isEmpty ? null : joined(chunks, size);
            resolve(new Response(whole, { status: statusCode, headers: answered }));
          } catch (error) {
            reject(error);
          }
        });
      });
      call.on("error", reject);
      call.end(typeof body === "string" ? body : undefined);
    });
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
