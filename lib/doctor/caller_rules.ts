/**
 * What is wrong with a deployment client: its settings, the way to the service, the certificate, and what the service
 * answers. Pure functions. The token has a file of its own.
 *
 * @module
 */

import { isDnsSubdomain } from "../auth/dns_names.ts";
import { shown, span } from "../status/words.ts";
import type { CallerFacts, HandshakeFacts, StepFacts } from "./caller_facts.ts";
import { bracketed, type Finding, ok, unseen, waiting, warning, wrong } from "./finding.ts";
import { answerFindings, clockFinding } from "./answer_rules.ts";
import { readUrl } from "./service_url.ts";
import { tokenFindings } from "./token_rules.ts";
import type { CertificateFacts } from "./trust.ts";

/** Seconds before its end from which a certificate is worth a warning: a week. */
export const CERTIFICATE_WARNING_SECONDS: number = 7 * 24 * 3_600;

/** All checks of a deployment client, in the order in which they are to be put right. Each check is in it, also one that waits. */
export function callerFindings(facts: CallerFacts): readonly Finding[] {
  return [
    urlFinding(facts),
    groupNameFinding(facts),
    authorityFinding(facts),
    stepFinding("name", "The name of the service", facts.name, {
      done: "The name of the service becomes an address",
      failed: "Cannot find the address of the service",
      todo: "Correct the host of HOLDFAST_URL; inside the cluster it is SERVICE.NAMESPACE.svc",
    }),
    stepFinding("connection", "The connection", facts.connection, {
      done: "The service takes connections",
      failed: "Cannot connect to the service",
      todo:
        "See that the service runs, that its Service has the port, and that a NetworkPolicy lets this pod in: 'holdfast doctor --from cluster' looks at all three",
    }),
    ...handshakeFindings(facts),
    sidecarFinding(),
    ...tokenFindings(facts),
    ...answerFindings(facts),
    clockFinding(facts),
  ];
}

function urlFinding({ settings }: CallerFacts): Finding {
  const check = "url";
  switch (readUrl(settings.url).type) {
    case "usable":
      return ok(check, "The URL of the service is an https URL");
    case "missing":
      return wrong(
        check,
        "The URL of the service is not set",
        "Set HOLDFAST_URL, or give --url: https://SERVICE.NAMESPACE.svc:8443",
      );
    case "no_url":
      return wrong(check, "The URL of the service is no URL", "Give an https URL");
    case "not_https":
      return wrong(
        check,
        "The URL of the service does not begin with https, so the token would be sent in the clear",
        "Give an https URL: the service speaks nothing else",
      );
    case "password":
      return wrong(
        check,
        "The URL of the service has a user or a password in it",
        "Leave them out: the token says who you are",
      );
    case "query":
      return wrong(
        check,
        "The URL of the service has a query or a fragment",
        "Leave them out: give the base URL",
      );
  }
}

function groupNameFinding({ settings: { group } }: CallerFacts): Finding {
  const check = "group-name";
  if (group === "") {
    return wrong(check, "The group is not set", "Set HOLDFAST_GROUP, or give --group");
  }
  if (isDnsSubdomain(group)) return ok(check, `'${group}' can be the name of a group`);
  return wrong(
    check,
    `'${shown(group)}' cannot be the name of a group`,
    "Give the name of the MysqlFailoverGroup: lower-case letters, digits, hyphens and dots",
  );
}

function authorityFinding({ settings, authority, nowMs }: CallerFacts): Finding {
  const check = "authority";
  const file = `'${shown(settings.caFile)}'`;
  const todo =
    "HOLDFAST_CA_FILE must name a file with the certificate of the authority that signed the service's certificate, PEM";
  switch (authority.type) {
    case "platform":
      return ok(
        check,
        "The authorities of the platform are trusted, as HOLDFAST_CA_FILE is not set",
      );
    case "unreadable":
      return wrong(check, `Cannot read the authority in ${file}`, todo);
    case "no_certificate":
      return wrong(check, `The file ${file} holds no certificate`, todo);
    case "read": {
      const { certificates } = authority;
      const living = certificates.filter(({ notAfterMs }) => notAfterMs > nowMs);
      if (living.length > 0) return ok(check, `Trusts ${names(certificates)} alone`);
      return wrong(check, `The authority in ${file} has expired`, "Put the present one into it");
    }
  }
}

function names(certificates: readonly CertificateFacts[]): string {
  return certificates.map(({ subject }) => `'${shown(subject)}'`).join(", ");
}

function stepFinding(
  check: string,
  what: string,
  step: StepFacts,
  texts: { readonly done: string; readonly failed: string; readonly todo: string },
): Finding {
  if (step.type === "not_tried") return waiting(check, what);
  if (step.type === "done") return ok(check, texts.done);
  return wrong(check, `${texts.failed}${bracketed(step.code)}`, texts.todo);
}

function handshakeFindings(facts: CallerFacts): readonly Finding[] {
  const { handshake } = facts;
  if (handshake.type === "done") {
    const { certificate } = handshake;
    return [
      ok("tls", "The service speaks TLS"),
      nameFinding(handshake, facts),
      issuerFinding(handshake, facts),
      expiryFinding("certificate-expiry", certificate, facts.nowMs),
      acceptanceFinding(handshake, facts),
    ];
  }
  return [
    stepFinding("tls", "TLS", handshake, {
      done: "",
      failed: "What answers does not speak TLS",
      todo: "Give the port of the TLS listener, 8443 unless it is configured",
    }),
    waiting("certificate-name", "The name in the certificate"),
    waiting("certificate-issuer", "The issuer of the certificate"),
    waiting("certificate-expiry", "The end of the certificate"),
    waiting("certificate", "The certificate"),
  ];
}

type Handshake = Extract<HandshakeFacts, { readonly type: "done" }>;

function nameFinding({ certificate, isForHost }: Handshake, { settings }: CallerFacts): Finding {
  const check = "certificate-name";
  const url = readUrl(settings.url);
  const host = url.type === "usable" ? url.host : "";
  if (isForHost) return ok(check, `The certificate is for '${shown(host)}'`);
  const listed = certificate.names.map((name) => `'${shown(name)}'`).join(", ") || "no name";
  return wrong(
    check,
    `The certificate is for ${listed}, and not for '${shown(host)}'`,
    "Use a name that is in the certificate, or have it issued with this name among the alternative names",
  );
}

function issuerFinding({ certificate, isTrusted }: Handshake, { settings }: CallerFacts): Finding {
  const check = "certificate-issuer";
  const issuer = `'${shown(certificate.issuer)}'`;
  if (isTrusted === true) return ok(check, `${issuer} signed the certificate, and is trusted`);
  if (isTrusted === null) {
    return unseen(
      check,
      `Whether ${issuer} is trusted cannot be told while something else is wrong with the certificate`,
      "Put right first what is wrong with it",
    );
  }
  return wrong(
    check,
    settings.caFile === ""
      ? `${issuer} signed the certificate, and the platform does not trust it`
      : `${issuer} signed the certificate, and no certificate in '${
        shown(settings.caFile)
      }' is its own`,
    "Put the certificate of this authority into the file that HOLDFAST_CA_FILE names",
  );
}

/** Judges the end of a certificate. */
export function expiryFinding(
  check: string,
  { notBeforeMs, notAfterMs }: CertificateFacts,
  nowMs: number,
): Finding {
  const todo = "Have it issued anew: the service reads the new files by itself";
  if (nowMs < notBeforeMs) {
    return wrong(
      check,
      "The certificate is not valid yet",
      "Compare the clock of this machine with the service's, or wait",
    );
  }
  const left = Math.floor((notAfterMs - nowMs) / 1_000);
  if (left <= 0) return wrong(check, `The certificate expired ${span(-left)} ago`, todo);
  const says = `The certificate is valid for ${span(left)} more`;
  return left < CERTIFICATE_WARNING_SECONDS ? warning(check, says, todo) : ok(check, says);
}

/** The platform has the last word: it may know more than the checks above. */
function acceptanceFinding(handshake: Handshake, { nowMs }: CallerFacts): Finding {
  const check = "certificate";
  const { certificate, isForHost, isTrusted, refusal } = handshake;
  if (refusal === "") return ok(check, "The platform accepts the certificate");
  const isLiving = certificate.notBeforeMs <= nowMs && nowMs < certificate.notAfterMs;
  if (!isForHost || isTrusted !== true || !isLiving) {
    return waiting(check, "What else the platform says of the certificate");
  }
  return wrong(
    check,
    `The platform refuses the certificate (${refusal})`,
    "Issue a certificate of a server with a key of 2048 bits RSA or P-256 at least",
  );
}

function sidecarFinding(): Finding {
  return unseen(
    "sidecar-trust",
    "Whether the sidecars of an encrypted group trust the issuer too cannot be seen by a deployment client",
    "Who runs the databases looks with 'holdfast doctor --from cluster'",
  );
}
