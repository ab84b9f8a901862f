/**
 * The values that the manifests of the service are rendered from: those of the reference chart with its defaults
 * (deploy-api 15.2), and ours beside them.
 *
 * Where a default differs from the chart's, difference 27 says why: two replicas, a rolling update, and the time that an
 * orderly stop takes.
 *
 * @module
 */

import { z } from "zod";

/** A switch. */
function flag(fallback: boolean, description: string) {
  return z.boolean("true or false").default(fallback).describe(description);
}

/** A whole number. */
function integer(fallback: number, least: number, most: number, description: string) {
  const wish = `a whole number from ${least} to ${most}`;
  return z.int(wish).min(least, wish).max(most, wish).default(fallback).describe(description);
}

/** A form that texts must have. */
interface Form {
  /** It follows "must be". */
  readonly wish: string;
  /** It matches whole texts. In the JSON schema it is a `pattern`. */
  readonly pattern: RegExp;
}

/** A text of a form. It may be empty where that is its default. */
function text(fallback: string, description: string, form: Form = ANY_TEXT) {
  const { wish, pattern } = form;
  const rule = fallback === "" ? new RegExp(`^$|${pattern.source}`) : pattern;
  return z.string(wish).regex(rule, wish).default(fallback).describe(description);
}

/** Texts of a form. */
function list({ wish, pattern }: Form, description: string) {
  return z.array(z.string(wish).regex(pattern, wish), "a list").default([]).describe(description);
}

/** One of several words. */
function choice<const Words extends readonly [string, ...string[]]>(
  words: Words,
  fallback: Words[number],
  description: string,
) {
  return z.enum(words, `one of ${words.join(", ")}`).prefault(fallback).describe(description);
}

/** Texts by name, for example labels. */
function texts(description: string) {
  return z.record(z.string(), z.string("a text"), "a mapping of texts").default({})
    .describe(description);
}

/** Parts of an object of the API, handed on as they are: the API server knows what is right. */
function verbatim(description: string) {
  return z.array(z.record(z.string(), z.unknown(), "a mapping"), "a list of mappings").default([])
    .describe(description);
}

/** The longest name: `-planned-operations` is added to it, and a Service has at most 63 characters. */
const MOST_NAME = 44;

const LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";

const ANY_TEXT: Form = { wish: "a text", pattern: /^/ };

const DNS_LABEL: Form = {
  wish: "a DNS label: at most 63 lower-case letters, digits and hyphens",
  pattern: new RegExp(`^${LABEL}$`),
};

const DNS_SUBDOMAIN: Form = {
  wish: "a DNS subdomain: lower-case labels with dots between them, at most 253 characters",
  pattern: new RegExp(`^(?=.{1,253}$)${LABEL}(\\.${LABEL})*$`),
};

const SERVICE_NAME: Form = {
  wish:
    `a DNS label that begins with a letter, at most ${MOST_NAME} lower-case letters, digits and hyphens`,
  pattern: new RegExp(`^[a-z]([-a-z0-9]{0,${MOST_NAME - 2}}[a-z0-9])?$`),
};

const DURATION: Form = {
  wish: "a duration such as 2160h or 30s",
  pattern: /^(\d+(h|m|s|ms))+$/,
};

const ORIGINS: Form = {
  wish: "* or origins with commas between them",
  pattern: /^[^\s,]+( *, *[^\s,]+)*$/,
};

const IMAGE: Form = {
  wish: "the name of an image, without a tag",
  pattern: /^[a-z0-9]([a-z0-9._:/-]*[a-z0-9])?$/,
};

const TAG: Form = { wish: "a tag of an image", pattern: /^\w[\w.-]{0,127}$/ };

const DIGEST: Form = {
  wish: "sha256: and 64 hexadecimal digits",
  pattern: /^sha256:[0-9a-f]{64}$/,
};

const port = (fallback: number, description: string) => integer(fallback, 1, 65_535, description);

const escrowTls = z.strictObject({
  enabled: flag(false, "Serve the TLS port."),
  port: port(8443, "The TLS port, of the container and of the Service."),
  existingSecret: text(
    "",
    "The Secret with tls.crt and tls.key. Needed when the port is served, unless a Certificate makes it.",
    DNS_SUBDOMAIN,
  ),
  certificate: z.strictObject({
    enabled: flag(false, "Ask cert-manager for the certificate."),
    issuerRef: z.strictObject({
      name: text("", "The issuer. Needed when the certificate is asked for.", DNS_SUBDOMAIN),
      kind: choice(["Issuer", "ClusterIssuer"], "Issuer", "The kind of the issuer."),
    }).prefault({}),
    duration: text("2160h", "How long a certificate is valid.", DURATION),
    renewBefore: text("720h", "How long before its end it is renewed.", DURATION),
    dnsNames: list(DNS_SUBDOMAIN, "More names, beside those of the Services."),
  }).prefault({}),
}).prefault({});

const auxiliary = z.strictObject({
  deployAPI: z.strictObject({
    enabled: flag(false, "Serve the deployment API, /deploy/v1."),
    audience: text("bloodraven-deploy", "The audience that a caller's token must be made for."),
    networkPolicy: z.strictObject({
      enabled: flag(false, "Let only labelled pods reach the TLS port."),
      additionalIngress: verbatim(
        "More ingress rules of the policy, as they are. They add to what it allows and never narrow it.",
      ),
    }).prefault({}),
  }).prefault({}),
  escrowTLS: escrowTls,
  service: z.strictObject({
    enabled: flag(true, "Make the Services."),
    name: text(
      "bloodraven",
      "The Service that callers know. NAME-all selects every pod.",
      SERVICE_NAME,
    ),
    port: port(8082, "The port of the auxiliary views in the Services."),
    type: choice(
      ["ClusterIP", "NodePort", "LoadBalancer"],
      "ClusterIP",
      "The type of the Service that callers know.",
    ),
  }).prefault({}),
  wsAllowedOrigins: text(
    "*",
    "The origins that may open a WebSocket: * or a list with commas.",
    ORIGINS,
  ),
  wsMaxClients: integer(100, 0, 100_000, "How many WebSockets at once; 0 sets no limit."),
}).prefault({});

const resources = z.record(
  z.string(),
  z.union([z.string(), z.number()], "a quantity such as 128Mi"),
  "a mapping of quantities",
);

/** The values as a user writes them. An unknown one is refused at every level. */
export const serviceValuesSchema = z.strictObject({
  name: text(
    "holdfast",
    "The name of the Deployment and the service account, and the first part of all other names.",
    SERVICE_NAME,
  ),
  namespace: text("bloodraven", "The namespace. It must be there.", DNS_LABEL),
  clusterDomain: text(
    "cluster.local",
    "The domain of the cluster, for names in a certificate.",
    DNS_SUBDOMAIN,
  ),
  labels: texts("More labels of every object."),
  image: z.strictObject({
    repository: text("holdfast", "The image, without its tag.", IMAGE),
    tag: text("", "Its tag; empty takes the version of this program.", TAG),
    digest: text("", "Its digest. It wins over the tag.", DIGEST),
    pullPolicy: choice(
      ["IfNotPresent", "Always", "Never"],
      "IfNotPresent",
      "When the image is pulled.",
    ),
    pullSecrets: list(DNS_SUBDOMAIN, "Secrets to pull it with."),
  }).prefault({}),
  replicaCount: integer(2, 0, 100, "How many replicas: one leads, the others wait."),
  strategy: choice(
    ["RollingUpdate", "Recreate"],
    "RollingUpdate",
    "How a new version comes. Recreate leaves a time without a leader.",
  ),
  terminationGracePeriodSeconds: z.int("a whole number from 1 to 86400")
    .min(1, "a whole number from 1 to 86400").max(86_400, "a whole number from 1 to 86400")
    .nullable().default(null)
    .describe("How long a pod may take to end; empty takes what an orderly stop needs, 45."),
  leaderElection: z.strictObject({
    enabled: flag(true, "Run the election, so that one replica leads."),
    leaseName: text(
      "holdfast.shipstream.io",
      "The Lease of the election. Never the reference operator's own.",
      DNS_SUBDOMAIN,
    ),
    label: flag(
      true,
      "Label the leader's pod, so that the Service reaches the leader alone. It allows to patch the pods of the namespace.",
    ),
  }).prefault({}),
  auxiliary,
  keyringEscrow: z.strictObject({
    enabled: flag(
      false,
      "Allow what /keyring/escrow on the TLS port does with Secrets. Without it every push of a keyring is refused.",
    ),
    namespaces: list(
      DNS_LABEL,
      "The namespaces of the groups. Only there may the service read and write Secrets; empty means everywhere.",
    ),
  }).prefault({}),
  plannedOperations: z.strictObject({
    enabled: flag(
      false,
      "Serve the annotation of planned failovers, for an operator that does not ask the gate.",
    ),
  }).prefault({}),
  config: z.record(z.string(), z.unknown(), "a mapping").default({})
    .describe("More keys of the configuration, as in holdfast.yaml."),
  rbac: z.strictObject({
    create: flag(true, "Make the roles."),
    rules: choice(
      ["least", "reference"],
      "least",
      "The least that is switched on, or the broad rule set of the reference.",
    ),
  }).prefault({}),
  serviceAccount: z.strictObject({
    create: flag(true, "Make the service account."),
    name: text("", "Its name; empty takes that of the Deployment.", DNS_SUBDOMAIN),
    annotations: texts("Its annotations."),
  }).prefault({}),
  podDisruptionBudget: z.strictObject({
    enabled: flag(true, "Let a drain take one replica at a time. Only with two or more."),
  }).prefault({}),
  topologySpread: z.strictObject({
    enabled: flag(true, "Spread the replicas over nodes and zones."),
    whenUnsatisfiable: choice(
      ["ScheduleAnyway", "DoNotSchedule"],
      "ScheduleAnyway",
      "What to do where they cannot be spread.",
    ),
  }).prefault({}),
  metrics: z.strictObject({
    serviceMonitor: monitor("Make a ServiceMonitor of the Prometheus operator."),
    podMonitor: monitor("Make a PodMonitor of the Prometheus operator."),
  }).prefault({}),
  resources: z.strictObject({
    requests: resources.default({ cpu: "50m", memory: "128Mi" }).describe("What is set aside."),
    limits: resources.default({ memory: "256Mi" }).describe("What is allowed at most."),
  }).prefault({}),
  podLabels: texts("More labels of the pods."),
  podAnnotations: texts("Annotations of the pods."),
  nodeSelector: texts("Labels of the nodes to run on."),
  tolerations: verbatim("Taints to live with, as they are."),
  affinity: z.record(z.string(), z.unknown(), "a mapping").default({})
    .describe("The affinity of the pods, as it is."),
  priorityClassName: text("", "The priority class of the pods.", DNS_SUBDOMAIN),
});

function monitor(description: string) {
  return z.strictObject({
    enabled: flag(false, description),
    interval: text("30s", "How often it is read.", DURATION),
    labels: texts("More labels, for a Prometheus that selects by them."),
  }).prefault({});
}

/** The values with all defaults filled in. */
export type ServiceValues = z.output<typeof serviceValuesSchema>;

/** The JSON schema of the values, for editors and for checks before a render. Every key may be left out. */
export function serviceValuesJsonSchema(): Readonly<Record<string, unknown>> {
  const { $schema, ...schema } = z.toJSONSchema(serviceValuesSchema, { io: "input" });
  return { $schema, title: "The values of the manifests of Holdfast", ...schema };
}
