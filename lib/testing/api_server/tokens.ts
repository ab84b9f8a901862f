/**
 * Tokens: of service accounts (signed, with audiences and an end, in the form of a JWT) and of other users (random).
 *
 * @module
 */

import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { type Entropy, toHex } from "../../runtime/entropy.ts";
import { invalid, invalidValue } from "./api_error.ts";
import {
  arrayAt,
  isObject,
  type Json,
  type JsonObject,
  objectAt,
  parseJson,
  stringAt,
  strings,
} from "./json.ts";
import { objectKey, type Store } from "./store.ts";
import type { User } from "./users.ts";
import { timestamp } from "./wire_types.ts";

/** The audience of the API server itself: what a token needs that is to be used against it. */
export const API_AUDIENCE = "https://kubernetes.default.svc";

const MIN_EXPIRATION_SECONDS = 600;
const MAX_EXPIRATION_SECONDS = 2 ** 32;
const DEFAULT_EXPIRATION_SECONDS = 3_600;

const SERVICE_ACCOUNTS = "/serviceaccounts";

/** What a token is: a user with the audiences that were asked for, or why it is none. */
export type TokenVerdict =
  | {
    readonly valid: true;
    readonly user: User;
    readonly audiences: readonly string[];
    readonly credentialId: string | null;
  }
  | { readonly valid: false; readonly error: string };

/** What a token says about a service account. */
export interface TokenClaims {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly uid: string;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
}

/** Issues tokens and judges them. */
export class Tokens {
  readonly #store: Store;
  readonly #entropy: Entropy;
  readonly #now: () => number;
  readonly #key: Uint8Array;
  readonly #users = new Map<string, User>();

  /** @param now The server's wall time in milliseconds since 1970: expiry is judged by it. */
  constructor(store: Store, entropy: Entropy, now: () => number) {
    this.#store = store;
    this.#entropy = entropy;
    this.#now = now;
    this.#key = entropy.bytes(32);
  }

  /** Makes a token of a user that is no service account. It has no end. */
  forUser(username: string, groups: readonly string[]): string {
    const token = toHex(this.#entropy.bytes(16));
    this.#users.set(token, {
      username,
      uid: this.#entropy.uuid(),
      groups: [...groups, "system:authenticated"],
    });
    return token;
  }

  /** Signs a token of a service account. */
  sign(claims: TokenClaims): string {
    const issuedAt = Math.floor(this.#now() / 1000);
    const { namespace, serviceAccount, uid } = claims;
    return this.#signed({
      aud: [...claims.audiences],
      exp: issuedAt + claims.expirationSeconds,
      iat: issuedAt,
      iss: API_AUDIENCE,
      jti: this.#entropy.uuid(),
      "kubernetes.io": { namespace, serviceaccount: { name: serviceAccount, uid } },
      nbf: issuedAt,
      sub: `system:serviceaccount:${namespace}:${serviceAccount}`,
    });
  }

  /** Answers a TokenRequest for a stored service account. @throws {ApiError} 422 */
  request(account: JsonObject, body: JsonObject): JsonObject {
    const metadata = objectAt(account, "metadata");
    const name = stringAt(metadata, "name");
    const spec = objectAt(body, "spec");
    const wanted = stringAt(objectAt(body, "metadata"), "name");
    if (wanted !== "" && wanted !== name) {
      throw tokenRequestFault(
        name,
        "metadata.name",
        wanted,
        "must match the service account name if specified",
      );
    }
    const expirationSeconds = typeof spec.expirationSeconds === "number"
      ? spec.expirationSeconds
      : DEFAULT_EXPIRATION_SECONDS;
    if (expirationSeconds < MIN_EXPIRATION_SECONDS) {
      const why = "may not specify a duration less than 10 minutes";
      throw tokenRequestFault("", "spec.expirationSeconds", expirationSeconds, why);
    }
    if (expirationSeconds > MAX_EXPIRATION_SECONDS) {
      const why = "may not specify a duration larger than 2^32 seconds";
      throw tokenRequestFault("", "spec.expirationSeconds", expirationSeconds, why);
    }
    const asked = strings(arrayAt(spec, "audiences"));
    const audiences = asked.length > 0 ? asked : [API_AUDIENCE];
    const namespace = stringAt(metadata, "namespace");
    const uid = stringAt(metadata, "uid");
    const token = this.sign({ namespace, serviceAccount: name, uid, audiences, expirationSeconds });
    return {
      kind: "TokenRequest",
      apiVersion: "authentication.k8s.io/v1",
      metadata: { name, namespace, uid, creationTimestamp: timestamp(this.#now()) },
      spec: { audiences, expirationSeconds, boundObjectRef: null },
      status: {
        token,
        expirationTimestamp: timestamp(this.#now() + expirationSeconds * 1000),
      },
    };
  }

  /** Answers a TokenReview. */
  review(body: JsonObject): JsonObject {
    const spec = objectAt(body, "spec");
    const asked = strings(arrayAt(spec, "audiences"));
    const verdict = this.judge(stringAt(spec, "token"), asked.length > 0 ? asked : [API_AUDIENCE]);
    const status: JsonObject = verdict.valid
      ? {
        authenticated: true,
        user: {
          username: verdict.user.username,
          uid: verdict.user.uid,
          groups: verdict.user.groups,
          ...(verdict.credentialId === null ? {} : {
            extra: {
              "authentication.kubernetes.io/credential-id": [`JTI=${verdict.credentialId}`],
            },
          }),
        },
        audiences: verdict.audiences,
      }
      : { user: {}, error: verdict.error };
    return {
      kind: "TokenReview",
      apiVersion: "authentication.k8s.io/v1",
      metadata: {},
      spec,
      status,
    };
  }

  /** Who a token is, for one of these audiences. */
  judge(token: string, audiences: readonly string[]): TokenVerdict {
    const user = this.#users.get(token);
    if (user !== undefined) {
      // A token of the server's own file is good for the server's own audience only.
      return audiences.includes(API_AUDIENCE)
        ? { valid: true, user, audiences: [API_AUDIENCE], credentialId: null }
        : { valid: false, error: "invalid bearer token" };
    }
    const claims = this.#verified(token);
    if (claims === null) return { valid: false, error: "invalid bearer token" };
    const refuse = (why: string): TokenVerdict => ({
      valid: false,
      error: `[invalid bearer token, ${why}]`,
    });
    if (typeof claims.exp !== "number" || this.#now() >= claims.exp * 1000) {
      return refuse("service account token has expired");
    }
    const own = strings(arrayAt(claims, "aud"));
    const shared = audiences.filter((audience) => own.includes(audience));
    if (shared.length === 0) {
      return refuse(
        `token audiences ${JSON.stringify(own)} is invalid for the target audiences ${
          JSON.stringify(audiences)
        }`,
      );
    }
    const bound = objectAt(claims, "kubernetes.io");
    const namespace = stringAt(bound, "namespace");
    const { name, uid } = { name: "", uid: "", ...objectAt(bound, "serviceaccount") };
    const account = this.#store.get(SERVICE_ACCOUNTS, objectKey(namespace, String(name)));
    if (account === null || stringAt(objectAt(account, "metadata"), "uid") !== uid) {
      return refuse(`serviceaccounts "${name}" not found`);
    }
    return {
      valid: true,
      user: {
        username: stringAt(claims, "sub"),
        uid,
        groups: [
          "system:serviceaccounts",
          `system:serviceaccounts:${namespace}`,
          "system:authenticated",
        ],
      },
      audiences: shared,
      credentialId: stringAt(claims, "jti"),
    };
  }

  #signed(claims: JsonObject): string {
    const head = `${encoded({ alg: "HS256", kid: "holdfast-testing" })}.${encoded(claims)}`;
    return `${head}.${this.#signature(head)}`;
  }

  #signature(head: string): string {
    return toBase64Url(hmac(sha256, this.#key, new TextEncoder().encode(head)));
  }

  #verified(token: string): JsonObject | null {
    const parts = token.split(".");
    const [head = "", payload = "", signature = ""] = parts;
    if (parts.length !== 3 || signature !== this.#signature(`${head}.${payload}`)) return null;
    const claims: Json = parseJson(new TextDecoder().decode(fromBase64Url(payload)));
    return isObject(claims) ? claims : null;
  }
}

function tokenRequestFault(name: string, field: string, value: Json, why: string) {
  return invalid("TokenRequest", "authentication.k8s.io", name, [invalidValue(field, value, why)]);
}

function encoded(value: JsonObject): string {
  return toBase64Url(new TextEncoder().encode(JSON.stringify(value)));
}

/** Bytes in the alphabet that URLs and JWTs use, without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** Reads what {@linkcode toBase64Url} wrote. @throws {SyntaxError} */
export function fromBase64Url(text: string): Uint8Array {
  return Uint8Array.fromBase64(text, { alphabet: "base64url" });
}
