/**
 * The recipe of curl and jq: deploy-api 16.8 in a shell script, against the service as a process.
 */

import assert from "node:assert/strict";
import { setStatus } from "../service/orders.ts";
import { listenHttps } from "../../lib/testing/https_server.ts";
import { createAuthority } from "../../lib/testing/mod.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { livingOf, untilGone } from "../handlers/commands/run_process.ts";
import { end } from "../package/node_project.ts";
import { example, Program, type RecipeGroup, RecipePlace } from "./recipe_place.ts";

const { signal } = new AbortController();

const SCRIPT = example("curl/under-lease.sh");

/** Says which process group it is, and works for long. */
const WORK = 'echo "pid $$"; sleep 300';

async function missing(tool: string): Promise<boolean> {
  const { code } = await end("sh", ["-c", `command -v ${tool}`], ".");
  return code !== 0;
}

const lacking = (await Promise.all(["bash", "curl", "jq"].map(missing))).some(Boolean);

const test = (name: string, body: (place: RecipePlace) => Promise<void>) =>
  lacking ? Deno.test.ignore(name, () => {}) : clusterTest(name, async (cluster) => {
    await using place = await RecipePlace.open(cluster, "recipe-curl");
    await body(place);
  });

test("a command under both leases, signals, revocations and refusals: each with its exit code, and no lease is left behind", async (place) => {
  // They are side by side, each on a group of its own: most of the time they wait.
  await Promise.all([
    runsAndReleases(place),
    passesSignalsOn(place),
    stopsWhenRevoked(place),
    saysWhyNot(place),
  ]);
});

function start(
  { env }: RecipeGroup,
  script: string,
  more: Readonly<Record<string, string>> = {},
): Program {
  const quick = { HOLDFAST_TTL_SECONDS: "15", HOLDFAST_WAIT_SECONDS: "60" };
  return new Program([SCRIPT, "sh", "-c", script], { env: { ...env, ...quick, ...more } });
}

/** The leases are renewed beyond their ttl, and released; the exit code is the command's. */
async function runsAndReleases(place: RecipePlace): Promise<void> {
  const group = await place.group("curl-ok");
  const script = 'echo "$HOLDFAST_TOPOLOGY_GENERATION|$HOLDFAST_ACTIVE_SITE|$HOLDFAST_FENCE|' +
    '$HOLDFAST_OPERATION_ID"; test -f "$HOLDFAST_PHASE_FILE" || exit 9; sleep 17; exit 7';
  await using run = start(group, script);
  await run.said(/^7\|iad\|\d+\|[0-9a-f-]{36}$/m);
  assert.deepEqual(await place.held("curl-ok"), ["migration", "failover-hold"]);
  const { code, stderr } = await run.ended();
  assert.equal(code, 7, stderr);
  assert.deepEqual(
    await place.held("curl-ok"),
    [],
    "It was renewed beyond its ttl of 15 s, and released",
  );

  await using failing = start(group, 'echo ddl > "$HOLDFAST_PHASE_FILE"; exit 3');
  assert.equal((await failing.ended()).code, 3);
  assert.deepEqual(
    await place.held("curl-ok"),
    ["migration"],
    "Nobody builds on a schema that nobody has looked at",
  );
  const secret = await end("sh", ["-c", "ls /tmp/tmp.*/phase 2>/dev/null"], ".");
  assert.equal(secret.stdout, "", "No file is left behind");
}

/** 115 before DDL and 116 after; the command is gone with all its children. */
async function stopsWhenRevoked(place: RecipePlace): Promise<void> {
  const groups = [await place.group("curl-115"), await place.group("curl-116")] as const;
  await using before = start(groups[0], `${WORK} & sleep 300`);
  await using after = start(
    groups[1],
    `echo ddl > "$HOLDFAST_PHASE_FILE"; trap "" TERM; ${WORK}; sleep 300`,
  );
  const pids = [];
  for (const run of [before, after]) pids.push(Number((await run.said(/^pid (\d+)$/m))[1]));
  await place.failOver("curl-115", "curl-116");
  const [first, second] = await Promise.all([before.ended(), after.ended()]);
  assert.equal(first.code, 115, first.stderr);
  assert.match(first.stderr, /revoked \(topology_changed\): the command is stopped/);
  assert.equal(second.code, 116, second.stderr);
  assert.match(second.stderr, /verify the schema by hand/);
  for (const pid of pids) assert.deepEqual(await livingOf(pid), []);
}

test("a service that is away stops the command before its lease ends; before the grant it is 111, and nothing runs", async (place) => {
  const group = await place.group("curl-away");
  await using run = start(group, `trap "" TERM; ${WORK}; sleep 300`);
  const [, pid] = await run.said(/^pid (\d+)$/m);
  // It is tried for ten seconds.
  const elsewhere = { HOLDFAST_URL: "https://127.0.0.1:1", HOLDFAST_WAIT_SECONDS: "0" };
  await using never = start(group, "echo ran", elsewhere);
  place.caller.service.kill("SIGSTOP");
  const stoppedMs = performance.now();
  await untilGone(Number(pid), 25_000);
  assert.ok(
    performance.now() - stoppedMs < 15_000,
    "The own deadline is at most a ttl after the last sending",
  );
  place.caller.service.kill("SIGCONT");
  const { code, stderr } = await run.ended();
  assert.equal(code, 115, stderr);
  assert.match(stderr, /its deadline is near and no renewal succeeded/);

  const away = await never.ended();
  assert.deepEqual([away.code, away.stdout], [111, ""], away.stderr);
});

/** Held by another is 113, not stable 114, not allowed 112: with the reason, and nothing runs. */
async function saysWhyNot(place: RecipePlace): Promise<void> {
  const held = await place.group("curl-held");
  await using holder = start(held, WORK);
  await holder.said(/^pid/m);
  const stranger = { HOLDFAST_TOKEN_FILE: await place.strangersToken() };
  await using refusedOne = start(held, "echo ran", stranger);
  const forbidden = await refusedOne.ended();
  assert.deepEqual([forbidden.code, forbidden.stdout], [112, ""], forbidden.stderr);

  const short = { HOLDFAST_WAIT_SECONDS: "1" };
  const unstable = await place.group("curl-unstable");
  const { namespace } = place.caller;
  const name = { namespace, name: "curl-unstable" };
  await setStatus(place.cluster.adminApi, name, { updatePhase: "UpdateReplica" }, signal);
  await using second = start(held, "echo ran", short);
  await using third = start(unstable, "echo ran", short);
  const waited = await third.ended();
  assert.deepEqual([waited.code, waited.stdout], [114, ""], waited.stderr);
  assert.match(waited.stderr, /not stable: OrderedUpdate/);
  const refused = await second.ended();
  assert.deepEqual([refused.code, refused.stdout], [113, ""], refused.stderr);
  assert.match(refused.stderr, /held by operation [0-9a-f-]{36} until 20/);
}

/** The leases are released after the command has ended by itself. */
async function passesSignalsOn(place: RecipePlace): Promise<void> {
  const group = await place.group("curl-signal");
  await using run = start(
    group,
    'trap "echo asked; exit 42" TERM; echo ready; while :; do sleep 0.1; done',
  );
  await run.said(/^ready$/m);
  run.kill("SIGTERM");
  const { code, stdout } = await run.ended();
  assert.equal(code, 42);
  assert.match(stdout, /^asked$/m);
  assert.deepEqual(await place.held("curl-signal"), []);
}

Deno.test({
  name:
    "what the script sends: it looks before it asks, each renewal has ttlSeconds, 503 and 423 are no loss, and both leases are released",
  ignore: lacking,
  async fn() {
    const folder = await Deno.makeTempDir();
    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    const { certPem: cert, keyPem: key } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
    const sent: { line: string; body: Record<string, unknown>; token: string | null }[] = [];
    const refusals = [
      Response.json({ error: "not_leader" }, { status: 503 }),
      Response.json({ error: "unstable", reason: "TopologyPersistencePending" }, { status: 423 }),
    ];
    const server = await listenHttps(async (request) => {
      const { pathname } = new URL(request.url);
      const line = `${request.method} ${pathname.replace(/[0-9a-f-]{36}$/, "OPERATION")}`;
      assert.equal(request.headers.get("Authorization"), "Bearer bearer-token");
      const body: Record<string, unknown> = JSON.parse(await request.text() || "{}");
      sent.push({ line, body, token: request.headers.get("X-Lease-Token") });
      return answers(request.method, String(body.kind), refusals);
    }, { cert, key });
    try {
      await Deno.writeTextFile(`${folder}/ca.crt`, authority.caPem);
      await Deno.writeTextFile(`${folder}/token`, "bearer-token\n");
      await using run = start({
        group: "orders",
        env: {
          PATH: Deno.env.get("PATH") ?? "",
          HOLDFAST_URL: server.url,
          HOLDFAST_CA_FILE: `${folder}/ca.crt`,
          HOLDFAST_TOKEN_FILE: `${folder}/token`,
          HOLDFAST_GROUP: "orders",
          HOLDFAST_INSTANCE: "orders-app",
        },
      }, "sleep 11");
      const { code, stderr } = await run.ended();
      assert.equal(code, 0, stderr);
    } finally {
      await server.close();
      await Deno.remove(folder, { recursive: true });
    }
    const leases = "/deploy/v1/groups/orders/leases";
    const lines = sent.map(({ line }) => line);
    assert.deepEqual(lines.slice(0, 3), [
      "GET /deploy/v1/groups/orders",
      `POST ${leases}`,
      `POST ${leases}`,
    ]);
    assert.deepEqual(lines.slice(-2), [
      `DELETE ${leases}/failover-hold/OPERATION`,
      `DELETE ${leases}/migration/OPERATION`,
    ]);
    const renewals = sent.slice(3, -2);
    assert(renewals.length >= 4 && renewals.every(({ line }) => line.startsWith("PUT ")));
    for (const { body } of sent.slice(1, -2)) assert.equal(body.ttlSeconds, 15);
    for (const { line, body, token } of sent.slice(3)) {
      const own = line.includes("failover-hold") ? "token-of-failover-hold" : "token-of-migration";
      assert.equal(line.startsWith("PUT") ? body.token : token, own);
    }
  },
});

/** A service that grants, and first refuses to renew. */
function answers(method: string, kind: string, refusals: Response[]): Response {
  const topologyGeneration = 7;
  switch (method) {
    case "GET":
      return Response.json({ stable: true, activeSite: "iad", topologyGeneration });
    case "POST":
      return Response.json({ token: `token-of-${kind}`, topologyGeneration }, { status: 201 });
    case "PUT":
      return refusals.shift() ?? Response.json({ topologyGeneration });
    default:
      return new Response(null, { status: 204 });
  }
}

Deno.test({
  name: "bad settings end with one line and 2, a command that does not exist with 127",
  ignore: lacking,
  async fn() {
    const folder = await Deno.makeTempDir();
    try {
      await Deno.writeTextFile(`${folder}/ca.crt`, "-----BEGIN CERTIFICATE-----\n");
      await Deno.writeTextFile(`${folder}/token`, "t\n");
      const env = {
        PATH: Deno.env.get("PATH") ?? "",
        HOLDFAST_URL: "https://127.0.0.1:1",
        HOLDFAST_CA_FILE: `${folder}/ca.crt`,
        HOLDFAST_TOKEN_FILE: `${folder}/token`,
        HOLDFAST_GROUP: "orders",
        HOLDFAST_INSTANCE: "orders-app",
      };
      const table:
        readonly (readonly [Record<string, string>, readonly string[], number, RegExp])[] = [
          [{}, [], 2, /Usage/],
          [{ HOLDFAST_URL: "" }, ["true"], 2, /HOLDFAST_URL is not set/],
          [{ HOLDFAST_URL: "http://h" }, ["true"], 2, /must begin with https/],
          [{ HOLDFAST_GROUP: "Orders" }, ["true"], 2, /HOLDFAST_GROUP must be lower-case/],
          [{ HOLDFAST_INSTANCE: 'a","x":"' }, ["true"], 2, /HOLDFAST_INSTANCE must be/],
          [{ HOLDFAST_CA_FILE: `${folder}/token` }, ["true"], 2, /certificates in PEM form/],
          [{ HOLDFAST_TTL_SECONDS: "5" }, ["true"], 2, /from 8 to 120/],
          [{ HOLDFAST_TTL_SECONDS: "121" }, ["true"], 2, /from 8 to 120/],
          [{ HOLDFAST_WAIT_SECONDS: "-1" }, ["true"], 2, /HOLDFAST_WAIT_SECONDS/],
          [{ HOLDFAST_TOKEN_FILE: "/none" }, ["true"], 112, /token cannot be read/],
          [{}, ["no-such-command-here"], 127, /no such command: nothing was acquired/],
        ];
      for (const [change, args, code, text] of table) {
        const run = new Program([SCRIPT, ...args], { env: { ...env, ...change } });
        const ended = await run.ended();
        assert.equal(ended.code, code, ended.stderr);
        assert.match(ended.stderr, text);
        assert.equal(ended.stderr.trim().split("\n").length, 1);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

Deno.test({
  name: "ShellCheck finds nothing in the scripts of the recipes",
  ignore: await missing("shellcheck"),
  async fn() {
    const { code, stdout } = await end("shellcheck", ["--severity=style", SCRIPT], ".");
    assert.equal(code, 0, stdout);
  },
});
