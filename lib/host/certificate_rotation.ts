/**
 * Keeps a listener's certificate up to date with its files, without a restart.
 *
 * A mounted Secret is swapped through the link `..data` in its directory. A watch on the file itself follows the old
 * target and misses every later swap, so the *directory* is watched. A watch can still be lost (a file that is itself a
 * link to elsewhere, a system that is out of watches), so the files are also read again at a slow pace.
 *
 * A pair that cannot be used never replaces one that can: it is logged once, counted once, and tried again, since a
 * certificate that is not valid yet becomes valid without another change of the file.
 *
 * @module
 */

import { dirname } from "node:path";
import { Counter, Gauge, type Registry } from "prom-client";
import type { CancelTimer, Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import {
  CertificateError,
  type CertificateFiles,
  type CertificatePair,
  checkCertificate,
  readCertificate,
} from "./certificate.ts";

/** What {@linkcode startCertificateRotation} takes. */
export interface CertificateRotationOptions extends CertificateFiles {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Gets `holdfast_tls_certificate_expiry_timestamp_seconds` and `holdfast_tls_certificate_reloads_total`. */
  readonly registry: Registry;
  /**
   * Milliseconds from the first sign of a change to the reading of the files: two files that are copied one after the
   * other are then read as a pair. 0 or more.
   *
   * @default {200}
   */
  readonly settleMs?: number;
  /** Milliseconds between two readings without any sign of a change. More than 0. @default {60000} */
  readonly recheckMs?: number;
  /** Watches directories, not what is below them. @default {Deno.watchFs} */
  readonly watch?: (directories: string[]) => DirectoryWatch;
}

/** The part of `Deno.FsWatcher` that is used. */
export interface DirectoryWatch extends AsyncIterable<Pick<Deno.FsEvent, "kind">> {
  /** Ends the iteration. */
  close(): void;
}

/** A certificate that follows its files. Disposing it ends the watch. */
export interface RotatingCertificate extends AsyncDisposable {
  /** The pair in use: the newest that could be used. */
  readonly current: CertificatePair;
  /**
   * Calls `apply` with each later pair. If it throws, the pair counts as refused and the one before stays the current.
   *
   * @returns A function that ends the calls.
   */
  onChange(apply: (pair: CertificatePair) => void): () => void;
}

/**
 * Loads a certificate and follows its files.
 *
 * @throws {CertificateError} When the pair cannot be used at the start.
 */
export async function startCertificateRotation(
  options: CertificateRotationOptions,
): Promise<RotatingCertificate> {
  // The watch comes first: a swap between the reading and the watch would be seen by neither.
  const watcher = watchDirectories(options);
  try {
    const first = checkCertificate(options, await readCertificate(options), options.clock.wall());
    return new Rotation(options, watcher, first);
  } catch (error) {
    watcher?.close();
    throw error;
  }
}

function watchDirectories(options: CertificateRotationOptions): DirectoryWatch | undefined {
  const directories = new Set([dirname(options.certFile), dirname(options.keyFile)]);
  const watch = options.watch ?? ((paths) => Deno.watchFs(paths, { recursive: false }));
  try {
    return watch([...directories]);
  } catch {
    warnUnwatched(options);
    return undefined;
  }
}

function warnUnwatched({ logger, certFile, keyFile }: CertificateRotationOptions): void {
  logger.warn("tls certificate cannot be watched, it is checked at intervals", {
    files: [certFile, keyFile],
  });
}

class Rotation implements RotatingCertificate {
  readonly #options: CertificateRotationOptions;
  readonly #watcher: DirectoryWatch | undefined;
  readonly #following: Promise<void>;
  readonly #listeners = new Set<(pair: CertificatePair) => void>();
  readonly #expiry: Gauge;
  readonly #reloads: Counter<"result">;
  #current: CertificatePair;
  #refused: string | undefined;
  #checks = Promise.resolve();
  #cancelCheck: CancelTimer = () => {};
  #checkAt = Infinity;
  #stopped = false;

  constructor(
    options: CertificateRotationOptions,
    watcher: DirectoryWatch | undefined,
    first: CertificatePair,
  ) {
    this.#options = options;
    this.#watcher = watcher;
    this.#current = first;
    const registers = [options.registry];
    this.#expiry = new Gauge({
      name: "holdfast_tls_certificate_expiry_timestamp_seconds",
      help: "End of the validity of the certificate in use, in seconds since 1970.",
      registers,
    });
    this.#expiry.set(first.notAfterMs / 1000);
    this.#reloads = new Counter({
      name: "holdfast_tls_certificate_reloads_total",
      help: "Changes of the certificate files, by whether the new pair was taken into use.",
      labelNames: ["result"],
      registers,
    });
    // A counter that appears with its first failure hides that failure from a rate.
    this.#reloads.inc({ result: "success" }, 0);
    this.#reloads.inc({ result: "failure" }, 0);
    this.#following = this.#follow();
    this.#schedule(this.#recheckMs);
  }

  get current(): CertificatePair {
    return this.#current;
  }

  onChange(apply: (pair: CertificatePair) => void): () => void {
    this.#listeners.add(apply);
    return () => this.#listeners.delete(apply);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#cancelCheck();
    this.#watcher?.close();
    await this.#following;
    await this.#checks;
  }

  get #recheckMs(): number {
    return this.#options.recheckMs ?? 60_000;
  }

  async #follow(): Promise<void> {
    if (this.#watcher === undefined) return;
    try {
      for await (const event of this.#watcher) {
        if (event.kind !== "access") this.#schedule(this.#options.settleMs ?? 200);
      }
    } catch {
      warnUnwatched(this.#options);
    }
  }

  /** An earlier check that is already due stays: a stream of changes must not put it off for ever. */
  #schedule(delayMs: number): void {
    const { clock } = this.#options;
    const at = clock.monotonic() + delayMs;
    if (this.#stopped || at >= this.#checkAt) return;
    this.#cancelCheck();
    this.#checkAt = at;
    this.#cancelCheck = clock.timer(delayMs, () => {
      this.#checkAt = Infinity;
      this.#checks = this.#checks.then(() => this.#check());
    });
  }

  async #check(): Promise<void> {
    const { clock, logger } = this.#options;
    let seen = "";
    try {
      const texts = await readCertificate(this.#options);
      seen = texts.certPem + texts.keyPem;
      if (seen !== this.#current.certPem + this.#current.keyPem) {
        const pair = checkCertificate(this.#options, texts, clock.wall());
        for (const apply of this.#listeners) apply(pair);
        this.#current = pair;
        this.#expiry.set(pair.notAfterMs / 1000);
        this.#reloads.inc({ result: "success" });
        logger.info("tls certificate reloaded", {
          file: this.#options.certFile,
          notAfter: new Date(pair.notAfterMs).toISOString(),
        });
      }
      this.#refused = undefined;
    } catch (error) {
      this.#refuse(seen, error);
    }
    this.#schedule(this.#recheckMs);
  }

  /** Once per change: the same files are judged again every minute. */
  #refuse(seen: string, error: unknown): void {
    const { file, problem } = error instanceof CertificateError
      ? error
      : { file: this.#options.certFile, problem: "not_applied" };
    const refused = `${problem} ${file} ${seen}`;
    if (refused === this.#refused) return;
    this.#refused = refused;
    this.#reloads.inc({ result: "failure" });
    this.#options.logger.warn("tls certificate refused, the one before stays in use", {
      file,
      problem,
      reason: error instanceof CertificateError ? error.message : "The listener refused the pair",
      notAfter: new Date(this.#current.notAfterMs).toISOString(),
    });
  }
}
