import assert from "node:assert/strict";
import fc from "fast-check";
import { authorize } from "../../lib/auth/authorize.ts";
import { MYSQL_DATABASES, type MysqlDatabase } from "../../lib/group/types.ts";

const CALLER = { namespace: "app-ns", serviceAccount: "deployer" };

function database(
  name: string,
  { namespace = "database-ns", group = "orders", clients = [CALLER], deleting = false }: {
    namespace?: string;
    group?: string;
    clients?: readonly { namespace?: string; serviceAccount?: string }[] | null;
    deleting?: boolean;
  } = {},
): MysqlDatabase {
  return MYSQL_DATABASES.parse({
    metadata: { name, namespace, ...(deleting && { deletionTimestamp: "2026-01-01T00:00:00Z" }) },
    spec: { groupRef: { name: group }, deploymentClients: clients },
  });
}

const FORBIDDEN = { outcome: "forbidden" };
const forbids = (...databases: MysqlDatabase[]) =>
  assert.deepEqual(authorize(databases, CALLER, "orders"), FORBIDDEN);

Deno.test("a caller that one database names may act for it, in its namespace", () => {
  const other = database("other", { clients: [{ namespace: "x", serviceAccount: "y" }, CALLER] });
  assert.deepEqual(authorize([other], CALLER, "orders"), {
    outcome: "authorized",
    namespace: "database-ns",
    instances: ["other"],
  });
});

Deno.test("deploy-api 16 item 13: a database that does not count authorizes nobody", () => {
  forbids();
  forbids(database("tenant", { clients: [{ ...CALLER, serviceAccount: "stranger" }] }));
  forbids(database("tenant", { clients: [{ ...CALLER, namespace: "elsewhere" }] }));
  forbids(
    database("tenant", { clients: [{ namespace: "app-ns" }, { serviceAccount: "deployer" }] }),
  );
  forbids(database("tenant", { clients: [] }));
  forbids(database("tenant", { clients: null }));
  forbids(database("tenant", { group: "other" }));
  forbids(database("tenant", { deleting: true }));
  forbids(MYSQL_DATABASES.parse({ metadata: { name: "tenant", namespace: "database-ns" } }));
  forbids(MYSQL_DATABASES.parse({
    metadata: { name: "tenant" },
    spec: { groupRef: { name: "orders" }, deploymentClients: [CALLER] },
  }));
});

Deno.test("deploy-api 16 item 14: a caller of several databases has them all, in the order of the list", () => {
  const databases = [database("zeta"), database("tenant"), database("alien", { group: "other" })];
  assert.deepEqual(authorize(databases, CALLER, "orders"), {
    outcome: "authorized",
    namespace: "database-ns",
    instances: ["zeta", "tenant"],
  });
});

Deno.test("deploy-api 16 item 14: a grant for an instance counts that database alone", () => {
  const databases = [database("tenant"), database("shop"), database("alien", { clients: [] })];
  assert.deepEqual(authorize(databases, CALLER, "orders", "shop"), {
    outcome: "authorized",
    namespace: "database-ns",
    instances: ["shop"],
  });
  for (const instance of ["alien", "missing", ""]) {
    assert.deepEqual(authorize(databases, CALLER, "orders", instance), FORBIDDEN, instance);
  }
});

Deno.test("deploy-api 16 item 15: databases in two namespaces leave it open which group is meant", () => {
  const twice = [database("tenant"), database("tenant", { namespace: "second" })];
  assert.deepEqual(authorize(twice, CALLER, "orders"), FORBIDDEN);
  assert.deepEqual(authorize(twice, CALLER, "orders", "tenant"), FORBIDDEN);
  const apart = [database("tenant"), database("shop", { namespace: "second" })];
  assert.deepEqual(authorize(apart, CALLER, "orders"), FORBIDDEN);
  assert.equal(authorize(apart, CALLER, "orders", "shop").outcome, "authorized");
  const unnamed = [database("tenant"), database("tenant", { namespace: "second", clients: [] })];
  assert.equal(authorize(unnamed, CALLER, "orders").outcome, "authorized");
});

Deno.test("nobody is authorized without a database that names the caller, and nothing but the group decides", () => {
  const few = (...names: string[]) => fc.constantFrom(...names);
  const client = fc.record({
    namespace: few("app-ns", "b"),
    serviceAccount: few("deployer", "c"),
  }, { noNullPrototype: true });
  const any = fc.record({
    name: few("tenant", "shop"),
    namespace: few("database-ns", "second"),
    group: few("orders", "other"),
    clients: fc.array(client, { maxLength: 2 }),
    deleting: fc.boolean(),
  });
  const databases = fc.array(any.map(({ name, ...rest }) => database(name, rest)), {
    maxLength: 4,
  });
  fc.assert(fc.property(databases, fc.option(few("tenant", "shop")), (list, instance) => {
    const verdict = authorize(list, CALLER, "orders", instance ?? undefined);
    if (verdict.outcome === "authorized") {
      assert.ok(verdict.instances.length > 0);
      for (const name of verdict.instances) {
        assert.ok(
          list.some(({ metadata, spec }) =>
            metadata.name === name && metadata.namespace === verdict.namespace &&
            !metadata.deletionTimestamp && spec?.groupRef?.name === "orders" &&
            spec.deploymentClients?.some((entry) =>
              entry.namespace === "app-ns" && entry.serviceAccount === "deployer"
            )
          ),
        );
      }
    }
    // Databases of other groups change nothing: so a server that selects gives the same answer.
    const selected = list.filter(({ spec }) => spec?.groupRef?.name === "orders");
    assert.deepEqual(authorize(selected, CALLER, "orders", instance ?? undefined), verdict);
  }));
});
