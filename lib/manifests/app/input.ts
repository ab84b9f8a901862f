/**
 * What an application's manifests are made from: the inputs of kubernetes-plugin 13, their defaults, and what is refused.
 *
 * @module
 */

import { isDnsSubdomain } from "../../config/rules.ts";
import type { Config, ProcessRole } from "../../config/schema.ts";
import { demand, demandSubject } from "../demand.ts";
import { type GraceParts, MAX_GRACE_SECONDS } from "../grace_period.ts";
import { rbacNeedsOf } from "../rbac.ts";
import { DOWNWARD_NAMES } from "./environment.ts";

/** An application, as its manifests need to know it. */
export interface AppInput {
  /** The name of the application and of all its objects: a DNS-1035 label. */
  readonly name: string;
  /** The image of its container. */
  readonly image: string;
  /** A DNS-1123 label. @default {"default"} */
  readonly namespace?: string;
  /** Where it listens, 1 to 65535. @default {3000} */
  readonly port?: number;
  /** 0 or more. With 2 or more there is a PodDisruptionBudget; with 1 it would block every drain of a node. @default {2} */
  readonly replicas?: number;
  /** The role of its processes; `null` says nothing, which is `combined`. @default {null} */
  readonly role?: ProcessRole | null;
  /** The path of the liveness probe. @default {"/live"} */
  readonly livePath?: string;
  /** The path of the readiness probe. @default {"/ready"} */
  readonly readyPath?: string;
  /** The path of the startup probe. @default {"/startup"} */
  readonly startupPath?: string;
  /** Seconds that the preStop hook sleeps, before SIGTERM. Without a hook at 0. @default {5} */
  readonly preStopSeconds?: number;
  /** `host.prestop_grace_secs` of the application. @default {5} */
  readonly prestopGraceSeconds?: number;
  /** `host.shutdown_timeout_secs` of the application. @default {30} */
  readonly shutdownTimeoutSeconds?: number;
  /** Seconds beyond these that Kubernetes waits before it kills. @default {10} */
  readonly bufferSeconds?: number;
  /** The Lease of the election; `null` without one. @default {null} */
  readonly leaseName?: string | null;
  /** The ConfigMaps that are followed. @default {[]} */
  readonly configMaps?: readonly string[];
  /** Events are written on the pod. @default {true} */
  readonly events?: boolean;
  /** The leader's pod is labelled. @default {false} */
  readonly labelLeader?: boolean;
  /** The application talks to the API server, so it gets a token even where no rule is needed. @default {true} */
  readonly apiAccess?: boolean;
  /** Further environment variables; they win over the generated ones. @default {{}} */
  readonly env?: Readonly<Record<string, string>>;
  /** Nothing in the container may write to the image's own files. @default {true} */
  readonly readOnlyRootFilesystem?: boolean;
}

/** An {@linkcode AppInput} with all its defaults, checked. */
export type App = Required<AppInput>;

/** The parts of an {@linkcode AppInput} that a configuration tells. */
export type ConfiguredInput = Pick<
  App,
  | "port"
  | "role"
  | "livePath"
  | "readyPath"
  | "startupPath"
  | "prestopGraceSeconds"
  | "shutdownTimeoutSeconds"
  | "leaseName"
  | "configMaps"
  | "events"
  | "labelLeader"
  | "apiAccess"
>;

/**
 * Reads what a configuration says of an application, from its sections `host` and `kubernetes`. The namespace is there
 * only when the configuration names one.
 *
 * ```ts
 * import type { Config } from "@holdfast/holdfast";
 * import { appInputOf, appManifests } from "@holdfast/holdfast/manifests";
 *
 * function objectsOf(config: Config) {
 *   return appManifests({ ...appInputOf(config), name: "web", image: "registry.example/web:1" });
 * }
 * ```
 */
export function appInputOf(config: Config): ConfiguredInput & { readonly namespace?: string } {
  const { host, kubernetes } = config;
  const { leaseName = null, configMaps = [], events = false, labelLeader = false } = rbacNeedsOf(
    config,
  );
  return {
    ...(kubernetes.namespace === "" ? {} : { namespace: kubernetes.namespace }),
    port: host.listen.port,
    role: host.role === "combined" ? null : host.role,
    livePath: host.live_path,
    readyPath: host.ready_path,
    startupPath: host.startup_path,
    prestopGraceSeconds: host.prestop_grace_secs,
    shutdownTimeoutSeconds: host.shutdown_timeout_secs,
    leaseName,
    configMaps,
    events,
    labelLeader,
    apiAccess: kubernetes.enabled,
  };
}

/**
 * Fills in the defaults and checks the result.
 *
 * @throws {ManifestError} A field is wrong; the error says which.
 */
export function completeApp(input: AppInput): App {
  // One by one, so that a field that is there and undefined has its default too.
  const app: App = {
    name: input.name,
    image: input.image,
    namespace: input.namespace ?? "default",
    port: input.port ?? 3_000,
    replicas: input.replicas ?? 2,
    role: input.role ?? null,
    livePath: input.livePath ?? "/live",
    readyPath: input.readyPath ?? "/ready",
    startupPath: input.startupPath ?? "/startup",
    preStopSeconds: input.preStopSeconds ?? 5,
    prestopGraceSeconds: input.prestopGraceSeconds ?? 5,
    shutdownTimeoutSeconds: input.shutdownTimeoutSeconds ?? 30,
    bufferSeconds: input.bufferSeconds ?? 10,
    leaseName: input.leaseName ?? null,
    configMaps: input.configMaps ?? [],
    events: input.events ?? true,
    labelLeader: input.labelLeader ?? false,
    apiAccess: input.apiAccess ?? true,
    env: input.env ?? {},
    readOnlyRootFilesystem: input.readOnlyRootFilesystem ?? true,
  };
  check(app);
  return app;
}

const WHAT = "the manifests of an application";

/** The highest port, and the highest count that the API server stores for replicas. */
const MAX_PORT = 65_535;
const MAX_REPLICAS = 2_147_483_647;

const GRACE_FIELDS: readonly (keyof GraceParts)[] = [
  "preStopSeconds",
  "prestopGraceSeconds",
  "shutdownTimeoutSeconds",
  "bufferSeconds",
];

const ENV_NAME = /^[A-Za-z_.-][A-Za-z0-9_.-]*$/;

function check(app: App): void {
  const must = (field: keyof App, value: unknown, right: boolean, wish: string) =>
    demand(WHAT, field, value, right, wish);
  const whole = (field: keyof App, value: number, least: number, most: number) =>
    must(
      field,
      value,
      Number.isInteger(value) && value >= least && value <= most,
      `a whole number from ${least} to ${most}`,
    );
  demandSubject(WHAT, app.name, app.namespace);
  must("image", app.image, /^\S(.*\S)?$/.test(app.image), "a text without blanks around it");
  whole("port", app.port, 1, MAX_PORT);
  whole("replicas", app.replicas, 0, MAX_REPLICAS);
  for (const field of ["livePath", "readyPath", "startupPath"] as const) {
    must(field, app[field], app[field].startsWith("/"), "a path that begins with /");
  }
  for (const field of GRACE_FIELDS) whole(field, app[field], 0, MAX_GRACE_SECONDS);
  if (app.leaseName !== null) {
    must("leaseName", app.leaseName, isDnsSubdomain(app.leaseName), "a DNS subdomain");
  }
  for (const name of app.configMaps) {
    must("configMaps", name, isDnsSubdomain(name), "DNS subdomains");
  }
  for (const name of Object.keys(app.env)) {
    const form = "names of letters, digits, '_', '-' and '.', with no digit first";
    must("env", name, ENV_NAME.test(name), form);
    const free = !DOWNWARD_NAMES.has(name);
    must("env", name, free, "names other than those that the pod itself fills in");
  }
}
