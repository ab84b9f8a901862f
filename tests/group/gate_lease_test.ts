import assert from "node:assert/strict";
import fc from "fast-check";
import type { Stored } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import {
  GateError,
  gateFacts,
  gateObject,
  type GateRecord,
  parseGate,
  touched,
} from "../../lib/group/gate_lease.ts";
import { healthyGroup } from "./fixtures.ts";

const GROUP = healthyGroup();
const ANNOTATION = "bloodraven.shipstream.io/deployment-gate";

const RECORD: GateRecord = {
  seq: 3,
  site: "iad",
  generation: 12,
  observedGeneration: 7,
  restoreFencing: false,
  pending: null,
  planned: null,
};
const PLANNED: GateRecord["planned"] = {
  operation: "PlannedFailover",
  id: "0c5b3a3e-8f5e-4c0e-9d66-3b7c1c1a2f10",
  by: "holdfast-0",
  since: "2026-01-01T00:00:00Z",
  state: "admitted",
};

function store(lease: Lease, changes: Partial<Lease["metadata"]> = {}): Stored<Lease> {
  const name = lease.metadata.name ?? "";
  return {
    ...lease,
    metadata: { ...lease.metadata, ...changes, name, uid: "g-1", resourceVersion: "5" },
  };
}

const withText = (text: string) =>
  store(gateObject(GROUP, RECORD), { annotations: { [ANNOTATION]: text } });
const withChange = (change: Record<string, unknown>) =>
  withText(JSON.stringify({ ...RECORD, ...change }));

function pathsOf(lease: Stored<Lease>): readonly string[] {
  try {
    parseGate(lease, "uid-1");
  } catch (error) {
    assert.ok(error instanceof GateError);
    return error.paths;
  }
  assert.fail("parsed");
}

Deno.test("a gate shows where the group is, and no list of leases finds it", () => {
  assert.deepEqual(gateObject(GROUP, RECORD), {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: "bloodraven-deploy-orders-gate",
      namespace: "database-ns",
      labels: {
        "bloodraven.shipstream.io/deployment-kind": "gate",
        "bloodraven.shipstream.io/deployment-group": "orders",
      },
      annotations: {
        [ANNOTATION]: '{"seq":3,"site":"iad","generation":12,"observedGeneration":7,' +
          '"restoreFencing":false,"pending":null,"planned":null}',
      },
      ownerReferences: [{
        apiVersion: "shipstream.io/v1alpha1",
        kind: "MysqlFailoverGroup",
        name: "orders",
        uid: "uid-1",
      }],
    },
    spec: { holderIdentity: "iad", leaseTransitions: 12 },
  });
});

Deno.test("a generation that no 32 bits hold is shown clamped and stored whole", () => {
  for (const generation of [2 ** 31 - 1, 2 ** 31, 2 ** 40]) {
    const lease = gateObject(GROUP, { ...RECORD, generation });
    assert.equal(lease.spec?.leaseTransitions, 2_147_483_647);
    assert.equal(parseGate(store(lease), "uid-1").generation, generation);
  }
});

Deno.test("a replaced gate keeps its version and all that others added to it", () => {
  const first = gateObject(GROUP, RECORD);
  const previous = store({ ...first, spec: { ...first.spec, note: 1 } }, {
    labels: { ...first.metadata.labels, team: "blue" },
    annotations: { [ANNOTATION]: JSON.stringify({ ...RECORD, color: "red" }), other: "x" },
  });
  const read = parseGate(previous, "uid-1");
  const next = gateObject(GROUP, { ...touched(read), site: "pdx", planned: PLANNED }, previous);
  assert.equal(next.metadata.uid, "g-1");
  assert.equal(next.metadata.resourceVersion, "5");
  assert.equal(next.metadata.labels?.["team"], "blue");
  assert.equal(next.metadata.annotations?.["other"], "x");
  assert.equal(next.spec?.["note"], 1);
  assert.equal(next.spec?.holderIdentity, "pdx");
  const written = JSON.parse(next.metadata.annotations?.[ANNOTATION] ?? "");
  assert.deepEqual(written, { ...RECORD, seq: 4, site: "pdx", planned: PLANNED, color: "red" });
});

Deno.test("a touch changes the content, so that the object gets a new version", () => {
  assert.deepEqual(touched(RECORD), { ...RECORD, seq: 4 });
  assert.notDeepEqual(gateObject(GROUP, touched(RECORD)), gateObject(GROUP, RECORD));
});

Deno.test("a gate of another group, or of a group that was made anew, is an error and not no gate", () => {
  const [owner] = gateObject(GROUP, RECORD).metadata.ownerReferences ?? [];
  assert.ok(owner);
  for (const ownerReferences of [undefined, [], [{ ...owner, uid: "uid-2" }], [owner, owner]]) {
    const lease = store(gateObject(GROUP, RECORD), { ownerReferences });
    assert.deepEqual(pathsOf(lease), []);
    assert.throws(() => gateObject(GROUP, RECORD, lease), {
      name: "GateError",
      message:
        "Cannot use the gate bloodraven-deploy-orders-gate as it must have exactly one owner, the group as it is now",
    });
  }
});

Deno.test("a gate that cannot be read says where it differs and shows no value", () => {
  assert.deepEqual(pathsOf(store(gateObject(GROUP, RECORD), { annotations: undefined })), []);
  assert.deepEqual(pathsOf(withText("")), []);
  assert.deepEqual(pathsOf(withText("{")), []);
  assert.deepEqual(pathsOf(withText("[]")), [""]);
  for (const member of Object.keys(RECORD)) {
    assert.deepEqual(pathsOf(withChange({ [member]: undefined })), [member]);
    assert.deepEqual(pathsOf(withChange({ [member]: [] })), [member]);
  }
  for (const member of ["seq", "generation", "observedGeneration"]) {
    for (const value of [-1, 0.5, "1", 2 ** 53]) {
      assert.deepEqual(pathsOf(withChange({ [member]: value })), [member]);
    }
  }
  assert.deepEqual(pathsOf(withChange({ pending: { since: "x" } })), ["pending.by"]);
  assert.deepEqual(pathsOf(withChange({ planned: { ...PLANNED, state: "done" } })), [
    "planned.state",
  ]);
  assert.deepEqual(pathsOf(withChange({ planned: { ...PLANNED, operation: "Party" } })), [
    "planned.operation",
  ]);
});

Deno.test("the table is given what the gate says, or that there is none", () => {
  assert.deepEqual(gateFacts(RECORD), {
    exists: true,
    site: "iad",
    generation: 12,
    observedGeneration: 7,
    restoreFencing: false,
  });
  assert.deepEqual(gateFacts({ ...RECORD, restoreFencing: true }).restoreFencing, true);
  assert.equal(gateFacts(null).exists, false);
});

Deno.test("every gate survives being written and read, with members nobody knows", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 20 });
  const record: fc.Arbitrary<GateRecord> = fc.record({
    seq: fc.maxSafeNat(),
    site: text,
    generation: fc.maxSafeNat(),
    observedGeneration: fc.maxSafeNat(),
    restoreFencing: fc.boolean(),
    pending: fc.option(fc.record({ since: text, by: text })),
    planned: fc.option(fc.record({
      operation: fc.constantFrom("PlannedFailover", "OrderedUpdate", "RestoreInPlace"),
      id: fc.uuid(),
      by: text,
      since: text,
      state: fc.constantFrom("admitted", "withdrawing"),
    })),
  });
  const others = fc.dictionary(
    fc.string({ minLength: 1 }).map((key) => `x-${key}`),
    fc.jsonValue(),
  );
  fc.assert(fc.property(record, others, (known, more) => {
    const lease = gateObject(GROUP, { ...more, ...known });
    LEASES.parse(lease);
    assert.deepEqual(
      JSON.parse(JSON.stringify(parseGate(store(lease), "uid-1"))),
      JSON.parse(JSON.stringify({ ...more, ...known })),
    );
  }));
});
