/**
 * Looks at a deployment client and walks its way to the service, step by step: name, connection, TLS, one GET.
 *
 * Nothing here asks for a lease: a POST, PUT or DELETE as a probe would change what it looks at (deploy-api 16.8). The token
 * is sent only over a connection whose certificate the platform accepts, and only when it says that it is for the service.
 *
 * @module
 */

import type { X509Certificate } from "node:crypto";
import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { readClaims } from "../auth/token_claims.ts";
import { isDnsSubdomain } from "../auth/dns_names.ts";
import { DeployCalls, type Fetch } from "../client/calls.ts";
import { safeFaultCode } from "../client/fault_code.ts";
import { checkedAuthorities, httpsFetch } from "../client/https_fetch.ts";
import { type Clock, sleep, startDeadline } from "../runtime/clock.ts";
import type {
  AuthorityFacts,
  CallerFacts,
  CallerSettings,
  HandshakeFacts,
  LookFacts,
  StepFacts,
  TokenFacts,
} from "./caller_facts.ts";
import { readUrl, type ServiceUrl } from "./service_url.ts";
import { maySend } from "./token_rules.ts";
import { certificateFacts, certificatesOf, isFor, isSignedBy, readCertificate } from "./trust.ts";

/** Milliseconds for each step. */
const STEP_MS = 5_000;
/** Milliseconds for the GET: the request limit of the service and a little more. */
const LOOK_MS = 12_000;
/** How often the service is asked while no replica leads, and the pause between, in milliseconds: an election is short. */
const LOOKS = 3;
const PAUSE_MS = 1_000;

/** What the walk needs of the machine. */
export interface CallerParts {
  readonly clock: Clock;
  /** The text of a file. It rejects when the file cannot be read. */
  readonly readTextFile: (path: string) => Promise<string>;
  readonly signal: AbortSignal;
}

/** Looks at everything. It rejects with the signal's reason only; all else is a fact. */
export async function lookAsCaller(
  settings: CallerSettings,
  parts: CallerParts,
): Promise<CallerFacts> {
  const { clock, signal } = parts;
  const { facts: authority, certificates } = await readAuthority(settings.caFile, parts);
  const { facts: token, text } = await readToken(settings.tokenFile, parts);
  const nowMs = clock.wall();
  const base = { settings, nowMs, authority, token };
  const url = readUrl(settings.url);
  const untried = {
    name: { type: "not_tried" },
    connection: { type: "not_tried" },
    handshake: { type: "not_tried" },
    look: { type: "not_tried" },
  } as const;
  if (url.type !== "usable") return { ...base, ...untried };

  const name = await step(parts, (limit) => resolve(url, limit));
  if (name.type !== "done") return { ...base, ...untried, name };
  const connection = await step(parts, (limit) => reach(url, limit));
  if (connection.type !== "done") return { ...base, ...untried, name, connection };
  const isAuthorityUsable = authority.type === "platform" || authority.type === "read";
  if (!isAuthorityUsable) return { ...base, ...untried, name, connection };
  const handshake = await shakeHands(url, certificates, parts);
  const way = { name, connection, handshake };
  const isAccepted = handshake.type === "done" && handshake.refusal === "";
  if (!isAccepted || !maySend(base) || !isDnsSubdomain(settings.group)) {
    return { ...base, ...way, look: { type: "not_tried" } };
  }
  let look = await lookAtGroup(url, settings.group, text, certificates, parts);
  for (let looks = 1; looks < LOOKS && isLeaderless(look); looks++) {
    await sleep(clock, PAUSE_MS, signal);
    look = await lookAtGroup(url, settings.group, text, certificates, parts);
  }
  return { ...base, ...way, look };
}

function isLeaderless(look: LookFacts): boolean {
  return look.type === "done" && look.answer.type === "not_leader";
}

async function readAuthority(path: string, { readTextFile }: CallerParts) {
  const none: readonly X509Certificate[] = [];
  const nothing = (type: "platform" | "unreadable" | "no_certificate") => ({
    facts: { type } satisfies AuthorityFacts,
    certificates: none,
  });
  if (path === "") return nothing("platform");
  let pem: string;
  try {
    pem = await readTextFile(path);
  } catch {
    return nothing("unreadable");
  }
  let certificates: readonly X509Certificate[];
  try {
    certificates = certificatesOf(checkedAuthorities(pem, path));
  } catch {
    return nothing("no_certificate");
  }
  const facts: AuthorityFacts = { type: "read", certificates: certificates.map(certificateFacts) };
  return { facts, certificates };
}

async function readToken(
  path: string,
  { readTextFile }: CallerParts,
): Promise<{ readonly facts: TokenFacts; readonly text: string }> {
  let text: string;
  try {
    text = (await readTextFile(path)).trim();
  } catch {
    return { facts: { type: "unreadable" }, text: "" };
  }
  // What no header carries is not sent either.
  if (!/^[\x21-\x7e]+$/.test(text)) return { facts: { type: "unusable" }, text: "" };
  return { facts: { type: "read", claims: readClaims(text) }, text };
}

/** Does a step within its time. */
async function step(
  { clock, signal }: CallerParts,
  act: (signal: AbortSignal) => Promise<void>,
): Promise<StepFacts> {
  using limit = startDeadline(clock, STEP_MS, signal);
  try {
    await act(limit.signal);
    return { type: "done" };
  } catch (error) {
    signal.throwIfAborted();
    return { type: "failed", code: limit.expired ? "no answer in time" : faultCode(error) };
  }
}

async function resolve({ host }: ServiceUrl, signal: AbortSignal): Promise<void> {
  if (isIP(host) !== 0) return;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    // A look-up cannot be ended: one that is over its time ends by itself, and nobody waits for it.
    await Promise.race([lookup(host), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function reach({ host, port }: ServiceUrl, signal: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    const socket = connectTcp({ host, port });
    const abort = () => socket.destroy(new Error("The time is over"));
    const finish = () => signal.removeEventListener("abort", abort);
    signal.addEventListener("abort", abort, { once: true });
    socket.once("connect", () => {
      finish();
      socket.once("close", () => done());
      socket.destroy();
    });
    socket.on("error", (error) => {
      finish();
      fail(error);
    });
  });
}

async function shakeHands(
  url: ServiceUrl,
  authorities: readonly X509Certificate[],
  parts: CallerParts,
): Promise<HandshakeFacts> {
  const { host, port } = url;
  let facts: HandshakeFacts = { type: "failed", code: "" };
  const result = await step(parts, async (limit) => {
    const ca = authorities.map((authority) => authority.toString());
    await new Promise<void>((done, fail) => {
      // It goes on with a certificate that it refuses, so that all can be said that is wrong with it. Nothing is sent.
      const socket = connectTls({
        host,
        port,
        rejectUnauthorized: false,
        ...(isIP(host) === 0 ? { servername: host } : {}),
        ...(ca.length === 0 ? {} : { ca }),
      });
      const abort = () => socket.destroy(new Error("The time is over"));
      const finish = () => limit.removeEventListener("abort", abort);
      limit.addEventListener("abort", abort, { once: true });
      socket.once("secureConnect", () => {
        finish();
        facts = handshakeFacts(url, socket, authorities, parts.clock.wall());
        socket.once("close", () => done());
        socket.destroy();
      });
      socket.on("error", (error) => {
        finish();
        fail(error);
      });
    });
  });
  return result.type === "failed" ? { type: "failed", code: result.code } : facts;
}

function handshakeFacts(
  { host }: ServiceUrl,
  socket: TLSSocket,
  authorities: readonly X509Certificate[],
  nowMs: number,
): HandshakeFacts {
  const chain: X509Certificate[] = [];
  const seen = new Set<string>();
  let sent = socket.getPeerCertificate(true);
  while (sent?.raw !== undefined && !seen.has(sent.fingerprint256)) {
    seen.add(sent.fingerprint256);
    const certificate = readCertificate(sent.raw);
    if (certificate !== null) chain.push(certificate);
    sent = sent.issuerCertificate;
  }
  const [own] = chain;
  if (own === undefined) return { type: "failed", code: "no certificate" };
  const error: unknown = socket.authorizationError;
  const refusal = socket.authorized ? "" : faultCode(error) || "refused";
  const certificate = certificateFacts(own);
  const isLiving = certificate.notBeforeMs <= nowMs && nowMs < certificate.notAfterMs;
  return {
    type: "done",
    certificate,
    isForHost: isFor(own, host),
    isTrusted: isTrusted(),
    refusal,
  };

  function isTrusted(): boolean | null {
    // The name is looked at after the issuer.
    if (refusal === "" || refusal === "ERR_TLS_CERT_ALTNAME_INVALID") return true;
    if (authorities.length > 0) return isSignedBy(chain, authorities);
    // One that is out of its time is refused with the same words as one of a stranger.
    return isLiving ? false : null;
  }
}

async function lookAtGroup(
  url: ServiceUrl,
  group: string,
  token: string,
  authorities: readonly X509Certificate[],
  { clock, signal }: CallerParts,
): Promise<LookFacts> {
  const times = { sentMs: 0, receivedMs: 0, serverDateMs: NaN };
  const ca = authorities.map((authority) => authority.toString()).join("\n");
  const send = httpsFetch(ca === "" ? undefined : ca);
  const fetch: Fetch = async (target, init) => {
    times.sentMs = clock.wall();
    const response = await send(target, init);
    times.receivedMs = clock.wall();
    times.serverDateMs = Date.parse(response.headers.get("Date") ?? "");
    return response;
  };
  const calls = new DeployCalls({ url: url.base, group, fetch, token: () => token, clock });
  const { answer } = await calls.observe(LOOK_MS, signal);
  const { sentMs, receivedMs, serverDateMs } = times;
  return {
    type: "done",
    answer,
    sentMs,
    receivedMs,
    serverDateMs: Number.isNaN(serverDateMs) ? null : serverDateMs,
  };
}

function faultCode(error: unknown): string {
  return safeFaultCode(error instanceof Error && "code" in error ? error.code : error);
}
