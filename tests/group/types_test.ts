import assert from "node:assert/strict";
import { ZodError } from "zod";
import { MYSQL_DATABASES, MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";

const metadata = { name: "orders", namespace: "database" };

Deno.test("a group without spec and status is read, and so is one with empty ones", () => {
  assert.equal(MYSQL_FAILOVER_GROUPS.parse({ metadata }).status, undefined);
  for (const empty of [{}, null]) {
    MYSQL_FAILOVER_GROUPS.parse({ metadata, spec: empty, status: empty });
    MYSQL_DATABASES.parse({ metadata, spec: empty });
  }
});

Deno.test("unknown members and unknown values of enumerations are kept", () => {
  const group = {
    metadata,
    spec: { sites: [{ name: "iad", role: "arbiter", zone: "a" }], flavour: "sour" },
    status: {
      activeSite: "iad",
      updatePhase: "UpdatingReplicas",
      sites: [{ name: "iad", state: "dreaming", recoveryState: "Recloning", color: 1 }],
      dragonfly: { phase: "Hatching", upgrade: { phase: "Molting", step: 2 } },
      conditions: [{ type: "Ready", status: "True", message: "m", observedGeneration: 3 }],
    },
  };
  assert.deepEqual(MYSQL_FAILOVER_GROUPS.parse(group), group);
});

Deno.test("a member of another type is an error that names it", () => {
  const bad: readonly (readonly [string, unknown])[] = [
    ["status.activeSite", { activeSite: 1 }],
    ["status.topologyGeneration", { topologyGeneration: "7" }],
    ["status.topologyGeneration", { topologyGeneration: -1 }],
    ["status.topologyGeneration", { topologyGeneration: 1.5 }],
    ["status.topologyGeneration", { topologyGeneration: 2 ** 51 + 1 }],
    ["status.sites", { sites: {} }],
    ["status.sites.0.name", { sites: [{}] }],
    ["status.sites.0.replicating", { sites: [{ name: "iad", replicating: "yes" }] }],
    ["status.sites.0.secondsBehindSource", { sites: [{ name: "a", secondsBehindSource: "9" }] }],
    ["status.conditions.0.status", { conditions: [{ type: "Ready", status: true }] }],
    ["status.plannedFailover", { plannedFailover: "Pending" }],
    ["status.plannedFailover.phase", { plannedFailover: { phase: 1 } }],
    ["status.updatePhase", { updatePhase: true }],
    ["status.restoreInPlace.phase", { restoreInPlace: { phase: [] } }],
    ["status.dragonfly.upgrade.phase", { dragonfly: { upgrade: { phase: 3 } } }],
  ];
  for (const [path, status] of bad) {
    assert.throws(
      () => MYSQL_FAILOVER_GROUPS.parse({ metadata, status }),
      (error) => error instanceof ZodError && error.issues[0]?.path.join(".") === path,
      path,
    );
  }
});

Deno.test("a generation of 2 to the power of 40 is read", () => {
  const status = { topologyGeneration: 2 ** 40 };
  assert.equal(
    MYSQL_FAILOVER_GROUPS.parse({ metadata, status }).status?.topologyGeneration,
    2 ** 40,
  );
});

Deno.test("a database whose clients cannot be read is an error", () => {
  const database = (deploymentClients: unknown) => ({ metadata, spec: { deploymentClients } });
  MYSQL_DATABASES.parse(database([{ namespace: "app", serviceAccount: "deployer" }]));
  MYSQL_DATABASES.parse(database([{ namespace: "app" }]));
  for (const clients of ["app/deployer", [["app"]], [{ namespace: 1, serviceAccount: "d" }]]) {
    assert.throws(() => MYSQL_DATABASES.parse(database(clients)), { name: "ZodError" });
  }
});

Deno.test("the kinds are those that the operator's CRDs name", () => {
  const { group, version, plural, kind, namespaced } = MYSQL_FAILOVER_GROUPS;
  assert.deepEqual(
    [group, version, plural, kind, namespaced],
    ["shipstream.io", "v1alpha1", "mysqlfailovergroups", "MysqlFailoverGroup", true],
  );
  assert.deepEqual(
    [MYSQL_DATABASES.group, MYSQL_DATABASES.plural, MYSQL_DATABASES.kind],
    ["shipstream.io", "mysqldatabases", "MysqlDatabase"],
  );
});
