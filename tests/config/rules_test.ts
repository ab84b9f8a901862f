import assert from "node:assert/strict";
import fc from "fast-check";
import {
  checkConfigMaps,
  checkDeployApi,
  checkElection,
  checkExecutor,
  checkNamespace,
  checkOrigins,
  checkPlannedOperations,
  checkService,
  checkTls,
  demoRules,
  isDnsLabel,
  isDnsSubdomain,
  libraryRules,
  parseRole,
  serviceRules,
  takesPart,
} from "../../lib/config/rules.ts";
import { timingValid } from "../../lib/election/policy.ts";
import { configSchema } from "../../lib/config/schema.ts";

const read = (input: unknown) => configSchema.parse(input);
const withElection = (election: Record<string, unknown>) =>
  read({ kubernetes: { leader_election: { enabled: true, lease_name: "x", ...election } } });
const messagesOf = (broken: readonly { message: string }[]) => broken.map(({ message }) => message);

Deno.test("the defaults break no rule of the library", () => {
  assert.deepEqual(libraryRules.flatMap((rule) => rule(read({}))), []);
});

Deno.test("a DNS label has 1 to 63 lower-case letters, digits and inner hyphens", () => {
  for (const text of ["a", "0", "a-b", "a".repeat(63), "a--b"]) assert(isDnsLabel(text), text);
  const wrong = ["", "-a", "a-", "A", "a.b", "a_b", "a b", "é", "a".repeat(64), "a\n"];
  for (const text of wrong) assert(!isDnsLabel(text), JSON.stringify(text));
});

Deno.test("a DNS subdomain is labels with dots between them, at most 253 characters", () => {
  const longest = Array.from({ length: 4 }, () => "a".repeat(62)).join(".") + ".b";
  assert.equal(longest.length, 253);
  for (const text of ["a", "a.b", "holdfast.shipstream.io", longest]) {
    assert(isDnsSubdomain(text), text);
  }
  for (const text of ["", ".", "a.", ".a", "a..b", "A.b", `${longest}c`, "a.-b"]) {
    assert(!isDnsSubdomain(text), text);
  }
});

Deno.test("the namespace is a DNS label, or empty", () => {
  for (const namespace of ["", "shop"]) {
    assert.deepEqual(checkNamespace(read({ kubernetes: { namespace } })), []);
  }
  const broken = checkNamespace(read({ kubernetes: { namespace: "my.shop" } }));
  assert.deepEqual(broken, [{
    keys: ["kubernetes.namespace"],
    message:
      "Cannot use 'kubernetes.namespace' as it must be a DNS label: at most 63 lower-case letters, digits and hyphens, with a letter or digit first and last",
  }]);
});

Deno.test("an election needs a Lease name that is a DNS subdomain", () => {
  assert.deepEqual(messagesOf(checkElection(withElection({ lease_name: "" }))), [
    "Cannot run the election as 'kubernetes.leader_election.lease_name' is empty: give the Lease a name",
  ]);
  assert.deepEqual(messagesOf(checkElection(withElection({ lease_name: "Not_A_Name" }))), [
    "Cannot use 'kubernetes.leader_election.lease_name' as it must be a DNS subdomain: lower-case labels with dots between them, at most 253 characters",
  ]);
  assert.deepEqual(checkElection(withElection({ lease_name: "a.b" })), []);
});

Deno.test("bad timing is told with the rules and the three values", () => {
  const config = withElection({ lease_duration_secs: 10, renew_deadline_secs: 10 });
  assert.deepEqual(messagesOf(checkElection(config)), [
    "Cannot run the election as the lease duration must be at most 3600 s and above the renew deadline, which must be more than 1.2 times the retry period, which must be above 0: current values are lease_duration_secs 10, renew_deadline_secs 10, retry_period_secs 2",
  ]);
  const [broken] = checkElection(config);
  assert.deepEqual(broken?.keys, [
    "kubernetes.leader_election.lease_duration_secs",
    "kubernetes.leader_election.renew_deadline_secs",
    "kubernetes.leader_election.retry_period_secs",
  ]);
});

Deno.test("timing in seconds is judged by the rule of the election, for every value that the schema takes", () => {
  const seconds = fc.oneof(
    fc.integer({ min: 0, max: 30 }),
    fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  );
  fc.assert(fc.property(seconds, seconds, seconds, (lease, renew, retry) => {
    const broken = checkElection(withElection({
      lease_duration_secs: lease,
      renew_deadline_secs: renew,
      retry_period_secs: retry,
    }));
    const valid = timingValid({ leaseMs: lease * 1e3, renewMs: renew * 1e3, retryMs: retry * 1e3 });
    assert.equal(broken.length === 0, valid);
  }));
});

Deno.test("while election is off, neither its name nor its timing is looked at", () => {
  const config = withElection({
    enabled: false,
    lease_name: "",
    retry_period_secs: 0,
    roles: ["king"],
  });
  assert.deepEqual(checkElection(config), []);
});

Deno.test("each role of the election is a process role, in any case, and a bad one is named", () => {
  assert.deepEqual(checkElection(withElection({ roles: ["WEB", " Worker ", "combined"] })), []);
  assert.deepEqual(messagesOf(checkElection(withElection({ roles: ["web", "king", "a\nb"] }))), [
    `Cannot use 'kubernetes.leader_election.roles' as each must be one of combined, web, worker: "king", "a\\nb" is not`,
  ]);
  assert.equal(parseRole("WORKER"), "worker");
  assert.equal(parseRole("king"), undefined);
});

Deno.test("a process takes part when its role is listed, or no role is, and election is on", () => {
  const table = [
    [true, "web", [], true],
    [true, "web", ["web"], true],
    [true, "web", ["WEB", "worker"], true],
    [true, "web", ["worker"], false],
    [false, "web", [], false],
    [false, "web", ["web"], false],
  ] as const;
  for (const [enabled, role, roles, expected] of table) {
    const config = read({ host: { role }, kubernetes: { leader_election: { enabled, roles } } });
    assert.equal(takesPart(config), expected, JSON.stringify([enabled, role, roles]));
  }
});

Deno.test("a certificate without its key, and a key without its certificate, are refused", () => {
  assert.deepEqual(messagesOf(checkTls(read({ tls: { cert_file: "a" } }))), [
    "Cannot serve TLS as 'tls.cert_file' is given and 'tls.key_file' is not: give both or none",
  ]);
  assert.deepEqual(messagesOf(checkTls(read({ tls: { key_file: "a" } }))), [
    "Cannot serve TLS as 'tls.key_file' is given and 'tls.cert_file' is not: give both or none",
  ]);
  assert.deepEqual(checkTls(read({})), []);
  assert.deepEqual(checkTls(read({ tls: { cert_file: "a", key_file: "b" } })), []);
});

const TLS = { cert_file: "a", key_file: "b" };
const LED = { leader_election: { enabled: true, lease_name: "x" } };

Deno.test("the deploy API is refused without a certificate and key", () => {
  const broken = checkDeployApi(read({ deploy_api: { enabled: true }, kubernetes: LED }));
  assert.deepEqual(messagesOf(broken), [
    "Cannot serve the deploy API without TLS: give 'tls.cert_file' and 'tls.key_file', or set 'deploy_api.enabled' to false",
  ]);
});

Deno.test("the deploy API is refused without leader election", () => {
  const broken = checkDeployApi(read({ deploy_api: { enabled: true }, tls: TLS }));
  assert.deepEqual(messagesOf(broken), [
    "Cannot serve the deploy API without leader election: set 'kubernetes.leader_election.enabled' to true, or 'deploy_api.enabled' to false",
  ]);
});

Deno.test("both reasons against the deploy API are told together, and none while it is off", () => {
  assert.equal(checkDeployApi(read({ deploy_api: { enabled: true } })).length, 2);
  assert.deepEqual(checkDeployApi(read({})), []);
  assert.deepEqual(
    checkDeployApi(read({ deploy_api: { enabled: true }, tls: TLS, kubernetes: LED })),
    [],
  );
});

Deno.test("one missing file is told once, not also as missing TLS", () => {
  const config = read({
    deploy_api: { enabled: true },
    tls: { cert_file: "a" },
    kubernetes: { ...LED, required: true },
  });
  assert.equal(serviceRules.flatMap((rule) => rule(config)).length, 1);
});

Deno.test("the service takes no setting that would do without a cluster", () => {
  const broken = checkService(read({
    kubernetes: { enabled: false, required: false, leader_election: { lead_when_detached: true } },
  }));
  assert.deepEqual(messagesOf(broken), [
    "Cannot serve without a cluster, where all state is kept: 'kubernetes.enabled' must be true, current value is false",
    "Cannot serve without a cluster, where all state is kept: 'kubernetes.required' must be true, current value is false",
    "Cannot serve without a cluster, where all state is kept: 'kubernetes.leader_election.lead_when_detached' must be false, current value is true",
  ]);
});

Deno.test("the service is refused when its role keeps it out of the election", () => {
  const roles = ["worker"];
  const kubernetes = { required: true, leader_election: { enabled: true, lease_name: "x", roles } };
  assert.deepEqual(messagesOf(checkService(read({ kubernetes }))), [
    "Cannot serve as this process could never lead: 'kubernetes.leader_election.roles' must be empty or contain its 'host.role', which is combined",
  ]);
  assert.deepEqual(checkService(read({ kubernetes, host: { role: "worker" } })), []);
});

Deno.test("planned operations need the deploy API", () => {
  const planned_operations = { enabled: true };
  const on = read({ planned_operations, deploy_api: { enabled: true } });
  assert.deepEqual(checkPlannedOperations(on), []);
  assert.deepEqual(messagesOf(checkPlannedOperations(read({ planned_operations }))), [
    "Cannot serve planned operations without the deploy API: set 'deploy_api.enabled' to true, or 'planned_operations.enabled' to false",
  ]);
});

Deno.test("only the demo may move status by itself", () => {
  assert.deepEqual(checkExecutor(read({})), []);
  const status = read({ planned_operations: { executor: "status" } });
  assert.deepEqual(messagesOf(checkExecutor(status)), [
    "Cannot use 'planned_operations.executor' as it must be external outside the demo: current value is status",
  ]);
  assert(serviceRules.includes(checkExecutor) && !demoRules.includes(checkExecutor));
});

Deno.test("each ConfigMap that is followed has a name of its own that is a DNS subdomain", () => {
  const broken = (...watch: string[]) =>
    messagesOf(checkConfigMaps(read({ kubernetes: { config_maps: { watch } } })));
  assert.deepEqual(broken(), []);
  assert.deepEqual(broken("a", "b.c"), []);
  assert.deepEqual(broken("a", "B", ""), [
    `Cannot use 'kubernetes.config_maps.watch' as each must be a DNS subdomain: lower-case labels with dots between them, at most 253 characters: "B", "" is not`,
  ]);
  assert.deepEqual(broken("a", "b", "a"), [
    `Cannot use 'kubernetes.config_maps.watch' as it must name each ConfigMap once: "a" is there again`,
  ]);
  assert(libraryRules.includes(checkConfigMaps));
});

Deno.test("the origins of WebSockets are * or origins, and at least one", () => {
  const check = (origins: readonly string[]) =>
    messagesOf(checkOrigins(read({ auxiliary: { ws_allowed_origins: origins } })));
  for (const origins of [["*"], ["https://a.example.org"], ["http://a:8080", "https://b"]]) {
    assert.deepEqual(check(origins), []);
  }
  const wish =
    "Cannot use 'auxiliary.ws_allowed_origins' as it must be * or origins such as https://dashboard.example.org: ";
  assert.deepEqual(check([]), [`${wish}it is empty`]);
  assert.deepEqual(check(["https://a/", "*.example.org", "https://b"]), [
    `${wish}"https://a/", "*.example.org" is none`,
  ]);
  assert.ok(serviceRules.includes(checkOrigins) && demoRules.includes(checkOrigins));
});
