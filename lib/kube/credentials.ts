/**
 * Who this program is to the API server.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import { ClusterConfigError } from "./connect_errors.ts";

/** Gives each request the headers that say who sends it. */
export interface Credentials {
  /**
   * The headers of the next request. Their values are secret.
   *
   * @param signal Ends the wait for them.
   */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /**
   * Gets the credentials anew, after the server refused them (401).
   *
   * @param signal Ends the wait for them.
   * @returns True when it is worth to send the request once again.
   */
  refresh(signal: AbortSignal): Promise<boolean>;
}

/** Reads a file as text. It rejects with `Deno.errors.NotFound` when there is none. */
export type ReadTextFile = (path: string) => Promise<string>;

/** Credentials that are a part of the connection (a client certificate), or none at all. */
export const NO_CREDENTIALS: Credentials = {
  headers: () => Promise.resolve({}),
  refresh: () => Promise.resolve(false),
};

/**
 * A bearer token that does not change.
 *
 * @param token The token, without the word `Bearer`.
 */
export function staticToken(token: string): Credentials {
  const headers = bearer(token);
  return {
    headers: () => Promise.resolve(headers),
    refresh: () => Promise.resolve(false),
  };
}

/**
 * Says whether a text can be a bearer token: visible ASCII characters and nothing else. Anything else can be in no header,
 * and the platform quotes it when it says so.
 */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** What a {@linkcode TokenFile} is made of. */
export interface TokenFileParts {
  readonly path: string;
  readonly readTextFile: ReadTextFile;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Milliseconds for which a token that was read is used without a look at its file. The file is small and the look cheap, so
 * this is far below the 60 s that the project allows: it takes the place of watching the file.
 */
export const TOKEN_FILE_AGE_MS = 5_000;

/**
 * A bearer token in a file that others write anew: the kubelet does so with a service account's token.
 *
 * A file that cannot be read any more leaves the last token in use, with a warning: the server decides about that token.
 */
export class TokenFile implements Credentials {
  readonly #parts: TokenFileParts;
  #token: string | null = null;
  #readAtMs = -Infinity;
  #reading: Promise<void> | null = null;

  constructor(parts: TokenFileParts) {
    this.#parts = parts;
  }

  async headers(): Promise<Readonly<Record<string, string>>> {
    if (this.#parts.clock.monotonic() - this.#readAtMs >= TOKEN_FILE_AGE_MS) await this.#read();
    if (this.#token === null) throw this.#unreadable();
    return bearer(this.#token);
  }

  async refresh(): Promise<boolean> {
    await this.#read();
    return true;
  }

  /** Reads the file; calls at the same time share one reading. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => this.#reading = null);
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const { path, readTextFile, clock, logger } = this.#parts;
    try {
      const token = (await readTextFile(path)).trim();
      if (!isToken(token)) throw this.#unreadable();
      this.#token = token;
      this.#readAtMs = clock.monotonic();
    } catch {
      if (this.#token === null) throw this.#unreadable();
      this.#readAtMs = clock.monotonic();
      logger.warn("kubernetes token file cannot be read; its last token stays in use", {
        file: path,
      });
    }
  }

  #unreadable(): ClusterConfigError {
    return new ClusterConfigError(
      `Cannot read a token from ${this.#parts.path}: it must be a readable file that holds one, of visible ASCII characters`,
    );
  }
}

function bearer(token: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${token}` };
}
