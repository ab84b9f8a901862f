import assert from "node:assert/strict";
import { loadConfig, readConfig } from "../../lib/config/layers.ts";

const none = () => undefined;
const load = (env: Record<string, string>) => loadConfig({ env, readTextFile: none });
const problemsOf = (env: Record<string, string>) =>
  readConfig({ env, readTextFile: none }).problems.map(({ message }) => message);

Deno.test("the operator's variables set the keys of the API and its listener", () => {
  const { config, sources } = load({
    BLOODRAVEN_DEPLOY_API_ENABLED: "TRUE",
    BLOODRAVEN_DEPLOY_API_AUDIENCE: "me",
    BLOODRAVEN_ESCROW_TLS_CERT_FILE: "/tls.crt",
    BLOODRAVEN_ESCROW_TLS_KEY_FILE: "/tls.key",
    BLOODRAVEN_ESCROW_TLS_ADDR: ":9443",
  });
  assert.equal(config.deploy_api.enabled, true);
  assert.equal(config.deploy_api.audience, "me");
  assert.deepEqual(config.tls, { cert_file: "/tls.crt", key_file: "/tls.key" });
  assert.deepEqual(config.listen.tls, { port: 9443 });
  assert.equal(sources.get("listen.tls"), "BLOODRAVEN_ESCROW_TLS_ADDR");
});

Deno.test("the operator's variables set the origins and the number of WebSocket clients", () => {
  const { config, sources } = load({
    BLOODRAVEN_WS_ALLOWED_ORIGINS: "https://a.example.org, https://b.example.org",
    BLOODRAVEN_WS_MAX_CLIENTS: "0",
  });
  assert.deepEqual(config.auxiliary, {
    ws_allowed_origins: ["https://a.example.org", "https://b.example.org"],
    ws_max_clients: 0,
    status_page: false,
  });
  assert.equal(sources.get("auxiliary.ws_max_clients"), "BLOODRAVEN_WS_MAX_CLIENTS");
  assert.deepEqual(problemsOf({ BLOODRAVEN_WS_MAX_CLIENTS: "many" }), [
    "Cannot use 'auxiliary.ws_max_clients' from BLOODRAVEN_WS_MAX_CLIENTS as it must be a whole number from 0 to 100000: current value is a text",
  ]);
});

Deno.test("the operator's switch is on with true in any case, and off with everything else", () => {
  for (
    const [text, expected] of [["true", true], [" True ", true], ["1", false], [
      "no",
      false,
    ]] as const
  ) {
    assert.equal(load({ BLOODRAVEN_DEPLOY_API_ENABLED: text }).config.deploy_api.enabled, expected);
  }
});

Deno.test("an empty variable of the reference sets nothing", () => {
  const empty = Object.fromEntries(
    [
      "BLOODRAVEN_DEPLOY_API_ENABLED",
      "BLOODRAVEN_DEPLOY_API_AUDIENCE",
      "BLOODRAVEN_ESCROW_TLS_ADDR",
      "BLOODRAVEN_WS_ALLOWED_ORIGINS",
      "BLOODRAVEN_WS_MAX_CLIENTS",
      "AUTUMN_ROLE",
      "AUTUMN_SERVER__HOST",
      "AUTUMN_SERVER__PORT",
    ].map((name) => [name, ""]),
  );
  assert.deepEqual(load(empty), load({}));
});

Deno.test("the other variables of the reference are ignored", () => {
  const env = {
    BLOODRAVEN_LICENSE: "x",
    BLOODRAVEN_OPERATOR_IMAGE: "y",
    AUTUMN_DATABASE__URL: "z",
  };
  assert.deepEqual(load(env), load({}));
});

Deno.test("the plugin's variables set the section kubernetes, with their own names in errors", () => {
  const { config } = load({
    AUTUMN_KUBERNETES__NAMESPACE: "shop",
    AUTUMN_KUBERNETES__LEADER_ELECTION__ENABLED: "on",
    AUTUMN_KUBERNETES__LEADER_ELECTION__LEASE_NAME: "jobs",
    AUTUMN_KUBERNETES__LEADER_ELECTION__ROLES: "worker, combined",
    AUTUMN_KUBERNETES__EVENTS: "off",
    AUTUMN_KUBERNETES__CONFIG_MAPS__WATCH: "settings, limits,",
  });
  assert.equal(config.kubernetes.events, false);
  assert.deepEqual(config.kubernetes.config_maps.watch, ["settings", "limits"]);
  assert.equal(config.kubernetes.namespace, "shop");
  assert.equal(config.kubernetes.leader_election.enabled, true);
  assert.equal(config.kubernetes.leader_election.lease_name, "jobs");
  assert.deepEqual(config.kubernetes.leader_election.roles, ["worker", "combined"]);
  assert.deepEqual(
    problemsOf({ AUTUMN_KUBERNETES__LEADER_ELECTION: "x", AUTUMN_KUBERNETES__ENABLED: "perhaps" }),
    [
      "Cannot use 'kubernetes.enabled' from AUTUMN_KUBERNETES__ENABLED as it must be true or false: current value is a text",
      "Cannot use AUTUMN_KUBERNETES__LEADER_ELECTION as 'kubernetes.leader_election' is a section, not a key: the keys in 'kubernetes.leader_election' are enabled, lease_name, identity, lease_duration_secs, renew_deadline_secs, retry_period_secs, release_on_shutdown, lead_when_detached, roles, label_leader",
    ],
  );
});

Deno.test("AUTUMN_ROLE sets the role, in any case", () => {
  assert.equal(load({ AUTUMN_ROLE: "Worker" }).config.host.role, "worker");
  assert.match(
    problemsOf({ AUTUMN_ROLE: "king" }).join(),
    /^Cannot use 'host\.role' from AUTUMN_ROLE/,
  );
});

Deno.test("the server's host and port each change their part of host.listen", () => {
  const listen = (env: Record<string, string>) => load(env).config.host.listen;
  assert.deepEqual(listen({ AUTUMN_SERVER__HOST: "0.0.0.0" }), { host: "0.0.0.0", port: 3000 });
  assert.deepEqual(listen({ AUTUMN_SERVER__PORT: "80" }), { host: "127.0.0.1", port: 80 });
  assert.deepEqual(listen({ AUTUMN_SERVER__HOST: "::1", AUTUMN_SERVER__PORT: "0" }), {
    host: "::1",
    port: 0,
  });
  const { sources } = load({ AUTUMN_SERVER__HOST: "::1", AUTUMN_SERVER__PORT: "0" });
  assert.equal(sources.get("host.listen"), "AUTUMN_SERVER__HOST and AUTUMN_SERVER__PORT");
});

Deno.test("a part of host.listen is put over the layers below", () => {
  const { config } = loadConfig({
    env: { AUTUMN_SERVER__PORT: "81" },
    readTextFile: (path) => path === "holdfast.yaml" ? "host: {listen: 'localhost:80'}" : undefined,
  });
  assert.deepEqual(config.host.listen, { host: "localhost", port: 81 });
});

Deno.test("a host or port that is none is told by the variable's name", () => {
  for (
    const [name, text] of [["PORT", "http"], ["PORT", "70000"], ["PORT", "$&"], ["HOST", "a b"]]
  ) {
    assert.deepEqual(problemsOf({ [`AUTUMN_SERVER__${name}`]: text ?? "" }), [
      `Cannot use 'host.listen' from AUTUMN_SERVER__${name} as it must be an address such as :8443, 127.0.0.1:8443 or [::1]:8443: current value is a text`,
    ]);
  }
});
