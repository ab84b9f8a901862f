import assert from "node:assert/strict";
import fc from "fast-check";
import type { CallerFacts, HandshakeFacts, TokenFacts } from "../../lib/doctor/caller_facts.ts";
import { callerFindings } from "../../lib/doctor/caller_rules.ts";
import type { Verdict } from "../../lib/doctor/finding.ts";
import { maySend } from "../../lib/doctor/token_rules.ts";
import { answered, found, healthyCaller, NOW } from "./facts.ts";

const DAY = 24 * 3_600_000;
const CHECKS = callerFindings(healthyCaller).map(({ check }) => check);

/** Facts, a check, and what it must say. */
type Row = readonly [Partial<CallerFacts>, string, Verdict, RegExp, RegExp?];

function hold(rows: readonly Row[]): void {
  for (const [change, check, verdict, says, todo = /^/] of rows) {
    const finding = found(callerFindings({ ...healthyCaller, ...change }), check);
    assert.equal(finding.verdict, verdict, JSON.stringify(finding));
    assert.match(finding.says, says);
    assert.match(finding.todo, todo);
    assert.equal(finding.todo === "", verdict === "ok", "Whoever finds fault says what to do");
  }
}

Deno.test("a healthy client has nothing wrong, and what cannot be seen is said", () => {
  const findings = callerFindings(healthyCaller);
  const others = findings.filter(({ verdict }) => verdict !== "ok").map(({ check }) => check);
  assert.deepEqual(others, ["sidecar-trust", "database"]);
  for (const { says } of findings) assert.doesNotMatch(says, /\.$/);
});

const settings = (change: Partial<CallerFacts["settings"]>): Partial<CallerFacts> => ({
  settings: { ...healthyCaller.settings, ...change },
});

Deno.test("settings: a URL, a group, an authority and a database that cannot be used", () => {
  hold([
    [settings({ url: "" }), "url", "wrong", /is not set/, /HOLDFAST_URL/],
    [settings({ url: "nonsense" }), "url", "wrong", /is no URL/],
    [settings({ url: "http://h" }), "url", "wrong", /does not begin with https/],
    [settings({ url: "https://me:secret-word@h" }), "url", "wrong", /user or a password/],
    [settings({ url: "https://h?a=b" }), "url", "wrong", /query/],
    [settings({ group: "" }), "group-name", "wrong", /not set/, /HOLDFAST_GROUP/],
    [settings({ group: "Orders" }), "group-name", "wrong", /'Orders' cannot be/, /lower-case/],
    [settings({ instance: "" }), "database", "warning", /not set/, /HOLDFAST_INSTANCE/],
    [settings({ instance: "No_Name" }), "database", "wrong", /'No_Name' cannot be/],
    [{ authority: { type: "platform" } }, "authority", "ok", /authorities of the platform/],
    [{ authority: { type: "unreadable" } }, "authority", "wrong", /Cannot read .*'\/ca.crt'/],
    [{ authority: { type: "no_certificate" } }, "authority", "wrong", /holds no certificate/],
    [
      { authority: { type: "read", certificates: [{ ...certificate, notAfterMs: NOW - 1 }] } },
      "authority",
      "wrong",
      /has expired/,
    ],
  ]);
});

Deno.test("the way: a name, a connection, TLS that fail, and the checks behind them wait", () => {
  const untried = { handshake: { type: "not_tried" }, look: { type: "not_tried" } } as const;
  hold([
    [{ name: { type: "failed", code: "ENOTFOUND" } }, "name", "wrong", /\(ENOTFOUND\)/],
    [{ name: { type: "not_tried" } }, "name", "unseen", /not looked at/],
    [
      { connection: { type: "failed", code: "ECONNREFUSED" } },
      "connection",
      "wrong",
      /Cannot connect .*\(ECONNREFUSED\)/,
      /NetworkPolicy/,
    ],
    [{ handshake: { type: "failed", code: "" } }, "tls", "wrong", /does not speak TLS$/, /8443/],
    ...["tls", "certificate-name", "certificate-issuer", "certificate-expiry", "certificate"].map(
      (check): Row => [untried, check, "unseen", /was not looked at/, /Put right first/],
    ),
    ...["service", "leader", "authorization", "group", "database", "clock"].map(
      (check): Row => [untried, check, "unseen", /was not looked at/],
    ),
  ]);
});

const certificate = {
  names: ["other.svc"],
  subject: "service",
  issuer: "stranger",
  notBeforeMs: NOW - DAY,
  notAfterMs: NOW + 30 * DAY,
};

function handshake(
  change: Partial<Extract<HandshakeFacts, { type: "done" }>>,
): Partial<CallerFacts> {
  assert(healthyCaller.handshake.type === "done");
  return { handshake: { ...healthyCaller.handshake, ...change } };
}

Deno.test("the certificate: its name, its issuer, its time, and the last word of the platform", () => {
  const expired = { ...certificate, notAfterMs: NOW - 90_000 };
  const soon = { ...certificate, notAfterMs: NOW + 2 * DAY };
  const early = { ...certificate, notBeforeMs: NOW + 1 };
  hold([
    [
      handshake({ certificate, isForHost: false }),
      "certificate-name",
      "wrong",
      /for 'other.svc', and not for 'bloodraven.bloodraven.svc'/,
    ],
    [
      handshake({ certificate: { ...certificate, names: [] }, isForHost: false }),
      "certificate-name",
      "wrong",
      /for no name/,
    ],
    [
      handshake({ certificate, isTrusted: false }),
      "certificate-issuer",
      "wrong",
      /'stranger' signed.*'\/ca.crt'/,
    ],
    [
      { ...settings({ caFile: "" }), ...handshake({ certificate, isTrusted: false }) },
      "certificate-issuer",
      "wrong",
      /the platform does not trust it/,
    ],
    [handshake({ certificate, isTrusted: null }), "certificate-issuer", "unseen", /cannot be told/],
    [handshake({ certificate: expired }), "certificate-expiry", "wrong", /expired 1m 30s ago/],
    [handshake({ certificate: soon }), "certificate-expiry", "warning", /valid for 2d more/],
    [handshake({ certificate: early }), "certificate-expiry", "wrong", /not valid yet/, /clock/],
    [
      handshake({ refusal: "KEY_TOO_SMALL" }),
      "certificate",
      "wrong",
      /refuses .*\(KEY_TOO_SMALL\)/,
    ],
    [handshake({ refusal: "X", isForHost: false }), "certificate", "unseen", /not looked at/],
  ]);
});

const token = (claims: Extract<TokenFacts, { type: "read" }>["claims"]): Partial<CallerFacts> => ({
  token: { type: "read", claims },
});
const ours = { aud: ["bloodraven-deploy"], exp: NOW / 1_000 + 3_000 };

Deno.test("the token: unreadable, no JWT, the API server's own, another audience, expired", () => {
  const api = "https://kubernetes.default.svc.cluster.local";
  hold([
    [
      { token: { type: "unreadable" } },
      "token",
      "wrong",
      /Cannot read .*'\/token'/,
      /Mount a projected/,
    ],
    [{ token: { type: "unusable" } }, "token", "wrong", /holds no token/],
    [token(null), "token", "wrong", /no service account token \(JWT\)/],
    [token(null), "token-audience", "unseen", /not looked at/],
    [token({ ...ours, aud: [api] }), "token-audience", "wrong", /API server's own/, /was not sent/],
    [token({ ...ours, aud: ["k8s"] }), "token-audience", "wrong", /API server's own/],
    [token({ exp: ours.exp }), "token-audience", "wrong", /API server's own/],
    [
      {
        ...settings({ tokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token" }),
        ...token({ ...ours, aud: ["x"] }),
      },
      "token-audience",
      "wrong",
      /API server's own/,
    ],
    [
      token({ ...ours, aud: ["vault", "x"] }),
      "token-audience",
      "wrong",
      /for the audience 'vault', 'x', and not for 'bloodraven-deploy'/,
      /deploy_api.audience/,
    ],
    [
      token({ ...ours, aud: ["bloodraven-deploy", api] }),
      "token-audience",
      "warning",
      /and for the API server too/,
    ],
    [
      token({ ...ours, exp: NOW / 1_000 - 5 }),
      "token-expiry",
      "wrong",
      /expired 5s ago/,
      /subPath/,
    ],
    [token({ ...ours, exp: NOW / 1_000 + 30 }), "token-expiry", "warning", /valid for 30s more/],
    [token({ aud: ours.aud }), "token-expiry", "warning", /has no end/],
  ]);
});

Deno.test("the answer: 403, 404, 401, 423, no leader, not available, and something else are told apart", () => {
  const retry = { retryAfterMs: 0 };
  const rows: readonly Row[] = [
    [answered({ type: "forbidden" }), "authorization", "wrong", /\(403\)/, /deploymentClients/],
    [
      answered({ type: "unauthorized" }),
      "authorization",
      "wrong",
      /\(401\)/,
      /'bloodraven-deploy'/,
    ],
    [
      answered({ type: "not_found" }),
      "authorization",
      "wrong",
      /no group 'orders'.*\(404\)/,
      /deploy_api.enabled/,
    ],
    [
      answered({ type: "unstable", reason: "NoPrimary", ...retry }),
      "group",
      "warning",
      /NoPrimary/,
    ],
    [
      answered({ type: "unstable", reason: "NoPrimary", ...retry }),
      "authorization",
      "ok",
      /may look/,
    ],
    [answered({ type: "not_leader", ...retry }), "leader", "wrong", /503 not_leader/],
    [answered({ type: "not_leader", ...retry }), "authorization", "unseen", /not looked at/],
    [answered({ type: "unavailable", ...retry }), "service", "wrong", /503 unavailable/],
    [
      answered({ type: "no_answer", why: "timeout", code: "" }),
      "service",
      "wrong",
      /no answer in time/,
    ],
    [
      answered({ type: "no_answer", why: "connection", code: "ECONNRESET" }),
      "service",
      "wrong",
      /ECONNRESET/,
    ],
    [
      answered({ type: "unexpected", status: 302 }),
      "service",
      "wrong",
      /not the deployment API \(status 302\)/,
    ],
    [answered({ type: "token_mismatch" }), "service", "wrong", /not the deployment API$/],
  ];
  hold(rows.filter(([, , verdict]) => verdict !== "ok"));
  hold(rows);
  assert(healthyCaller.look.type === "done" && healthyCaller.look.answer.type === "success");
  const { body } = healthyCaller.look.answer;
  const unstable = { ...body, stable: false, unstableReason: "UpdatingReplicas" };
  hold([[
    answered({ type: "success", status: 200, fence: "", dateMs: null, body: unstable }),
    "group",
    "warning",
    /UpdatingReplicas/,
    /holdfast status/,
  ]]);
});

function clock(offMs: number): Partial<CallerFacts> {
  assert(healthyCaller.look.type === "done");
  return { look: { ...healthyCaller.look, sentMs: NOW + offMs, receivedMs: NOW + offMs + 20 } };
}

function withoutDate(): Partial<CallerFacts> {
  assert(healthyCaller.look.type === "done");
  return { look: { ...healthyCaller.look, serverDateMs: null } };
}

Deno.test("the clock: the second of the Date header is no difference, and both directions are seen", () => {
  hold([
    [clock(0), "clock", "ok", /agrees/],
    [clock(1_900), "clock", "ok", /agrees/],
    [clock(-1_000), "clock", "ok", /agrees/],
    [clock(5_000), "clock", "warning", /at least 4s ahead of/, /expiresAt/],
    [clock(-5_000), "clock", "warning", /at least 4s behind/],
    [clock(120_000), "clock", "wrong", /1m 59s ahead of/, /Set it/],
    [clock(-120_000), "clock", "wrong", /behind/],
    [withoutDate(), "clock", "unseen", /not looked at/],
  ]);
});

const step = fc.oneof(
  fc.constant({ type: "not_tried" } as const),
  fc.constant({ type: "done" } as const),
  fc.string().map((code) => ({ type: "failed", code } as const)),
);
const anyFacts: fc.Arbitrary<CallerFacts> = fc.record({
  settings: fc.record({
    url: fc.oneof(fc.string(), fc.webUrl(), fc.constant(healthyCaller.settings.url)),
    group: fc.string(),
    instance: fc.string(),
    caFile: fc.string(),
    tokenFile: fc.string(),
    audience: fc.string(),
  }),
  nowMs: fc.constant(NOW),
  authority: fc.constantFrom(
    healthyCaller.authority,
    { type: "platform" } as const,
    {
      type: "unreadable",
    } as const,
  ),
  token: fc.oneof(
    fc.constant({ type: "unreadable" } as const),
    fc.record({ aud: fc.array(fc.string()), exp: fc.double({ noNaN: true }), sub: fc.string() })
      .map((claims) => ({ type: "read", claims } as const)),
  ),
  name: step,
  connection: step,
  handshake: fc.constantFrom<HandshakeFacts>(healthyCaller.handshake, { type: "not_tried" }),
  look: fc.constantFrom(healthyCaller.look, { type: "not_tried" } as const),
});

Deno.test("whatever is so, each check is there once, in one order, in lines that a terminal only shows", () => {
  fc.assert(fc.property(anyFacts, (facts) => {
    const findings = callerFindings(facts);
    assert.deepEqual(findings.map(({ check }) => check), CHECKS);
    for (const { says, todo } of findings) {
      assert.doesNotMatch(says + todo, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }
  }));
});

Deno.test("a token that does not say that it is for the service is never sent", () => {
  fc.assert(fc.property(anyFacts, (facts) => {
    if (!maySend(facts)) return;
    assert(facts.token.type === "read");
    assert(facts.token.claims?.aud?.includes(facts.settings.audience));
  }));
  assert(maySend(healthyCaller));
  const { settings: given } = healthyCaller;
  assert(!maySend({ settings: given, token: { type: "read", claims: null } }));
  assert(!maySend({ settings: given, token: { type: "read", claims: { aud: ["other"] } } }));
});
