/**
 * The configuration: every key, its default, its range and its meaning. One schema for the service and the library, with
 * the names of kubernetes-plugin 2 where that has one.
 *
 * A key is here when something obeys it. A key of a part that does not exist yet is unknown, so that nobody believes in
 * a setting that nothing reads.
 *
 * @module
 */
import { z } from "zod";
import { address, choice, duration, flag, integer, keysOf, list, text } from "./keys.ts";
import type { RawValue } from "./keys.ts";
import { ANY_ORIGIN } from "./web_origin.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The largest number of seconds that a Lease can hold: a 32-bit signed integer. */
const MOST_SECONDS = 2 ** 31 - 1;

/** The roles that a process can have (kubernetes-plugin 14). */
export const processRoles = ["combined", "web", "worker"] as const;

/** What a process does: everything, requests only, or background work only. */
export type ProcessRole = (typeof processRoles)[number];

const path = { pattern: /^\/[\w./~-]*$/, expects: "a path that begins with /" };

/** The configuration as a user writes it. Keys in snake_case; an unknown key is refused at every level. */
export const configSchema = z.strictObject({
  listen: z.strictObject({
    metrics: address(":8080", "Where `/metrics` is served, without TLS."),
    probes: address(":8081", "Where `/healthz` and `/readyz` are served, without TLS."),
    auxiliary: address(
      ":8082",
      "Where `/status`, `/active-site`, `/pitr-cutoff` and `/ws/status` are served, without TLS and without authentication.",
    ),
    tls: address(
      ":8443",
      "Where `/deploy/v1` and `/keyring/escrow` are served, with TLS. Used when `tls.cert_file` and `tls.key_file` are given.",
    ),
  }).prefault({}),
  tls: z.strictObject({
    cert_file: text(
      "",
      "The certificate chain of the TLS listener, in PEM form. A new file is taken up without a restart.",
      { expects: "a path of a file" },
    ),
    key_file: text(
      "",
      "The private key of that certificate, in PEM form.",
      { expects: "a path of a file" },
    ),
  }).prefault({}),
  deploy_api: z.strictObject({
    enabled: flag(
      false,
      "Serve `/deploy/v1`. Needs `tls.cert_file`, `tls.key_file` and leader election.",
    ),
    audience: text(
      "bloodraven-deploy",
      "The audience that a caller's service account token must be made for.",
      { pattern: /\S/, expects: "a text that is not blank" },
    ),
    request_timeout: duration(
      "10s",
      100,
      MINUTE,
      "How long one request may take, from its first byte to its answer.",
    ),
    terminal_hold_retention: duration(
      "24h",
      0,
      8_760 * HOUR,
      "How long a failover hold that expired or was released is kept. `0s` keeps it as long as its group.",
    ),
    max_hold_age: duration(
      "0s",
      0,
      24 * HOUR,
      "How long one failover hold may be renewed, from its first grant. A renewal past it revokes the hold. `0s` sets no limit.",
    ),
    max_clock_offset: duration(
      "1s",
      100,
      10 * SECOND,
      "How uncertain lease time may be before nobody declares a lease expired.",
    ),
    max_status_age: duration(
      "0s",
      0,
      24 * HOUR,
      "How old the newest observation in a group's status may be before the group counts as not observed. `0s` sets no limit.",
    ),
  }).prefault({}),
  auxiliary: z.strictObject({
    ws_allowed_origins: list(
      "The origins of pages that may open a WebSocket, such as `https://dashboard.example.org`. `*` allows all; with a list, a client without an origin is refused.",
      [ANY_ORIGIN],
    ),
    ws_max_clients: integer(
      100,
      0,
      100_000,
      "How many clients each WebSocket path takes. `0` sets no limit.",
    ),
    status_page: flag(
      false,
      "Serve a page at `/` that shows all groups and their leases. Whoever reaches `listen.auxiliary` can read it.",
    ),
  }).prefault({}),
  planned_operations: z.strictObject({
    enabled: flag(
      false,
      "Serve the `planned-failover` annotation of groups: delay it while a deployment holds it off, then admit it. For an operator that does not integrate by itself.",
    ),
    executor: choice(
      ["external", "status"],
      "external",
      "Who carries out an admitted planned failover. `external` leaves it to the operator, `status` moves the status itself and is for the demo alone.",
    ),
  }).prefault({}),
  kubernetes: z.strictObject({
    enabled: flag(true, "Talk to a cluster. Off leaves only the pod's identity."),
    required: flag(
      false,
      "Refuse to start without a cluster, or when its API does not answer.",
    ),
    namespace: text(
      "",
      "The namespace of the election Lease and of the ConfigMaps. Empty takes the pod's own, then that of the kubeconfig.",
      { expects: "a DNS label of at most 63 characters, or empty" },
    ),
    events: flag(
      true,
      "Write Events about the start, the lead and the stop on the pod. Needs its name in `POD_NAME` or `HOSTNAME`.",
    ),
    leader_election: z.strictObject({
      enabled: flag(false, "Run the election, so that one replica leads."),
      lease_name: text(
        "",
        "The name of the election Lease. Needed when election is on.",
        { expects: "a DNS subdomain of at most 253 characters" },
      ),
      identity: text(
        "",
        "This process in the election. Empty takes the pod's or host's name and eight random digits. Never give two processes the same.",
      ),
      lease_duration_secs: integer(
        15,
        0,
        MOST_SECONDS,
        "Seconds without a renewal after which another replica may take over. At most one hour, and above `renew_deadline_secs`.",
      ),
      renew_deadline_secs: integer(
        10,
        0,
        MOST_SECONDS,
        "Seconds for which the leader believes in its lead after the last good renewal was sent. More than 1.2 times `retry_period_secs`.",
      ),
      retry_period_secs: integer(2, 0, MOST_SECONDS, "Seconds between two tries."),
      release_on_shutdown: flag(
        true,
        "Give up the lead on a stop, so that another replica takes over at once.",
      ),
      lead_when_detached: flag(
        false,
        "Lead without a cluster. For development on one machine only.",
      ),
      roles: list("The process roles that take part in the election. Empty means all."),
      label_leader: flag(
        false,
        "Label the leader's pod `holdfast.shipstream.io/leader=true`, so that a Service can select it. Needs the verb `patch` on pods.",
      ),
    }).prefault({}),
    config_maps: z.strictObject({
      watch: list(
        "The names of the ConfigMaps that an application follows. `serve` follows them too, and reads nothing from them.",
      ),
    }).prefault({}),
  }).prefault({}),
  host: z.strictObject({
    listen: address("127.0.0.1:3000", "Where an application built on the library is served."),
    prestop_grace_secs: integer(
      5,
      0,
      3_600,
      "Seconds between the stop signal and the end of listening: the time that others need to learn of it.",
    ),
    shutdown_timeout_secs: integer(
      30,
      1,
      3_600,
      "Seconds for requests in flight and shutdown hooks together.",
    ),
    role: choice(
      processRoles,
      "combined",
      "What this process does: everything, requests only, or background work only.",
    ),
    live_path: text("/live", "The path of an application's liveness probe.", path),
    ready_path: text("/ready", "The path of an application's readiness probe.", path),
    startup_path: text("/startup", "The path of an application's startup probe.", path),
  }).prefault({}),
  log: z.strictObject({
    level: choice(["debug", "info", "warn", "error"], "info", "The least level that is written."),
    format: choice(
      ["json", "text"],
      "json",
      "The form of a log line. The default is `text` where the log goes to a terminal.",
    ),
  }).prefault({}),
  tracing: z.strictObject({
    enabled: flag(
      false,
      "Make a span of each tick of the election and of each request for a lease, by Deno's OpenTelemetry. Needs `OTEL_DENO=true` in the environment of the process; where spans go to is said by the other `OTEL_…` variables.",
    ),
  }).prefault({}),
});

/**
 * The configuration as the program reads it. Durations are in milliseconds, keys that end in `_secs` in seconds.
 */
export type Config = z.output<typeof configSchema>;

/** The keys of {@linkcode configSchema}. */
export const configKeys = keysOf(configSchema);

/** Defaults that differ from those of the schema, by dotted key. */
export type Defaults = Readonly<Record<string, RawValue>>;

/**
 * What `holdfast serve` assumes beyond the library (design 7): it is nothing without a cluster, and only its leader
 * grants. The Lease is not the reference operator's own `bloodraven.shipstream.io`: of two that share it, one would
 * never lead.
 */
export const serviceDefaults: Defaults = {
  "kubernetes.required": true,
  "kubernetes.leader_election.enabled": true,
  "kubernetes.leader_election.lease_name": "holdfast.shipstream.io",
};
