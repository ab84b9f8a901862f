/**
 * The rows of deploy-api 13, in process: the shipped handler and the shipped escrow against an API server in memory.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  createEscrowApp,
  isEscrowTarget,
  MAX_AT_ONCE,
  named,
} from "../../../handlers/http/escrow.ts";
import { faultOf } from "../../../handlers/http/fault.ts";
import { createTlsApp } from "../../../handlers/http/tls_app.ts";
import { KeyringEscrow } from "../../../lib/escrow/escrow.ts";
import { escrowMetrics } from "../../../lib/escrow/metrics.ts";
import { keyringSecret, tokenSecretName } from "../../../lib/escrow/names.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../../lib/group/types.ts";
import { InFlight } from "../../../lib/host/in_flight.ts";
import { createLogger } from "../../../lib/host/log.ts";
import { createMetrics, HttpMetrics } from "../../../lib/host/metrics.ts";
import { HttpApi, staticToken } from "../../../lib/kube/mod.ts";
import { SECRETS } from "../../../lib/kube/resources.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../../lib/testing/mod.ts";
import {
  encryptedGroup,
  keyringOf,
  NAMESPACE,
  OTHER_TOKEN,
  seedEscrow,
  SITE,
  storedKeyrings,
  TOKEN,
  tokenSecret,
} from "../../escrow/support.ts";

const KIB = 1024;
const KEYRING = keyringOf("a keyring");
const DIGEST = `sha256:${createHash("sha256").update("a keyring").digest("hex")}`;
const BODY = { ...SITE, keyring: KEYRING };

/** What a request is sent with. Members that are left out are right. */
interface Wish {
  readonly body?: unknown;
  readonly raw?: BodyInit;
  readonly authorization?: string | null;
  readonly method?: string;
  readonly signal?: AbortSignal;
}

/** The escrow as a replica has it. */
class Replica implements Disposable {
  readonly clock = new TestClock();
  readonly fake = new FakeCluster({
    clock: this.clock,
    entropy: seededEntropy(1),
    namespaces: ["default", NAMESPACE],
  });
  readonly lines: string[] = [];
  readonly metrics = createMetrics({ clock: this.clock });
  hasClient = true;
  readonly #app;

  constructor() {
    const { clock, fake, metrics: { registry } } = this;
    seedEscrow(fake);
    const logger = createLogger({ write: (line) => this.lines.push(line), clock });
    const api = new HttpApi({
      baseUrl: "https://fake",
      fetch: fake.fetch,
      credentials: staticToken(fake.adminToken),
      clock,
      entropy: seededEntropy(2),
      defaultNamespace: NAMESPACE,
    });
    const escrow = new KeyringEscrow({
      api,
      onForbidden: (site, error) =>
        logger.warn("keyring escrow: token not readable", { ...named(site), ...faultOf(error) }),
      onLeftBehind: (site, error) =>
        logger.warn("keyring escrow: old version left", { ...named(site), ...faultOf(error) }),
    });
    const app = createEscrowApp({
      clock,
      logger,
      metrics: new HttpMetrics(registry),
      results: escrowMetrics(registry),
      requestTimeoutMs: 10_000,
      escrow: () => this.hasClient ? escrow : null,
    });
    this.#app = createTlsApp({ deploy: null, escrow: app, inFlight: new InFlight() });
  }

  async send(
    { body = BODY, raw, authorization = `Bearer ${TOKEN}`, method = "POST", signal }: Wish = {},
  ) {
    const request = new Request("https://service/keyring/escrow?namespace=other", {
      method,
      signal,
      ...(method === "GET" || method === "HEAD" ? {} : { body: raw ?? JSON.stringify(body) }),
      headers: authorization === null ? {} : { Authorization: authorization },
    });
    const response = await this.#app(request, {});
    assert.equal(response.headers.get("Content-Type"), "application/json");
    assert.equal(response.headers.get("Cache-Control"), "no-store");
    return { status: response.status, text: await response.text(), headers: response.headers };
  }

  async answers(wish: Wish, status: number, error: string): Promise<void> {
    const answer = await this.send(wish);
    assert.deepEqual([answer.status, answer.text], [
      status,
      `{"error":${JSON.stringify(error)}}\n`,
    ]);
  }

  logged(message: string): string[] {
    return this.lines.filter((line) => line.includes(`"msg":${JSON.stringify(message)}`));
  }

  async metric(series: string): Promise<number> {
    const text = await this.metrics.registry.metrics();
    const line = text.split("\n").find((found) => found.startsWith(`${series} `));
    return Number(line?.slice(series.length + 1) ?? 0);
  }

  [Symbol.dispose](): void {
    this.metrics[Symbol.dispose]();
    // Whatever a test did: no secret is in the log.
    for (const line of this.lines) {
      for (const secret of [TOKEN, OTHER_TOKEN, KEYRING, DIGEST.slice(7)]) {
        assert(!line.includes(secret), line);
      }
    }
  }
}

Deno.test("a keyring becomes version 1, and the answer says version, digest and Secret", async () => {
  using replica = new Replica();
  const { status, text } = await replica.send();
  assert.equal(status, 200);
  const secret = "mysql-orders-iad-keyring-v1";
  assert.equal(text, `{"version":1,"digest":"${DIGEST}","secret":"${secret}"}\n`);
  const stored = replica.fake.read(SECRETS, { namespace: NAMESPACE, name: secret });
  const group = replica.fake.read(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "orders" });
  const groupUid = group?.metadata.uid ?? "";
  const wish = keyringSecret({
    site: SITE,
    groupUid,
    version: 1,
    keyring: KEYRING,
    digest: DIGEST,
  });
  assert.equal(stored?.immutable, true);
  assert.equal(stored?.type, "Opaque");
  assert.deepEqual(stored?.data, { keyring: KEYRING });
  assert.deepEqual(stored?.metadata.labels, wish.metadata.labels);
  assert.deepEqual(stored?.metadata.annotations, { "shipstream.io/keyring-digest": DIGEST });
  assert.deepEqual(stored?.metadata.ownerReferences, wish.metadata.ownerReferences);
  assert.equal(replica.logged("keyring escrowed").length, 1);
  assert.equal(await replica.metric('holdfast_keyring_escrow_requests_total{result="stored"}'), 1);
});

for (const method of ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
  Deno.test(`${method} is 405 without Allow, before anything is read`, async () => {
    using replica = new Replica();
    replica.hasClient = false;
    const { status, text, headers } = await replica.send({ method, authorization: null });
    assert.deepEqual([status, text, headers.get("Allow")], [
      405,
      '{"error":"POST required"}\n',
      null,
    ]);
  });
}

Deno.test("without a client of the cluster the answer is 503, before the body is read", async () => {
  using replica = new Replica();
  replica.hasClient = false;
  const { status, headers } = await replica.send({
    raw: "x".repeat(300 * KIB),
    authorization: null,
  });
  assert.deepEqual([status, headers.get("Retry-After")], [503, "1"]);
});

Deno.test("a body of 256 KiB is read, and one byte more is 413, also when it is white space", async () => {
  using replica = new Replica();
  const text = JSON.stringify(BODY);
  const raw = text + " ".repeat(256 * KIB - text.length);
  assert.equal((await replica.send({ raw })).status, 200);
  await replica.answers({ raw: `${raw} ` }, 413, "keyring payload too large");
  await replica.answers({ raw: `${raw} `, authorization: null }, 413, "keyring payload too large");
});

Deno.test("the largest keyring that fits into a body is stored", async () => {
  using replica = new Replica();
  const room = 256 * KIB - JSON.stringify({ ...BODY, keyring: "" }).length;
  const keyring = keyringOf("k".repeat(Math.floor(room / 4) * 3));
  assert.equal((await replica.send({ body: { ...BODY, keyring } })).status, 200);
  assert.equal(storedKeyrings(replica.fake)["mysql-orders-iad-keyring-v1"], keyring);
});

Deno.test("a body whose stream breaks is 400", async () => {
  using replica = new Replica();
  const raw = new ReadableStream({ pull: (controller) => controller.error(new Error("gone")) });
  await replica.answers({ raw }, 400, "cannot read request body");
});

for (const raw of ["", "{", "[]", "7", '"x"', '{"group":7}', '{"keyring":["x"]}', "{} {}"]) {
  Deno.test(`a body that is ${raw || "empty"} is malformed`, async () => {
    using replica = new Replica();
    await replica.answers({ raw, authorization: null }, 400, "malformed JSON body");
  });
}

for (const name of ["namespace", "group", "site", "keyring"]) {
  Deno.test(`${name} is required: it may not be left out, empty or null`, async () => {
    using replica = new Replica();
    const text = "namespace, group, site, and keyring are required";
    for (const value of [undefined, "", null]) {
      await replica.answers({ body: { ...BODY, [name]: value }, authorization: null }, 400, text);
    }
    await replica.answers({ raw: "null", authorization: null }, 400, text);
  });
}

Deno.test("unknown members are allowed", async () => {
  using replica = new Replica();
  assert.equal((await replica.send({ body: { ...BODY, component: "keyring_file" } })).status, 200);
});

for (const authorization of [null, "Bearer", "Bearer  ", `Basic ${TOKEN}`, TOKEN]) {
  Deno.test(`Authorization ${authorization?.slice(0, 8) ?? "left out"} is 401, before a Secret is read`, async () => {
    using replica = new Replica();
    await replica.answers({ authorization }, 401, "bearer token required");
    assert.equal(replica.fake.calls.total, 0);
  });
}

Deno.test("the scheme may be in any case, and space around the token counts for nothing", async () => {
  using replica = new Replica();
  for (const authorization of [`bearer ${TOKEN}`, `BEARER   ${TOKEN} `]) {
    assert.equal((await replica.send({ authorization })).status, 200);
  }
});

const strangers: readonly (readonly [string, Wish])[] = [
  ["a wrong token", { authorization: `Bearer ${"0".repeat(64)}` }],
  ["the token of the other site", { authorization: `Bearer ${OTHER_TOKEN}` }],
  ["a token that lacks its end", { authorization: `Bearer ${TOKEN.slice(0, 63)}` }],
  ["an unknown site", { body: { ...BODY, site: "fra" } }],
  ["an unknown group", { body: { ...BODY, group: "unknown" } }],
  ["an unknown namespace", { body: { ...BODY, namespace: "unknown" } }],
  ["names that are paths", { body: { ...BODY, namespace: "../..", group: "x/y" } }],
  ["a group of 300 KiB in small letters", { body: { ...BODY, group: "g".repeat(100 * KIB) } }],
  ["a keyring that is none", { authorization: "Bearer wrong", body: { ...BODY, keyring: "?" } }],
];

Deno.test("no oracle: whatever is wrong with token, site or group, the answer has the same bytes", async () => {
  using replica = new Replica();
  const answers = new Set<string>();
  for (const [, wish] of strangers) {
    const { status, text, headers } = await replica.send(wish);
    answers.add(JSON.stringify([status, text, [...headers]]));
  }
  assert.deepEqual([...answers].map((text) => JSON.parse(text).slice(0, 2)), [
    [403, '{"error":"escrow token rejected"}\n'],
  ]);
  assert.equal(replica.logged("keyring escrow rejected").length, strangers.length);
  assert(replica.lines.every((line) => line.length < 500), "no line is as long as a caller wishes");
});

Deno.test("no oracle: a wrong token, a wrong site and an unknown group cost the same one call", async () => {
  using replica = new Replica();
  for (const [, wish] of strangers.slice(0, 6)) {
    replica.fake.calls.reset();
    await replica.send(wish);
    const calls = replica.fake.calls.entries.map(({ verb, resource }) => `${verb} ${resource}`);
    assert.deepEqual(calls, ["get secrets"]);
  }
});

Deno.test("a namespace that the role does not cover is as unknown as any other, and the log says why", async () => {
  using replica = new Replica();
  replica.fake.faults.add({ resource: "secrets", fault: { type: "status", code: 403 } });
  await replica.answers({}, 403, "escrow token rejected");
  const [line] = replica.logged("keyring escrow: token not readable");
  assert.match(line ?? "", /"fault":"ForbiddenError","call":"get secrets"/);
});

Deno.test("a Secret without a usable token lets nobody in, also not with what it holds", async () => {
  using replica = new Replica();
  for (const token of ["", "short", `${TOKEN}${TOKEN}`]) {
    replica.fake.seed(SECRETS, tokenSecret(SITE, token));
    const authorization = `Bearer ${token || "x"}`;
    await replica.answers({ authorization }, 403, "escrow token rejected");
  }
});

Deno.test("a token whose name two sites share counts for the one that its Secret names", async () => {
  using replica = new Replica();
  const shared = { ...SITE, group: "orders-iad", site: "b" };
  const other = { ...SITE, group: "orders", site: "iad-b" };
  const secret = tokenSecret(shared, TOKEN);
  const labels = { "shipstream.io/failover-group": "orders-iad", "shipstream.io/site": "b" };
  replica.fake.seed(SECRETS, { ...secret, metadata: { ...secret.metadata, labels } });
  await replica.answers({ body: { ...BODY, ...other } }, 403, "escrow token rejected");
  await replica.answers({ body: { ...BODY, ...shared } }, 404, "failover group not found");
});

for (
  const [keyring, error] of [
    ["?", "keyring is not valid base64"],
    ["YQ", "keyring is not valid base64"],
    ["\n", "keyring is empty"],
  ] as const
) {
  Deno.test(`a keyring ${JSON.stringify(keyring)}: ${error}, told only to who has the token`, async () => {
    using replica = new Replica();
    await replica.answers({ body: { ...BODY, keyring } }, 400, error);
  });
}

Deno.test("a digest that does not match is refused and logged; one that matches may be written in two ways", async () => {
  using replica = new Replica();
  const wrong = `sha256:${"0".repeat(64)}`;
  await replica.answers({ body: { ...BODY, digest: wrong } }, 400, "digest does not match payload");
  assert.equal(replica.logged("keyring escrow digest mismatch").length, 1);
  for (const digest of [DIGEST, DIGEST.slice(7), ""]) {
    assert.equal((await replica.send({ body: { ...BODY, digest } })).status, 200);
  }
});

Deno.test("the checks of keyring and digest come before the group is read", async () => {
  using replica = new Replica();
  const gone = { ...BODY, group: "gone", keyring: "?" };
  await replica.answers({ body: gone }, 400, "keyring is not valid base64");
  await replica.answers({ body: { ...gone, keyring: KEYRING } }, 404, "failover group not found");
});

Deno.test("with the right token: a group without encryption is 409, before its sites are looked at", async () => {
  using replica = new Replica();
  const text = "encryption at rest is not enabled for this group";
  await replica.answers({ body: { ...BODY, group: "plain" } }, 409, text);
  replica.fake.seed(SECRETS, tokenSecret({ ...SITE, group: "plain", site: "old" }, TOKEN));
  await replica.answers({ body: { ...BODY, group: "plain", site: "old" } }, 409, text);
});

Deno.test("with the right token: a site that is not in the group is 404", async () => {
  using replica = new Replica();
  await replica.answers(
    { body: { ...BODY, site: "old" } },
    404,
    "site not found in failover group",
  );
});

Deno.test("a group whose status lacks everything, or cannot be read, takes keyrings all the same", async () => {
  using replica = new Replica();
  const group = replica.fake.read(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "orders" });
  const { metadata, spec } = group ?? encryptedGroup(NAMESPACE);
  replica.fake.seed(MYSQL_FAILOVER_GROUPS, { metadata, spec });
  assert.equal((await replica.send()).status, 200);
});

Deno.test("the keyring of the newest version is stored already, and an older one becomes a new version", async () => {
  using replica = new Replica();
  const push = async (text: string) =>
    JSON.parse((await replica.send({ body: { ...BODY, keyring: keyringOf(text) } })).text).version;
  assert.deepEqual([await push("a"), await push("a"), await push("b"), await push("a")], [
    1,
    1,
    2,
    3,
  ]);
  assert.equal(
    await replica.metric('holdfast_keyring_escrow_requests_total{result="unchanged"}'),
    1,
  );
});

Deno.test("five versions are kept, of each site its own", async () => {
  using replica = new Replica();
  const pdx = { body: { ...BODY, site: "pdx" }, authorization: `Bearer ${OTHER_TOKEN}` };
  assert.equal((await replica.send(pdx)).status, 200);
  for (let version = 1; version <= 8; version++) {
    const keyring = keyringOf(`keyring ${version}`);
    assert.equal((await replica.send({ body: { ...BODY, keyring } })).status, 200);
  }
  assert.deepEqual(Object.keys(storedKeyrings(replica.fake)).toSorted(), [
    ...[4, 5, 6, 7, 8].map((version) => `mysql-orders-iad-keyring-v${version}`),
    "mysql-orders-pdx-keyring-v1",
  ]);
});

Deno.test("versions of a group of the same name that is gone are neither believed, counted nor removed", async () => {
  using replica = new Replica();
  for (let version = 1; version <= 6; version++) {
    const parts = {
      site: SITE,
      groupUid: "the-uid-before",
      version,
      keyring: KEYRING,
      digest: DIGEST,
    };
    replica.fake.seed(SECRETS, keyringSecret(parts));
  }
  assert.equal(JSON.parse((await replica.send()).text).version, 7);
  assert.equal(Object.keys(storedKeyrings(replica.fake)).length, 7);
});

Deno.test("a number whose Secret lost its labels is passed over", async () => {
  using replica = new Replica();
  const name = "mysql-orders-iad-keyring-v1";
  replica.fake.seed(SECRETS, {
    metadata: { namespace: NAMESPACE, name },
    data: { keyring: "eA==" },
  });
  assert.equal(JSON.parse((await replica.send()).text).version, 2);
});

Deno.test("a create whose answer is lost is found, and stored once", async () => {
  using replica = new Replica();
  replica.fake.faults.add({
    verb: "create",
    resource: "secrets",
    count: 1,
    fault: { type: "lost-answer", as: "reset" },
  });
  assert.equal(JSON.parse((await replica.send()).text).version, 1);
  assert.equal(Object.keys(storedKeyrings(replica.fake)).length, 1);
});

for (
  const [what, fault] of [
    ["a create that a busy API server refuses", { type: "status", code: 503 }],
    ["a create that conflicts", { type: "status", code: 409 }],
    ["a create whose connection breaks", { type: "reset" }],
  ] as const
) {
  Deno.test(`${what} is tried again, and the keyring is stored`, async () => {
    using replica = new Replica();
    replica.fake.faults.add({ verb: "create", resource: "secrets", count: 1, fault });
    assert.equal((await replica.send()).status, 200);
    assert.deepEqual(Object.values(storedKeyrings(replica.fake)), [KEYRING]);
  });
}

for (
  const [what, rule, error] of [
    ["the token", { verb: "get", resource: "secrets" }, "internal error"],
    ["the group", { verb: "get", resource: "mysqlfailovergroups" }, "internal error"],
    ["the versions", { verb: "list", resource: "secrets" }, "could not store keyring"],
    ["the new version", { verb: "create", resource: "secrets" }, "could not store keyring"],
  ] as const
) {
  Deno.test(`an API server that does not serve ${what} is 500, without a word of it`, async () => {
    using replica = new Replica();
    replica.fake.faults.add({ ...rule, fault: { type: "status", code: 500 } });
    await replica.answers({}, 500, error);
    const line = error === "internal error"
      ? "keyring escrow: internal error"
      : "keyring escrow: store failed";
    const [logged] = replica.logged(line);
    assert.match(logged ?? "", /"level":"ERROR".*"fault":"\w+"/);
    assert.equal(
      await replica.metric('holdfast_keyring_escrow_requests_total{result="failed"}'),
      1,
    );
  });
}

Deno.test("a push ends after its time, with its write stored: the next one finds it", async () => {
  using replica = new Replica();
  const hang = replica.fake.faults.add({
    verb: "create",
    resource: "secrets",
    fault: { type: "lost-answer", as: "hang" },
  });
  const answer = replica.send();
  await replica.clock.advance(10_000);
  assert.equal((await answer).status, 500);
  hang.remove();
  assert.equal(JSON.parse((await replica.send()).text).version, 1);
});

for (const verb of ["list", "create"]) {
  Deno.test(`a push ends with its client while it waits for a ${verb}, so that it cannot come after the next one`, async () => {
    using replica = new Replica();
    const slow = replica.fake.faults.add({ verb, resource: "secrets", fault: { type: "hang" } });
    const client = new AbortController();
    const answer = replica.send({ signal: client.signal });
    while (slow.hits === 0) await replica.clock.advance(0);
    client.abort("Client connection prematurely closed.");
    assert.equal((await answer).status, 500);
    assert.match(replica.logged("keyring escrow: store failed")[0] ?? "", /"ClientGoneError"/);
    slow.remove();
    const next = await replica.send({ body: { ...BODY, keyring: keyringOf("the next") } });
    assert.equal(JSON.parse(next.text).version, 1);
    assert.deepEqual(Object.values(storedKeyrings(replica.fake)), [keyringOf("the next")]);
  });
}

Deno.test("a group that is made anew while a keyring is stored gets it as its own", async () => {
  using replica = new Replica();
  const name = { namespace: NAMESPACE, name: "orders" };
  const slow = replica.fake.faults.add({
    verb: "create",
    resource: "secrets",
    count: 1,
    fault: { type: "latency", ms: 100 },
  });
  const answer = replica.send();
  while (slow.hits === 0) await replica.clock.advance(0);
  replica.fake.remove(MYSQL_FAILOVER_GROUPS, name);
  replica.fake.seed(MYSQL_FAILOVER_GROUPS, encryptedGroup(NAMESPACE));
  await replica.clock.advance(100);
  assert.equal(JSON.parse((await answer).text).version, 2);
  const secret = replica.fake.read(SECRETS, { ...name, name: "mysql-orders-iad-keyring-v2" });
  const group = replica.fake.read(MYSQL_FAILOVER_GROUPS, name);
  assert.equal(secret?.metadata.ownerReferences?.[0]?.uid, group?.metadata.uid);
});

Deno.test("an old version that cannot be removed costs no keyring, and goes with the next one", async () => {
  using replica = new Replica();
  const push = (text: string) => replica.send({ body: { ...BODY, keyring: keyringOf(text) } });
  for (const text of ["a", "b", "c", "d", "e"]) await push(text);
  const forbidden = replica.fake.faults.add({
    verb: "delete",
    resource: "secrets",
    fault: { type: "status", code: 403 },
  });
  assert.equal((await push("f")).status, 200);
  assert.equal(replica.logged("keyring escrow: old version left").length, 1);
  assert.equal(Object.keys(storedKeyrings(replica.fake)).length, 6);
  forbidden.remove();
  assert.equal((await push("f")).status, 200);
  assert.equal(Object.keys(storedKeyrings(replica.fake)).length, 5);
});

Deno.test("the memory of bodies is bounded: too many requests at once are 503", async () => {
  using replica = new Replica();
  const bodies = Array.from({ length: MAX_AT_ONCE }, () => Promise.withResolvers<void>());
  const waiting = bodies.map(({ promise }) =>
    replica.send({
      raw: new ReadableStream({
        async pull(controller) {
          await promise;
          controller.close();
        },
      }),
    })
  );
  assert.equal((await replica.send()).status, 503);
  for (const body of bodies) body.resolve();
  for (const answer of await Promise.all(waiting)) assert.equal(answer.status, 400);
  assert.equal((await replica.send()).status, 200);
});

Deno.test("each request is one 'aux http' line and one count of the handler keyring-escrow", async () => {
  using replica = new Replica();
  await replica.send();
  const [line, ...more] = replica.logged("aux http");
  assert.deepEqual(more, []);
  const { time: _, ...fields } = JSON.parse(line ?? "{}");
  assert.deepEqual(Object.entries(fields).map(([name]) => name), [
    "level",
    "msg",
    "method",
    "path",
    "handler",
    "status",
    "duration_ms",
    "remote",
  ]);
  assert.equal(fields.path, "/keyring/escrow");
  const series =
    'bloodraven_http_requests_total{server="aux",handler="keyring-escrow",method="POST",status="2xx"}';
  assert.equal(await replica.metric(series), 1);
});

Deno.test("only the one path is the escrow's", () => {
  for (const target of ["/keyring/escrow", "/keyring/escrow?x=y"]) assert(isEscrowTarget(target));
  for (
    const target of ["/keyring/escrow/", "/keyring", "/keyring/escrow/x", "/keyring%2Fescrow", "/x"]
  ) assert(!isEscrowTarget(target));
  assert.equal(tokenSecretName(SITE), "mysql-orders-iad-keyring-token");
});

Deno.test("a fault that is no error, and names that are none, are told as nothing", () => {
  assert.deepEqual(faultOf("x"), { fault: "unknown", call: "" });
  assert.deepEqual(named({ namespace: "A", group: "b c", site: "iad" }), {
    namespace: "",
    group: "",
    site: "iad",
  });
});
