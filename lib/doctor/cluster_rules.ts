/**
 * What is wrong with the cluster of the service: definitions, rights, certificate, leader. Pure functions. Who may reach
 * the service over the network has a file of its own.
 *
 * @module
 */

import { shown, span } from "../status/words.ts";
import { expiryFinding } from "./caller_rules.ts";
import {
  type ClusterFacts,
  type ElectionFacts,
  REFERENCE_LEASE,
  type Right,
  type RoleFacts,
  type Sight,
} from "./cluster_facts.ts";
import { type Finding, ok, waiting, warning, wrong } from "./finding.ts";
import type { CustomResourceDefinition } from "./kinds.ts";
import { networkFindings, serviceFindings, sidecarFindings } from "./reach_rules.ts";
import { type Looked, notSeen } from "./unseen_rules.ts";

/** The version of the custom kinds (deploy-api 15.5). */
const VERSION = "v1alpha1";

/** The field by which the databases of one group are listed. */
const GROUP_FIELD = ".spec.groupRef.name";

/** All checks of an administrator, in the order in which they are to be put right. */
export function clusterFindings(facts: ClusterFacts): readonly Finding[] {
  const { version, definitions } = facts;
  const cluster = clusterFinding(version);
  if (cluster.verdict === "wrong") return [cluster];
  return [
    cluster,
    definitionFinding("mysqlfailovergroups", definitions.mysqlfailovergroups),
    definitionFinding("mysqldatabases", definitions.mysqldatabases),
    ...facts.rights.map((role) => rightsFinding(role, facts)),
    ...secretFindings(facts),
    ...serviceFindings(facts),
    leaderFinding(facts),
    referenceFinding(facts),
    ...networkFindings(facts),
    ...sidecarFindings(facts),
  ];
}

function clusterFinding(version: Sight<string>): Finding {
  const check = "cluster";
  if (version.type === "seen") return ok(check, `The API server answers, ${shown(version.value)}`);
  const why = version.type === "unseen" ? version.why : "not_found";
  return wrong(
    check,
    `Cannot talk to the cluster (${why})`,
    "Correct the kubeconfig of KUBECONFIG or ~/.kube/config: its server, its authority, its user",
  );
}

function definitionFinding(
  plural: "mysqldatabases" | "mysqlfailovergroups",
  definition: Sight<CustomResourceDefinition>,
): Finding {
  const check = `definition-${plural}`;
  const looked: Looked = {
    check,
    what: `The definition of ${plural}`,
    right: { verb: "get", resource: "customresourcedefinitions.apiextensions.k8s.io" },
  };
  const install =
    "Install the definition that comes with the operator; deploy/crds has one to begin with";
  if (definition.type === "absent") {
    return wrong(check, `The cluster does not know ${plural}.shipstream.io`, install);
  }
  if (definition.type === "unseen") return notSeen(looked, definition.why);
  const { spec, status } = definition.value;
  const version = spec.versions.find(({ name, served }) => name === VERSION && served !== false);
  if (version === undefined) {
    return wrong(check, `${plural}.shipstream.io is not served as ${VERSION}`, install);
  }
  const established = (status?.conditions ?? []).some((condition) =>
    condition.type === "Established" && condition.status === "True"
  );
  if (!established) {
    return wrong(
      check,
      `The API server does not serve ${plural}.shipstream.io yet`,
      "Look at the conditions of the definition: its names or its schema are refused",
    );
  }
  if (plural === "mysqlfailovergroups") {
    return version.subresources?.status
      ? ok(check, `${plural}.shipstream.io is served, with a status of its own`)
      : wrong(check, `${plural}.shipstream.io has no subresource 'status'`, install);
  }
  const selectable = (version.selectableFields ?? []).some(({ jsonPath }) =>
    jsonPath === GROUP_FIELD
  );
  return selectable
    ? ok(check, `${plural}.shipstream.io is served, and can be listed by '${GROUP_FIELD}'`)
    : warning(
      check,
      `${plural}.shipstream.io cannot be listed by '${GROUP_FIELD}', so that requests list the databases of all groups`,
      `Add '${GROUP_FIELD}' to 'selectableFields' of version ${VERSION}: with thousands of databases that is a hundred times quicker`,
    );
}

function rightsFinding({ role, scope, missing }: RoleFacts, { place }: ClusterFacts): Finding {
  const check = ["rights", scope === "cluster" ? "" : scope, role].filter((part) => part !== "")
    .join("-");
  const account = `'${place.namespace}/${place.serviceAccount}'`;
  const part = role === "" ? scope === "own" ? "the election" : "the deployment API" : role;
  if (missing.type !== "seen") {
    const what = `What the service account ${account} may do`;
    const resource = "subjectaccessreviews and localsubjectaccessreviews.authorization.k8s.io";
    const why = missing.type === "unseen" ? missing.why : "not_found";
    return notSeen({ check, what, right: { verb: "create", resource } }, why);
  }
  if (missing.value.length === 0) {
    return ok(check, `The service account ${account} may do what ${part} needs`);
  }
  return wrong(
    check,
    `The service account ${account} may not ${
      missing.value.map(rightText).join(", ")
    }, which ${part} needs`,
    "Apply the roles of 'holdfast manifests service', and see that the binding names this service account",
  );
}

function rightText({ verb, resource, group, namespace, name }: Right): string {
  const kind = group === "" ? resource : `${resource}.${group}`;
  const one = name === "" ? "" : ` '${name}'`;
  const where = namespace === "" ? "" : ` in '${namespace}'`;
  return `${verb} ${kind}${one}${where}`;
}

function secretFindings({ secret, place, now }: ClusterFacts): readonly Finding[] {
  const name = `'${place.namespace}/${place.secret}'`;
  const rest = [
    waiting("certificate-key", "The private key"),
    waiting("certificate-name", "The name in the certificate"),
    waiting("certificate-expiry", "The end of the certificate"),
  ];
  if (secret.type === "unseen") {
    const right = { verb: "get", resource: `secrets in '${place.namespace}'` };
    return [
      notSeen({ check: "secret", what: `The Secret ${name}`, right }, secret.why),
      ...rest,
    ];
  }
  const todo =
    "A Secret with the keys 'tls.crt' and 'tls.key', as cert-manager makes it; its name is 'auxiliary.escrowTLS.existingSecret' of the values";
  if (secret.type === "absent") {
    return [wrong("secret", `There is no Secret ${name}`, todo), ...rest];
  }
  const { hasCertificateKey, hasPrivateKey, certificate, keyFits, missingNames } = secret.value;
  const lacking = [
    ...(hasCertificateKey ? [] : ["'tls.crt'"]),
    ...(hasPrivateKey ? [] : ["'tls.key'"]),
  ];
  if (lacking.length > 0) {
    return [wrong("secret", `The Secret ${name} lacks ${lacking.join(" and ")}`, todo), ...rest];
  }
  if (certificate === null) {
    return [wrong("secret", `'tls.crt' of the Secret ${name} holds no certificate`, todo), ...rest];
  }
  return [
    ok("secret", `The Secret ${name} has 'tls.crt' and 'tls.key'`),
    keyFits ? ok("certificate-key", "The private key belongs to the certificate") : wrong(
      "certificate-key",
      "The private key in 'tls.key' does not belong to the certificate in 'tls.crt'",
      "Have both issued anew, together",
    ),
    missingNames.length === 0
      ? ok("certificate-name", "The certificate is for the name of the Service")
      : wrong(
        "certificate-name",
        `The certificate is not for ${missingNames.map((one) => `'${one}'`).join(" and ")}`,
        "Have it issued with these among the alternative names: a common name does not count",
      ),
    expiryFinding("certificate-expiry", certificate, now.earliestMs),
  ];
}

function leaderFinding({ election, place, now }: ClusterFacts): Finding {
  const check = "leader";
  const lease = `'${place.namespace}/${place.leaseName}'`;
  if (place.leaseName === REFERENCE_LEASE) {
    return warning(
      check,
      `The election is on the Lease '${REFERENCE_LEASE}', which is the reference operator's own`,
      "Use another name ('leaderElection.leaseName'): beside that operator, one of the two would never lead",
    );
  }
  if (election.type === "unseen") {
    const right = { verb: "get", resource: `leases.coordination.k8s.io in '${place.namespace}'` };
    return notSeen({ check, what: `The election Lease ${lease}`, right }, election.why);
  }
  const todo =
    "See that the pods run, and what their logs say of the election; 'rights' above shows what they may do";
  if (election.type === "absent") {
    return wrong(check, `There is no Lease ${lease}: no replica has ever led`, todo);
  }
  if (election.value.holder === "") return wrong(check, `The Lease ${lease} is free`, todo);
  const holder = shown(election.value.holder);
  const overMs = endedSince(election.value, now.earliestMs);
  if (overMs !== null) {
    const ago = span(Math.floor(overMs / 1_000));
    return wrong(check, `'${holder}' led, and its Lease ${lease} ended ${ago} ago`, todo);
  }
  return ok(check, `'${holder}' leads`);
}

/** Milliseconds since the end; `null` while it lasts. One without an end is thought to last. */
function endedSince({ endsMs }: ElectionFacts, nowMs: number): number | null {
  return endsMs === null || nowMs <= endsMs ? null : nowMs - endsMs;
}

function referenceFinding({ reference, place, pods, now }: ClusterFacts): Finding {
  const check = "reference-operator";
  const lease = `'${place.namespace}/${REFERENCE_LEASE}'`;
  if (reference.type === "unseen") {
    const right = { verb: "get", resource: `leases.coordination.k8s.io in '${place.namespace}'` };
    return notSeen({ check, what: `The Lease ${lease}`, right }, reference.why);
  }
  const isHeld = reference.type === "seen" && reference.value.holder !== "" &&
    endedSince(reference.value, now.earliestMs) === null;
  if (!isHeld) return ok(check, `Nobody leads by the reference operator's Lease ${lease}`);
  const { holder } = reference.value;
  const isOurs = pods.type === "seen" && pods.value.some(({ name }) => holder.startsWith(name));
  if (isOurs) {
    return warning(
      check,
      `A pod of this service holds the reference operator's own Lease ${lease}`,
      "Set 'kubernetes.leader_election.lease_name' to another name: beside that operator, one of the two would never lead",
    );
  }
  return warning(
    check,
    `The reference operator leads here too ('${shown(holder)}')`,
    "See that its own deployment API is off, and that callers use the Service of one of the two: two of them grant the same lease twice",
  );
}
