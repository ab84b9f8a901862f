import assert from "node:assert/strict";
import { revoke } from "../../../handlers/commands/revoke.ts";
import { status } from "../../../handlers/commands/status.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../../lib/testing/mod.ts";
import { Rig } from "../../controllers/rig.ts";
import { NAMESPACE, seedCluster } from "../../service/in_process.ts";
import { CommandRig, type InterruptibleSystem } from "./command_rig.ts";

/** A column of the table of rights in docs/commands.md: the verbs by resource. */
async function rightsOf(column: string): Promise<readonly { resource: string; verbs: string[] }[]> {
  const page = await Deno.readTextFile(new URL("../../../docs/commands.md", import.meta.url));
  const [, section = ""] = page.split("\n## Rights\n");
  const [head = [], , ...rows] = section.split("\n").filter((line) => line.startsWith("|"))
    .map((line) => line.split("|").slice(1, -1).map((cell) => cell.replaceAll("`", "").trim()));
  const at = head.indexOf(column);
  assert.ok(at > 0, `no column ${column} in ${head}`);
  return rows.map((row) => ({
    resource: row[0] ?? "",
    verbs: (row[at] ?? "").split(", ").filter((verb) => verb !== ""),
  }));
}

/** A cluster with RBAC, somebody who leads, a lease, and a user with the rights of a column but for one verb. */
async function openFor(column: string, without?: string): Promise<{
  readonly place: CommandRig;
  readonly alice: InterruptibleSystem;
}> {
  const clock = new TestClock();
  const fake = new FakeCluster({ clock, entropy: seededEntropy(1), rbac: true });
  seedCluster(fake);
  const rules = (await rightsOf(column)).flatMap(({ resource, verbs }) => {
    const [plural, ...group] = resource.split(".");
    const kept = verbs.filter((verb) => `${verb} ${plural}` !== without);
    return kept.length === 0
      ? []
      : [{ apiGroups: [group.join(".")], resources: [plural], verbs: kept }];
  });
  const metadata = { name: "alice", namespace: NAMESPACE };
  const apiVersion = "rbac.authorization.k8s.io/v1";
  fake.apply({ apiVersion, kind: "Role", metadata, rules });
  fake.apply({
    apiVersion,
    kind: "RoleBinding",
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "alice" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "alice" }],
  });
  const place = await CommandRig.open(new Rig({ fake, clock }));
  await place.rig.start();
  assert.equal((await place.rig.service.client().grant("op-1", "tenant")).status, 201);
  return { place, alice: place.administrator({}, fake.userToken("alice")) };
}

const look = {
  from: undefined,
  settings: {},
  namespace: NAMESPACE,
  all: true,
  watch: false,
  json: false,
};

const revocation = {
  group: "orders",
  namespace: NAMESPACE,
  operation: undefined,
  reason: undefined,
  yes: true,
  timeoutMs: 10_000,
};

Deno.test("the rights of docs/commands.md are enough to look, and the API server asks for each", async () => {
  for (const [without, expected] of [[undefined, 0], ["list leases", 112]] as const) {
    const { place, alice } = await openFor("status", without);
    await using _place = place;
    assert.equal(await place.whileTimePasses(status({ ...look, system: alice })), expected);
  }
});

Deno.test("the rights of docs/commands.md are enough to watch", async () => {
  const { place, alice } = await openFor("status --watch");
  await using _place = place;
  const watching = status({ ...look, all: false, watch: true, system: alice });
  await place.until(() => alice.written.stdout.includes("operation op-1"));
  assert.equal((await place.rig.service.client().grant("op-1", "tenant")).status, 200);
  await place.until(() => alice.written.stdout.split("\nat ").length >= 2);
  alice.signal("SIGINT");
  assert.equal(await place.whileTimePasses(watching), 0);
  assert.doesNotMatch(alice.written.stdout, /problem/);
});

Deno.test("the rights of docs/commands.md are enough to revoke a group, and each is needed", async () => {
  const table = [
    [undefined, 0],
    ["patch mysqlfailovergroups", 112],
    ["list leases", 112],
    ["get mysqlfailovergroups", 112],
  ] as const;
  for (const [without, expected] of table) {
    const { place, alice } = await openFor("revoke", without);
    await using _place = place;
    assert.equal(await place.whileTimePasses(revoke({ ...revocation, system: alice })), expected);
    if (expected === 0) assert.equal(alice.written.stderr, "");
  }
});

Deno.test("the rights of docs/commands.md are enough to revoke an operation, and each is needed", async () => {
  const table = [[undefined, 0], ["update leases", 112], ["get leases", 112]] as const;
  for (const [without, expected] of table) {
    const { place, alice } = await openFor("revoke --operation", without);
    await using _place = place;
    const options = { ...revocation, operation: "op-1", system: alice };
    assert.equal(await place.whileTimePasses(revoke(options)), expected, `without ${without}`);
    if (expected === 0) assert.equal(alice.written.stderr, "");
  }
});
