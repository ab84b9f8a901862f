/**
 * The keyring escrow: who may store a keyring, and for which site. deploy-api 13, from the token check on.
 *
 * Every refusal before the token is accepted is one and the same, and costs the same call of the API server: it tells
 * nobody which groups and sites there are.
 *
 * @module
 */

import type { CallOptions, Stored } from "../kube/api.ts";
import { ForbiddenError, NotFoundError } from "../kube/errors.ts";
import { SECRETS } from "../kube/resources.ts";
import { GROUP_SPECS, type GroupSpec, hasSite, isEncrypted } from "./group.ts";
import { readPayload } from "./keyring.ts";
import { canExist, type KeyringSite, mayBeOf, TOKEN_KEY, tokenSecretName } from "./names.ts";
import { KeyringStore, type KeyringStoreParts, type StoredKeyring } from "./store.ts";
import { readToken, tokenMatches } from "./token.ts";

/** A keyring that was sent. */
export interface KeyringPush {
  readonly site: KeyringSite;
  /** The token that came with it. */
  readonly token: string;
  /** In base64, as sent. */
  readonly keyring: string;
  /** The digest that the sender says it has; empty when it says none. */
  readonly digest: string;
}

/** What became of it. */
export type PushOutcome =
  | {
    readonly type: "escrowed";
    readonly stored: StoredKeyring;
    /** Of the keyring: `sha256:` and 64 hexadecimal digits. */
    readonly digest: string;
  }
  | {
    readonly type:
      | "rejected"
      | "not_base64"
      | "empty"
      | "too_large"
      | "digest_mismatch"
      | "group_not_found"
      | "not_encrypted"
      | "site_not_found";
  };

/** The keyring was accepted and could not be stored. `cause` says why, for the class of the fault in a log line. */
export class KeyringStoreError extends Error {
  override readonly name = "KeyringStoreError";
  constructor(cause: unknown) {
    super("Cannot store the keyring", { cause });
  }
}

/** The group was made anew each time. */
class GroupUnsteadyError extends Error {
  override readonly name = "GroupUnsteadyError";
  constructor() {
    super(`Cannot store the keyring as its group was made anew at each of ${GROUP_READS} tries`);
  }
}

/** What a {@linkcode KeyringEscrow} is made of. */
export interface KeyringEscrowParts extends KeyringStoreParts {
  /** The Role does not allow to read a token. The caller cannot tell this from a wrong token, but an operator must. */
  readonly onForbidden: (site: KeyringSite, error: ForbiddenError) => void;
}

const GROUP_READS = 3;

/** Takes keyrings. */
export class KeyringEscrow {
  readonly #parts: KeyringEscrowParts;
  readonly #store: KeyringStore;

  constructor(parts: KeyringEscrowParts) {
    this.#parts = parts;
    this.#store = new KeyringStore(parts);
  }

  /**
   * Judges a keyring and stores it.
   *
   * @throws {KeyringStoreError} It was accepted and could not be stored; it may be stored all the same, so send it again.
   * @throws {KubeError} The token or the group could not be read.
   */
  async push(push: KeyringPush, options: CallOptions): Promise<PushOutcome> {
    const { site, token } = push;
    if (!tokenMatches(token, await this.#tokenOf(site, options))) return { type: "rejected" };
    const payload = readPayload(push.keyring, push.digest);
    if (payload.type !== "ok") return payload;
    for (let reads = 0; reads < GROUP_READS; reads++) {
      const group = await this.#groupOf(site, options);
      if (group === null) return { type: "group_not_found" };
      if (!isEncrypted(group)) return { type: "not_encrypted" };
      if (!hasSite(group, site.site)) return { type: "site_not_found" };
      const groupUid = group.metadata.uid;
      const groupIsStill = async () =>
        (await this.#groupOf(site, options))?.metadata.uid === groupUid;
      try {
        const { keyring, digest } = payload;
        const wish = { site, groupUid, keyring, digest };
        const stored = await this.#store.store(wish, groupIsStill, options);
        if (stored !== null) return { type: "escrowed", stored, digest };
      } catch (error) {
        throw new KeyringStoreError(error);
      }
    }
    throw new KeyringStoreError(new GroupUnsteadyError());
  }

  /** The token of a site; `null` when there is no such site, or none that this process may know of. */
  async #tokenOf(site: KeyringSite, options: CallOptions): Promise<string | null> {
    if (!canExist(site)) return null;
    const address = { namespace: site.namespace, name: tokenSecretName(site) };
    try {
      const secret = await this.#parts.api.get(SECRETS, address, options);
      return mayBeOf(site, secret) ? readToken(secret.data?.[TOKEN_KEY]) : null;
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      // With a role in each namespace of a group, this is what any other namespace answers.
      if (error instanceof ForbiddenError) {
        this.#parts.onForbidden(site, error);
        return null;
      }
      throw error;
    }
  }

  async #groupOf(
    { namespace, group }: KeyringSite,
    options: CallOptions,
  ): Promise<Stored<GroupSpec> | null> {
    try {
      return await this.#parts.api.get(GROUP_SPECS, { namespace, name: group }, options);
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }
}
