/**
 * What is known of a deployment client and its way to the service, before anybody judges it.
 *
 * @module
 */

import type { TokenClaims } from "../auth/token_claims.ts";
import type { Answer, GroupView } from "../client/answers.ts";
import type { CertificateFacts } from "./trust.ts";

/** Where a client calls, and who it is. Empty where nothing was given. */
export interface CallerSettings {
  readonly url: string;
  readonly group: string;
  readonly instance: string;
  /** Empty for the authorities of the platform. */
  readonly caFile: string;
  readonly tokenFile: string;
  /** The audience that the service asks for. */
  readonly audience: string;
}

/** The authority that the client trusts. */
export type AuthorityFacts =
  | { readonly type: "platform" | "unreadable" | "no_certificate" }
  | { readonly type: "read"; readonly certificates: readonly CertificateFacts[] };

/** The token. Of its text nothing is kept. */
export type TokenFacts =
  | { readonly type: "unreadable" }
  /** It is empty, or has characters that no header carries. */
  | { readonly type: "unusable" }
  /** `claims` is `null` for what is no JWT. */
  | { readonly type: "read"; readonly claims: TokenClaims | null };

/** A step of the way. `code` is the platform's name of a fault, for example `ECONNREFUSED`. */
export type StepFacts =
  | { readonly type: "not_tried" }
  | { readonly type: "failed"; readonly code: string }
  | { readonly type: "done" };

/** The TLS handshake. */
export type HandshakeFacts =
  | { readonly type: "not_tried" }
  | { readonly type: "failed"; readonly code: string }
  | {
    readonly type: "done";
    readonly certificate: CertificateFacts;
    /** It is for the host of the URL. */
    readonly isForHost: boolean;
    /** The trusted authority signed it, whatever else is wrong with it; `null` when that cannot be told. */
    readonly isTrusted: boolean | null;
    /** Why the platform refuses it; empty when it does not. */
    readonly refusal: string;
  };

/** A look at the group. */
export type LookFacts =
  | { readonly type: "not_tried" }
  | {
    readonly type: "done";
    readonly answer: Answer<GroupView>;
    /** This machine's wall clock, in milliseconds since 1970. */
    readonly sentMs: number;
    readonly receivedMs: number;
    /** The `Date` header in milliseconds since 1970: whole seconds; `null` when there is none. */
    readonly serverDateMs: number | null;
  };

/** All of it. */
export interface CallerFacts {
  readonly settings: CallerSettings;
  /** This machine's wall clock, in milliseconds since 1970. */
  readonly nowMs: number;
  readonly authority: AuthorityFacts;
  readonly token: TokenFacts;
  /** The name of the host becomes an address. */
  readonly name: StepFacts;
  /** A connection is made. */
  readonly connection: StepFacts;
  readonly handshake: HandshakeFacts;
  readonly look: LookFacts;
}
