/**
 * What no single key can say: rules between keys, and the forms of names. Pure functions over a whole configuration.
 *
 * @module
 */
import { MAX_LEASE_MS, timingProblem } from "../election/policy.ts";
import { type Config, type ProcessRole, processRoles } from "./schema.ts";
import { ANY_ORIGIN, webOrigin } from "./web_origin.ts";

/** A rule that a configuration breaks. */
export interface BrokenRule {
  /** The keys that it concerns, with dots between their parts. */
  readonly keys: readonly string[];
  /** What is wrong and what would be right, in one line. */
  readonly message: string;
}

/** A rule: what a configuration breaks of it. */
export type Rule = (config: Config) => readonly BrokenRule[];

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Says whether a text is a DNS-1123 label: at most 63 lower-case letters, digits and inner hyphens. */
export function isDnsLabel(text: string): boolean {
  return LABEL.test(text);
}

/** Says whether a text is a DNS-1123 subdomain: labels with dots between them, at most 253 characters. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && text.split(".").every(isDnsLabel);
}

/** Reads a process role, in any case; `undefined` when there is no such role. */
export function parseRole(text: string): ProcessRole | undefined {
  const wanted = text.trim().toLowerCase();
  return processRoles.find((role) => role === wanted);
}

/** Says whether this process takes part in the election: its role is in `roles`, or `roles` is empty. */
export function takesPart(config: Config): boolean {
  const { enabled, roles } = config.kubernetes.leader_election;
  return enabled &&
    (roles.length === 0 || roles.some((role) => parseRole(role) === config.host.role));
}

/** The namespace is a DNS label (kubernetes-plugin 2, validation 1). */
export const checkNamespace: Rule = ({ kubernetes: { namespace } }) => {
  if (namespace === "" || isDnsLabel(namespace)) return [];
  const key = "kubernetes.namespace";
  return [{
    keys: [key],
    message:
      `Cannot use '${key}' as it must be a DNS label: at most 63 lower-case letters, digits and hyphens, with a letter or digit first and last`,
  }];
};

/** What the election needs, while it is on (kubernetes-plugin 2, validation 2). */
export const checkElection: Rule = ({ kubernetes: { leader_election: election } }) => {
  if (!election.enabled) return [];
  const broken: BrokenRule[] = [];
  const key = (name: string) => `kubernetes.leader_election.${name}`;
  if (election.lease_name === "") {
    broken.push({
      keys: [key("lease_name")],
      message: `Cannot run the election as '${key("lease_name")}' is empty: give the Lease a name`,
    });
  } else if (!isDnsSubdomain(election.lease_name)) {
    broken.push({
      keys: [key("lease_name")],
      message: `Cannot use '${
        key("lease_name")
      }' as it must be a DNS subdomain: lower-case labels with dots between them, at most 253 characters`,
    });
  }
  const timing = {
    leaseMs: toMilliseconds(election.lease_duration_secs),
    renewMs: toMilliseconds(election.renew_deadline_secs),
    retryMs: toMilliseconds(election.retry_period_secs),
  };
  if (timingProblem(timing) !== "none") {
    const names = ["lease_duration_secs", "renew_deadline_secs", "retry_period_secs"] as const;
    broken.push({
      keys: names.map(key),
      message: `Cannot run the election as the lease duration must be at most ${
        MAX_LEASE_MS / 1_000
      } s and above the renew deadline, which must be more than 1.2 times the retry period, which must be above 0: current values are ${
        names.map((name) => `${name} ${election[name]}`).join(", ")
      }`,
    });
  }
  const strange = election.roles.filter((role) => parseRole(role) === undefined);
  if (strange.length > 0) {
    broken.push({
      keys: [key("roles")],
      message: `Cannot use '${key("roles")}' as each must be one of ${processRoles.join(", ")}: ${
        strange.map((role) => JSON.stringify(role)).join(", ")
      } is not`,
    });
  }
  return broken;
};

/** The ConfigMaps that are followed have names, each its own (kubernetes-plugin 2, validation 3). */
export const checkConfigMaps: Rule = ({ kubernetes: { config_maps: { watch } } }) => {
  const key = "kubernetes.config_maps.watch";
  const shown = (names: readonly string[]) => names.map((name) => JSON.stringify(name)).join(", ");
  const strange = watch.filter((name) => !isDnsSubdomain(name));
  if (strange.length > 0) {
    return [{
      keys: [key],
      message:
        `Cannot use '${key}' as each must be a DNS subdomain: lower-case labels with dots between them, at most 253 characters: ${
          shown(strange)
        } is not`,
    }];
  }
  const twice = watch.filter((name, index) => watch.indexOf(name) !== index);
  return twice.length === 0 ? [] : [{
    keys: [key],
    message: `Cannot use '${key}' as it must name each ConfigMap once: ${
      shown(twice)
    } is there again`,
  }];
};

/** Seconds as milliseconds, held within the safe integers, so that a huge value fails its rule and does not wrap. */
function toMilliseconds(seconds: number): number {
  return Math.min(seconds * 1_000, Number.MAX_SAFE_INTEGER);
}

/** A certificate needs its key, and a key its certificate (deploy-api 15.1). */
export const checkTls: Rule = ({ tls }) => {
  if ((tls.cert_file === "") === (tls.key_file === "")) return [];
  const [given, missing] = tls.cert_file === ""
    ? ["tls.key_file", "tls.cert_file"]
    : ["tls.cert_file", "tls.key_file"];
  return [{
    keys: ["tls.cert_file", "tls.key_file"],
    message: `Cannot serve TLS as '${given}' is given and '${missing}' is not: give both or none`,
  }];
};

/** The deploy API needs TLS and an election (deploy-api 15.1). */
export const checkDeployApi: Rule = ({ deploy_api, tls, kubernetes }) => {
  if (!deploy_api.enabled) return [];
  const broken: BrokenRule[] = [];
  if (tls.cert_file === "" && tls.key_file === "") {
    broken.push({
      keys: ["deploy_api.enabled", "tls.cert_file", "tls.key_file"],
      message:
        "Cannot serve the deploy API without TLS: give 'tls.cert_file' and 'tls.key_file', or set 'deploy_api.enabled' to false",
    });
  }
  if (!kubernetes.leader_election.enabled) {
    broken.push({
      keys: ["deploy_api.enabled", "kubernetes.leader_election.enabled"],
      message:
        "Cannot serve the deploy API without leader election: set 'kubernetes.leader_election.enabled' to true, or 'deploy_api.enabled' to false",
    });
  }
  return broken;
};

/** Who may open a WebSocket is said by origins, or by `*`: with an empty list nobody could (deploy-api 14). */
export const checkOrigins: Rule = ({ auxiliary: { ws_allowed_origins: origins } }) => {
  const key = "auxiliary.ws_allowed_origins";
  const strange = origins.filter((text) => text !== ANY_ORIGIN && webOrigin(text) === null);
  if (origins.length > 0 && strange.length === 0) return [];
  return [{
    keys: [key],
    message:
      `Cannot use '${key}' as it must be * or origins such as https://dashboard.example.org: ${
        origins.length === 0
          ? "it is empty"
          : `${strange.map((text) => JSON.stringify(text)).join(", ")} is none`
      }`,
  }];
};

/** Planned operations are served by the leader of the deploy API (design 7). */
export const checkPlannedOperations: Rule = ({ planned_operations, deploy_api }) => {
  if (!planned_operations.enabled || deploy_api.enabled) return [];
  return [{
    keys: ["planned_operations.enabled", "deploy_api.enabled"],
    message:
      "Cannot serve planned operations without the deploy API: set 'deploy_api.enabled' to true, or 'planned_operations.enabled' to false",
  }];
};

/** Nobody but the demo moves a group's status by itself: a real group has an operator (design 7). */
export const checkExecutor: Rule = ({ planned_operations: { executor } }) => {
  if (executor === "external") return [];
  const key = "planned_operations.executor";
  return [{
    keys: [key],
    message:
      `Cannot use '${key}' as it must be external outside the demo: current value is ${executor}`,
  }];
};

/** The service keeps all its state in the cluster, and only its leader grants: no setting may do without (design 7). */
export const checkService: Rule = (config) => {
  const { enabled, required, leader_election: election } = config.kubernetes;
  const wanted = [
    ["kubernetes.enabled", enabled, true],
    ["kubernetes.required", required, true],
    ["kubernetes.leader_election.lead_when_detached", election.lead_when_detached, false],
  ] as const;
  const broken: BrokenRule[] = wanted.filter(([, value, right]) => value !== right)
    .map(([key, value, right]) => ({
      keys: [key],
      message:
        `Cannot serve without a cluster, where all state is kept: '${key}' must be ${right}, current value is ${value}`,
    }));
  if (election.enabled && !takesPart(config)) {
    broken.push({
      keys: ["host.role", "kubernetes.leader_election.roles"],
      message:
        `Cannot serve as this process could never lead: 'kubernetes.leader_election.roles' must be empty or contain its 'host.role', which is ${config.host.role}`,
    });
  }
  return broken;
};

/** What every user of the configuration keeps to. */
export const libraryRules: readonly Rule[] = [checkNamespace, checkElection, checkConfigMaps];

/** What the demo's service keeps to. */
export const demoRules: readonly Rule[] = [
  ...libraryRules,
  checkTls,
  checkDeployApi,
  checkOrigins,
  checkPlannedOperations,
  checkService,
];

/** What `holdfast serve` keeps to. */
export const serviceRules: readonly Rule[] = [...demoRules, checkExecutor];
