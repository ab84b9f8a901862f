/**
 * Generated requests against the app: only documented answers, one log line each, and no secret anywhere.
 *
 * `HOLDFAST_FUZZ_REQUESTS=100000` runs more of them, `HOLDFAST_FUZZ_SEED` others.
 */

import assert from "node:assert/strict";
import { Socket } from "node:net";
import { z } from "zod";
import { hashToken } from "../../lib/records/record.ts";
import { seededEntropy } from "../../lib/testing/mod.ts";
import { annotate, REVOKE, setStatus, storedGroup } from "../conformance/support.ts";
import { AUDIENCE, DEPLOYER, InProcessService, NAMESPACE } from "../service/in_process.ts";
import { type Bearer, CANARY, Generator, type Wish } from "./generate.ts";

const REQUESTS = Number(Deno.env.get("HOLDFAST_FUZZ_REQUESTS") ?? 10_000);
const SEED = Number(Deno.env.get("HOLDFAST_FUZZ_SEED") ?? 1);

const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/);
const error = (name: string) => z.strictObject({ error: z.literal(name) });
const generation = z.number().int().nonnegative();
const kind = z.enum(["migration", "failover-hold"]);

const renewed = z.strictObject({ expiresAt: time, topologyGeneration: generation });
const granted = renewed.extend({
  kind,
  operationId: z.string().min(1),
  token: z.string().regex(/^[0-9a-f]{64}$/),
});
const lease = renewed.extend({ kind, operationId: z.string().min(1), instance: z.string().min(1) });
const view = z.strictObject({
  group: z.literal("orders"),
  namespace: z.literal(NAMESPACE),
  activeSite: z.string(),
  topologyGeneration: generation,
  health: z.strictObject({
    ready: z.boolean(),
    degradedReason: z.string(),
    replicationRunning: z.boolean(),
    replicationLagSeconds: z.number(),
    recoveryPending: z.boolean(),
  }),
  operations: z.strictObject({
    plannedFailover: z.strictObject({ phase: z.string(), reason: z.string() }),
    updatePhase: z.string(),
    restoreInPlace: z.string(),
    dragonflyUpgrade: z.string(),
  }),
  stable: z.boolean(),
  unstableReason: z.string(),
  leases: z.array(lease),
});

/** Every answer that the contract knows, but for 503: nothing is broken here. */
const documented = new Map<number, z.ZodType>([
  [200, z.union([view, renewed, granted])],
  [201, granted],
  [400, error("invalid_request")],
  [401, error("unauthorized")],
  [403, z.union([error("forbidden"), error("token_mismatch")])],
  [404, error("not_found")],
  [405, error("method_not_allowed")],
  [
    409,
    z.union([
      z.strictObject({
        error: z.literal("held"),
        holder: lease.pick({ expiresAt: true, instance: true, operationId: true }),
      }),
      z.strictObject({
        error: z.literal("revoked"),
        reason: z.enum(["topology_changed", "operator_revoked"]),
        topologyGeneration: generation,
      }),
    ]),
  ],
  [413, error("request_too_large")],
  [
    423,
    z.strictObject({
      error: z.literal("unstable"),
      reason: z.string().regex(/^[A-Za-z]+$/),
      retryAfterSeconds: z.literal(1),
    }),
  ],
]);

const line = z.strictObject({
  time,
  level: z.literal("INFO"),
  msg: z.literal("deploy api"),
  handler: z.enum(["group", "grant", "renew", "release", "notfound"]),
  group: z.string(),
  instance: z.string(),
  namespace: z.enum(["", NAMESPACE]),
  operationId: z.string(),
  status: z.number().int(),
  duration_ms: z.number().int().nonnegative(),
});

const SECRET = /[0-9a-f]{64}|eyJ[\w-]+/g;

/** One run: what it knows of the tokens that it was given, and what it saw. */
class Run {
  readonly #service: InProcessService;
  readonly #generator = new Generator(seededEntropy(SEED));
  readonly #bearers: Readonly<Record<Bearer, string | null>>;
  /** The tokens of each lease, the newest last. */
  readonly #tokens = new Map<string, string[]>();
  /** Lease tokens and their hashes. */
  readonly #secrets = new Set<string>();
  readonly statuses = new Map<number, number>();

  constructor(service: InProcessService) {
    this.#service = service;
    const { fake } = service;
    this.#bearers = {
      deployer: fake.tokenFor({ ...DEPLOYER, audiences: [AUDIENCE], expirationSeconds: 10 ** 8 }),
      stranger: fake.tokenFor({ ...DEPLOYER, serviceAccount: "stranger", audiences: [AUDIENCE] }),
      elsewhere: fake.tokenFor({ ...DEPLOYER, audiences: ["elsewhere"] }),
      broken: `eyJ.${CANARY}`,
      none: null,
    };
  }

  async step(): Promise<void> {
    await this.#disturb();
    const wish = this.#generator.next();
    const { method, target, headers, init } = this.#fill(wish);
    const before = this.#service.lines.length;
    const env = { incoming: { method, url: target, socket: new Socket() } };
    const response = await this.#service.send("https://service/", init, env);
    const text = await response.text();
    const lines = this.#service.lines.slice(before);
    const shown = `${method} ${target} ${wish.bearer} ${
      JSON.stringify(headers)
    } → ${response.status} ${text}`;
    this.#judgeAnswer(wish, response, text, shown);
    this.#judgeLog(lines, response.status, shown);
  }

  /** Insists that no series of the metrics holds a secret, or a name that a caller made up. */
  async judgeMetrics(): Promise<void> {
    const text = await this.#service.metrics.registry.metrics();
    this.#mustNotTell(text, "metrics");
    const groups = [...text.matchAll(/group="([^"]*)"/g)].map(([, group]) => group);
    for (const group of groups) assert.ok(group === "" || group === "orders", `${group}`);
    const methods = [...text.matchAll(/method="([^"]*)"/g)].map(([, method]) => method);
    for (const method of methods) {
      assert.match(method ?? "", /^(GET|POST|PUT|DELETE|HEAD|OPTIONS|PATCH|OTHER)$/);
    }
  }

  /** What an operator does, and time. */
  async #disturb(): Promise<void> {
    const service = this.#service;
    const generator = this.#generator;
    if (generator.chance(0.05)) await service.clock.advance(generator.chance(0.5) ? 1_000 : 20_000);
    if (generator.chance(0.01)) {
      const topologyGeneration = (storedGroup(service).status?.topologyGeneration ?? 0) + 1;
      setStatus(service, { topologyGeneration });
    }
    if (generator.chance(0.02)) annotate(service, REVOKE, generator.chance(0.1) ? "true" : null);
    if (generator.chance(0.04)) {
      setStatus(service, { updatePhase: generator.chance(0.2) ? "Failover" : "" });
    }
  }

  #fill(wish: Wish) {
    const known = this.#tokens.get(`${wish.kind} ${wish.operation}`) ?? [];
    const proof = {
      newest: known.at(-1),
      older: known.at(-2),
      wrong: this.#generator.secret(),
      none: undefined,
    }[wish.proof] ?? "";
    const headers = new Headers();
    const bearer = this.#bearers[wish.bearer];
    if (bearer !== null) headers.set("Authorization", `Bearer ${bearer}`);
    if (wish.method === "DELETE") headers.set("X-Lease-Token", proof);
    for (const [name, value] of wish.headers) headers.set(name, value);
    // The method of the request line decides; fetch itself refuses some of them.
    const init = {
      method: wish.method === "HEAD" ? "HEAD" : "POST",
      headers,
      body: wish.method === "HEAD" ? null : wish.body?.(proof) ?? null,
    };
    const { method, target } = wish;
    return { method, target, headers: wish.headers, init };
  }

  #judgeAnswer(wish: Wish, response: Response, text: string, shown: string): void {
    const { status, headers } = response;
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    assert.equal(headers.get("Content-Type"), "application/json", shown);
    assert.equal(headers.get("Cache-Control"), "no-store", shown);
    assert.equal(headers.has("Allow"), status === 405, shown);
    assert.equal(headers.has("X-Lease-Fence"), text.includes('"token":'), shown);
    const retries = status === 423 || text.includes('"held"');
    if (wish.method !== "HEAD") assert.equal(headers.has("Retry-After"), retries, shown);
    if (status === 204) return assert.equal(text, "", shown);
    const schema = documented.get(status);
    assert.ok(schema, shown);
    if (wish.method === "HEAD") return;
    assert.ok(text.endsWith("}\n"), shown);
    const body: unknown = JSON.parse(text);
    const found = schema.safeParse(body);
    assert.ok(found.success, shown);
    const grant = granted.safeParse(body);
    if (!grant.success) return this.#mustNotTell(text, shown);
    const { token, operationId } = grant.data;
    const key = `${grant.data.kind} ${operationId}`;
    this.#tokens.set(key, [...this.#tokens.get(key) ?? [], token].slice(-3));
    assert.ok(!this.#secrets.has(token), "a token is handed out once");
    this.#secrets.add(token).add(hashToken(token));
  }

  #judgeLog(lines: readonly string[], status: number, shown: string): void {
    assert.equal(lines.length, 1, `${shown}\n${lines.join("\n")}`);
    const [text = ""] = lines;
    this.#mustNotTell(text, shown);
    const found = line.safeParse(JSON.parse(text));
    assert.ok(found.success, `${shown}\n${text}`);
    assert.equal(found.data.status, status, shown);
  }

  #mustNotTell(text: string, shown: string): void {
    assert.ok(!text.includes(CANARY), `${shown}\n${text}`);
    for (const [secret] of text.matchAll(SECRET)) {
      assert.ok(!this.#secrets.has(secret) && !secret.startsWith("eyJ"), `${shown}\n${text}`);
    }
  }
}

Deno.test(`${REQUESTS} generated requests get documented answers, one log line each, and no secret is told`, async () => {
  using service = new InProcessService();
  const run = new Run(service);
  for (let index = 0; index < REQUESTS; index++) {
    await run.step();
    service.lines.length = 0;
    if (index % 1_000 === 0) await run.judgeMetrics();
  }
  await run.judgeMetrics();
  // A run that never saw an answer shows nothing about it.
  for (const status of [...documented.keys(), 204]) {
    assert.ok((run.statuses.get(status) ?? 0) > 0, `${status} was never seen`);
  }
});
