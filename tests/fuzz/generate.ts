/**
 * Requests that nobody should send, and those that everybody sends, from one seed.
 *
 * @module
 */

import { toHex } from "../../lib/runtime/entropy.ts";
import type { seededEntropy } from "../../lib/testing/mod.ts";

type Entropy = ReturnType<typeof seededEntropy>;

/** Stands in every secret that is made up here: nothing that is said may have it. */
export const CANARY = "canary";

/** Whose bearer token a request carries. */
export type Bearer = "deployer" | "stranger" | "elsewhere" | "broken" | "none";

/** Which lease token it carries. */
export type Proof = "newest" | "older" | "wrong" | "none";

/** One request, before tokens are filled in. */
export interface Wish {
  readonly method: string;
  /** The raw request target. */
  readonly target: string;
  readonly bearer: Bearer;
  /** Made-up headers beside the bearer token. */
  readonly headers: readonly (readonly [string, string])[];
  readonly operation: string;
  readonly kind: string;
  readonly proof: Proof;
  /** Makes the body; `null` for none. */
  readonly body: ((token: string) => string) | null;
}

const METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "PURGE", "get"];
/** So many requests are about the same operations: what was revoked stays so, and then there must be others. */
const REQUESTS_PER_OPERATION = 100;
const ODD_OPERATIONS = [
  "",
  ".",
  "..",
  "a/b",
  "\u0000",
  "x".repeat(129),
  "ü".repeat(65),
  "<&>\u2028",
];
const KINDS = ["migration", "failover-hold"];
const ODD_KINDS = ["", "gate", "Migration", "constructor", "__proto__"];
const GROUPS = ["orders"];
const ODD_GROUPS = [
  "absent",
  "Orders",
  "",
  "..",
  "orders.",
  "a".repeat(254),
  "%6frders",
  "ord%65rs",
];
const INSTANCES = ["tenant", "billing"];
const ODD_INSTANCES = ["missing", "Tenant", "", "../tenant", "a".repeat(254)];
const TTLS = ["30", "5", "120"];
const ODD_TTLS = ["0", "-1", "1e3", "1.5", "9007199254740993", "1e999", '"30"', "null", "[]", "{}"];
const ODD_TARGETS = [
  "/",
  "*",
  "/deploy/v1",
  "/deploy/v1/",
  "/deploy/v1/groups/",
  "/deploy/v1/groups/orders/",
  "/deploy/v1/groups/orders/leases/",
  "/deploy/v1//groups/orders",
  "/deploy/v1/./groups/orders",
  "/deploy/v1/x/../groups/orders",
  "/deploy/v1/groups/%2e%2e/groups/orders",
  "/deploy/v1/groups/orders%2fleases",
  "/deploy/v1/groups/%",
  "/deploy/v1/groups/%ff%fe",
  "/DEPLOY/v1/groups/orders",
  "/deploy/v2/groups/orders",
];

/** Makes wishes. */
export class Generator {
  readonly #entropy: Entropy;
  #count = 0;

  constructor(entropy: Entropy) {
    this.#entropy = entropy;
  }

  /** The next request. Most are nearly right: those go furthest. */
  next(): Wish {
    const age = Math.floor(this.#count++ / REQUESTS_PER_OPERATION);
    const operation = this.#mostly([`op-${age}`, `op-${age}`, `rival ${age}`], ODD_OPERATIONS);
    const kind = this.#mostly(KINDS, ODD_KINDS);
    const shape = this.#pick(["group", "grant", "grant", "renew", "renew", "release"] as const);
    const usual = { group: "GET", grant: "POST", renew: "PUT", release: "DELETE" }[shape];
    const method = this.chance(0.93) ? usual : this.#pick(METHODS);
    return {
      method,
      target: this.#target(shape, kind, operation),
      bearer: this.chance(0.9)
        ? "deployer"
        : this.#pick(["stranger", "elsewhere", "broken", "none"] as const),
      headers: this.#headers(),
      operation,
      kind,
      proof: this.chance(0.6) ? "newest" : this.#pick(["older", "wrong", "none"] as const),
      body: this.#body(shape, kind, operation),
    };
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.#entropy.fraction() < probability;
  }

  /** A made-up secret. */
  secret(): string {
    return `${CANARY}-${toHex(this.#entropy.bytes(8))}`;
  }

  #target(shape: string, kind: string, operation: string): string {
    if (this.chance(0.03)) return this.#pick(ODD_TARGETS);
    const group = this.#mostly(GROUPS, ODD_GROUPS);
    const encoded = this.chance(0.95) ? encodeURIComponent(operation) : encodeURI(operation);
    const path = {
      group: "",
      grant: "/leases",
      renew: `/leases/${kind}/${encoded}`,
      release: `/leases/${kind}/${encoded}`,
    }[shape];
    const more = this.chance(0.98) ? "" : this.#pick(["/", "/more", "//", "%00", ";x=1"]);
    const query = this.chance(0.95) ? "" : this.#pick(["?", "?namespace=other", "?a=/../", "#x"]);
    return `/deploy/v1/groups/${group}${path}${more}${query}`;
  }

  #headers(): readonly (readonly [string, string])[] {
    const odd: readonly (readonly [string, string])[] = [
      ["X-Lease-Token", this.secret()],
      ["Content-Type", "text/plain"],
      ["Accept", "application/xml"],
      ["Content-Encoding", "gzip"],
      ["X-HTTP-Method-Override", "DELETE"],
      ["Cookie", this.secret()],
      ["X-Forwarded-For", "10.0.0.1"],
      ["Expect", "100-continue"],
    ];
    return odd.filter(() => this.chance(0.04));
  }

  #body(shape: string, kind: string, operation: string): Wish["body"] {
    if (shape === "group" || shape === "release") {
      return this.chance(0.95) ? null : () => this.secret();
    }
    const ttl = this.chance(0.1) ? "" : `,"ttlSeconds":${this.#mostly(TTLS, ODD_TTLS)}`;
    const instance = JSON.stringify(this.#mostly(INSTANCES, ODD_INSTANCES));
    const operationId = JSON.stringify(operation);
    const text = (token: string) =>
      shape === "grant"
        ? `{"kind":${
          JSON.stringify(kind)
        },"operationId":${operationId},"instance":${instance}${ttl}}`
        : `{"token":${JSON.stringify(token)}${ttl}}`;
    return this.chance(0.9) ? text : this.#broken(text);
  }

  #broken(text: (token: string) => string): Wish["body"] {
    const ways: readonly ((whole: string) => string)[] = [
      () => "",
      () => "null",
      () => "[]",
      () => "\ufeff{}",
      (whole) => whole.slice(0, -1),
      (whole) => `${whole}null`,
      (whole) => `${whole}{}`,
      (whole) => `[${whole}]`,
      (whole) => whole + " ".repeat(4_097),
      (whole) => " ".repeat(4_090 - Math.min(whole.length, 4_090)) + whole,
      (whole) => whole.replace("{", `{"more":"${this.secret()}",`),
      (whole) => whole.replace("{", `{"__proto__":{"kind":"migration"},`),
      (whole) => whole.replace(/"(\w)/, (_, first: string) => `"${first.toUpperCase()}`),
      (whole) => whole.replace("{", `{"operationId":"x","operationId":"y",`),
      (whole) => whole.replace(/:"/, ':"\\ud800'),
      () => "[".repeat(2_000),
      (whole) => whole.replaceAll('"', "'"),
    ];
    const way = this.#pick(ways);
    return (token) => way(text(token));
  }

  #mostly<T>(usual: readonly T[], odd: readonly T[]): T {
    return this.chance(0.93) ? this.#pick(usual) : this.#pick(odd);
  }

  #pick<T>(values: readonly T[]): T {
    const value = values[Math.floor(this.#entropy.fraction() * values.length)];
    if (value === undefined) throw new RangeError("Cannot pick from nothing");
    return value;
  }
}
