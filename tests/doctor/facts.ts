/**
 * Facts of a healthy deployment client and of a healthy cluster, which tests then break in one place.
 *
 * @module
 */

import type { CallerFacts } from "../../lib/doctor/caller_facts.ts";
import type { ClientFacts, ClusterFacts } from "../../lib/doctor/cluster_facts.ts";
import type { Finding } from "../../lib/doctor/finding.ts";
import { placeOf } from "../../lib/doctor/place.ts";
import { readServiceValues } from "../../lib/manifests/service/read_values.ts";
import { healthyView } from "../client/views.ts";

/** The wall clock of all facts. */
export const NOW: number = Date.parse("2026-01-01T12:00:00Z");
const DAY = 24 * 3_600_000;

/** Nothing is wrong. */
export const healthyCaller: CallerFacts = {
  settings: {
    url: "https://bloodraven.bloodraven.svc:8443",
    group: "orders",
    instance: "orders-app",
    caFile: "/ca.crt",
    tokenFile: "/token",
    audience: "bloodraven-deploy",
  },
  nowMs: NOW,
  authority: {
    type: "read",
    certificates: [{
      names: [],
      subject: "our authority",
      issuer: "our authority",
      notBeforeMs: NOW - DAY,
      notAfterMs: NOW + 100 * DAY,
    }],
  },
  token: {
    type: "read",
    claims: {
      aud: ["bloodraven-deploy"],
      exp: NOW / 1_000 + 3_000,
      sub: "system:serviceaccount:app-ns:deployer",
    },
  },
  name: { type: "done" },
  connection: { type: "done" },
  handshake: {
    type: "done",
    certificate: {
      names: ["bloodraven.bloodraven.svc"],
      subject: "service",
      issuer: "our authority",
      notBeforeMs: NOW - DAY,
      notAfterMs: NOW + 30 * DAY,
    },
    isForHost: true,
    isTrusted: true,
    refusal: "",
  },
  look: {
    type: "done",
    sentMs: NOW,
    receivedMs: NOW + 20,
    serverDateMs: NOW,
    answer: {
      type: "success",
      status: 200,
      fence: "",
      dateMs: null,
      body: healthyView,
    },
  },
};

/** A look at the group with another answer. */
export function answered(
  answer: Extract<CallerFacts["look"], { type: "done" }>["answer"],
): CallerFacts {
  return {
    ...healthyCaller,
    look: { type: "done", sentMs: NOW, receivedMs: NOW, serverDateMs: NOW, answer },
  };
}

const place = placeOf(readServiceValues([]));
const selector = { app: "holdfast" };
const leader = { ...selector, "holdfast.shipstream.io/leader": "true" };

/** A client that may deploy, and runs now. */
export const client: ClientFacts = {
  namespace: "app-ns",
  serviceAccount: "deployer",
  databases: ["orders-app"],
  namespaceLabels: { type: "seen", value: { "shipstream.io/mysql-client": "true" } },
  account: { type: "seen", value: {} },
  pods: {
    type: "seen",
    value: [{ name: "migrate-1", labels: { "bloodraven.shipstream.io/deploy-client": "true" } }],
  },
};

const version = (extra: object) => ({
  type: "seen" as const,
  value: {
    metadata: {},
    spec: { versions: [{ name: "v1alpha1", served: true, ...extra }] },
    status: { conditions: [{ type: "Established", status: "True" }] },
  },
});

/** Nothing is wrong. */
export const healthyCluster: ClusterFacts = {
  place,
  now: { earliestMs: NOW, latestMs: NOW + 100, certain: true },
  version: { type: "seen", value: "v1.36.3" },
  definitions: {
    mysqlfailovergroups: version({ subresources: { status: {} } }),
    mysqldatabases: version({ selectableFields: [{ jsonPath: ".spec.groupRef.name" }] }),
  },
  rights: [
    { role: "", scope: "cluster", missing: { type: "seen", value: [] } },
    { role: "", scope: "own", missing: { type: "seen", value: [] } },
  ],
  secret: {
    type: "seen",
    value: {
      certificate: {
        names: ["bloodraven.bloodraven.svc"],
        subject: "service",
        issuer: "our authority",
        notBeforeMs: NOW - DAY,
        notAfterMs: NOW + 30 * DAY,
      },
      hasCertificateKey: true,
      hasPrivateKey: true,
      keyFits: true,
      missingNames: [],
    },
  },
  services: [{ type: "seen", value: leader }, { type: "seen", value: selector }],
  pods: {
    type: "seen",
    value: [{ name: "holdfast-a", labels: leader }, { name: "holdfast-b", labels: selector }],
  },
  policies: { type: "seen", value: [] },
  election: { type: "seen", value: { holder: "holdfast-a_1", endsMs: NOW + 10_000 } },
  reference: { type: "absent" },
  clients: { type: "seen", value: [client] },
  sidecars: { type: "seen", value: [] },
};

/** What a check found. @throws {Error} There is no such check, or it is there twice. */
export function found(findings: readonly Finding[], check: string): Finding {
  const [finding, ...more] = findings.filter((one) => one.check === check);
  if (finding === undefined || more.length > 0) {
    const names = findings.map((one) => one.check).join(", ");
    throw new Error(`Cannot find one check '${check}' among ${names}`);
  }
  return finding;
}
