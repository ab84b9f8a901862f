/**
 * Stores keyrings as versions, each a Secret that cannot be changed: deploy-api 13.
 *
 * No leader is needed, and nothing here is remembered. Any number of replicas may store at once:
 *
 * 1. **List** the versions, and decide. The newest one holds this keyring: it is stored already.
 * 2. **Create** the next version. The name is the fence: of two that want one number one gets it, and the other begins anew.
 *    A create whose answer was lost may have landed, now or later: begin anew. It is then found as the newest, or its name
 *    is free still.
 * 3. **Look**: list again. The version must be among those that are kept, under the group as it is now; else begin anew.
 * 4. **Clear away** what that list shows to be outdated, each exactly as it was listed. That a newer version is missing in
 *    the list does no harm, see `keyring.ts`; and what another replica has just written and would have lost by this, it
 *    misses at its own look.
 *
 * @module
 */

import type { CallOptions, KubeApi, Stored } from "../kube/api.ts";
import { AlreadyExistsError, ConflictError, KubeError, NotFoundError } from "../kube/errors.ts";
import { type Secret, SECRETS } from "../kube/resources.ts";
import { decideVersion, isKept, type KeyringVersion, outdated, storedDigest } from "./keyring.ts";
import {
  controlledBy,
  KEYRING_KEY,
  keyringSecret,
  keyringSecretName,
  keyringSelector,
  type KeyringSite,
  versionOf,
} from "./names.ts";

/** A keyring to be stored. */
export interface NewKeyring {
  readonly site: KeyringSite;
  /** The uid of the group. */
  readonly groupUid: string;
  /** In base64. */
  readonly keyring: string;
  readonly digest: string;
}

/** A keyring that is stored. */
export interface StoredKeyring {
  readonly version: number;
  /** The name of its Secret. */
  readonly secret: string;
  /** False when the newest version held it already. */
  readonly created: boolean;
}

/** Others stored versions of this site all the time, so that none of several tries stood. */
export class KeyringContendedError extends Error {
  override readonly name = "KeyringContendedError";
  constructor() {
    super(`Cannot store the keyring as others stored versions of it at each of ${TRIES} tries`);
  }
}

/** A version is in the cluster and cannot be read, so nothing can be decided. */
export class KeyringUnreadableError extends Error {
  override readonly name = "KeyringUnreadableError";
  constructor() {
    super("Cannot store the keyring as a Secret with one of its versions has another form");
  }
}

/** What a {@linkcode KeyringStore} is made of. */
export interface KeyringStoreParts {
  readonly api: KubeApi;
  /** An outdated version could not be removed; the next keyring tries again. */
  readonly onLeftBehind: (site: KeyringSite, error: unknown) => void;
}

/** Each round that fails means that another replica made progress, so few are needed. */
const TRIES = 8;

type Listed = KeyringVersion & { readonly secret: Stored<Secret> };

/** Writes keyrings. */
export class KeyringStore {
  readonly #parts: KeyringStoreParts;

  constructor(parts: KeyringStoreParts) {
    this.#parts = parts;
  }

  /**
   * Stores a keyring, and returns once it is among the versions that are kept.
   *
   * @param groupIsStill Asks whether the group has that uid still: one that was made anew does not own what was stored for
   * the one before.
   * @returns `null` when the group was deleted or made anew meanwhile: read it again.
   * @throws {KeyringContendedError} @throws {KeyringUnreadableError} @throws {KubeError}
   */
  async store(
    keyring: NewKeyring,
    groupIsStill: () => Promise<boolean>,
    options: CallOptions,
  ): Promise<StoredKeyring | null> {
    const { site, digest } = keyring;
    let taken = 0;
    for (let tries = 0; tries < TRIES; tries++) {
      const versions = await this.#list(keyring, options);
      const decision = decideVersion(versions, digest, taken);
      const { version } = decision;
      const secret = keyringSecretName(site, version);
      if (decision.type === "stored") {
        await this.#clearAway(site, versions, options);
        return { version, secret, created: false };
      }
      const written = await this.#create(keyring, version, options);
      if (written === "taken") taken = version;
      if (typeof written === "string") continue;
      const [after, owned] = await Promise.all([this.#list(keyring, options), groupIsStill()]);
      if (!owned) return null;
      if (!isKept(after, written.uid)) continue;
      await this.#clearAway(site, after, options);
      return { version, secret, created: true };
    }
    throw new KeyringContendedError();
  }

  async #list({ site, groupUid }: NewKeyring, options: CallOptions): Promise<readonly Listed[]> {
    const { items, undecodable } = await this.#parts.api.list(SECRETS, {
      ...options,
      namespace: site.namespace,
      labelSelector: keyringSelector(site),
    });
    if (undecodable.length > 0) throw new KeyringUnreadableError();
    return items.flatMap((secret) => {
      const { name, uid, deletionTimestamp } = secret.metadata;
      const version = versionOf(site, name);
      if (version === null) return [];
      const lasting = controlledBy(secret, groupUid) && (deletionTimestamp ?? null) === null;
      return [{ version, uid, digest: storedDigest(secret.data?.[KEYRING_KEY]), lasting, secret }];
    });
  }

  async #create(
    { site, groupUid, keyring, digest }: NewKeyring,
    version: number,
    options: CallOptions,
  ): Promise<{ readonly uid: string } | "taken" | "again"> {
    const secret = keyringSecret({ site, groupUid, version, keyring, digest });
    try {
      const { metadata: { uid } } = await this.#parts.api.create(SECRETS, secret, options);
      // The server gives one to whatever it stores. An answer without it says nothing.
      return uid === undefined ? "again" : { uid };
    } catch (error) {
      if (error instanceof AlreadyExistsError) return "taken";
      // A conflict about something else than the name, a quota for one, says nothing about it either.
      const isOpen = error instanceof ConflictError ||
        (error instanceof KubeError && error.mayHaveLanded);
      if (isOpen && !options.signal.aborted) return "again";
      throw error;
    }
  }

  async #clearAway(
    site: KeyringSite,
    versions: readonly Listed[],
    options: CallOptions,
  ): Promise<void> {
    await Promise.all(
      outdated(versions).map(async ({ secret: { metadata } }) => {
        const { name, uid, resourceVersion } = metadata;
        const address = { namespace: site.namespace, name };
        try {
          await this.#parts.api.delete(SECRETS, address, { uid, resourceVersion }, options);
        } catch (error) {
          // Another replica removed it, or somebody changed it and it is looked at again next time.
          if (error instanceof NotFoundError || error instanceof ConflictError) return;
          this.#parts.onLeftBehind(site, error);
        }
      }),
    );
  }
}
