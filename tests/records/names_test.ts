import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fc from "fast-check";
import {
  DEPLOYMENT_KIND_LABEL,
  gateName,
  groupLabelValue,
  holdName,
  leaseName,
  LEASES_OF_A_GROUP_SELECTOR,
  slotName,
  tombstoneName,
} from "../../lib/records/names.ts";

const digest = (text: string) => createHash("sha256").update(text).digest("hex");

const dnsLabel = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$/);
const groupName = fc.array(dnsLabel, { minLength: 1, maxLength: 5 }).map((parts) => parts.join("."))
  .filter((name) => name.length <= 253);
const operationId = fc.string({ minLength: 1, maxLength: 128, unit: "grapheme" });

Deno.test("the names of a short group are those that kubectl users know", () => {
  assert.equal(slotName("main"), "bloodraven-deploy-main-migration");
  assert.equal(gateName("main"), "bloodraven-deploy-main-gate");
  const suffix = digest("op-1").slice(0, 32);
  // 67 characters, so the rule for long names shortens it.
  const full = `bloodraven-deploy-a-failover-hold-${suffix}`;
  assert.equal(full.length > 63, true);
  assert.equal(
    holdName("a", "op-1"),
    `bloodraven-deploy-a-failover-hold-${suffix.slice(0, 4)}-${digest(full).slice(0, 24)}`,
  );
  assert.equal(tombstoneName("a", "op-1"), `bloodraven-deploy-a-migration-${suffix}`);
  assert.equal(tombstoneName("a", "op-1").length, 62);
});

Deno.test("a name of 63 characters is kept whole and one of 64 is shortened", () => {
  const fits = "g".repeat(63 - "bloodraven-deploy--migration".length);
  assert.equal(slotName(fits), `bloodraven-deploy-${fits}-migration`);
  const long = slotName(`${fits}g`);
  assert.equal(
    long,
    `bloodraven-deploy-${"g".repeat(20)}-${
      digest(`bloodraven-deploy-${fits}g-migration`).slice(0, 24)
    }`,
  );
  assert.equal(long.length, 63);
});

Deno.test("dashes and dots before the hash of a shortened name are trimmed", () => {
  const group = `${"g".repeat(17)}-.${"h".repeat(40)}`.replace("-.", "-x.");
  const base = `bloodraven-deploy-${group}-migration`;
  assert.equal(base.slice(35, 38), "-x.");
  assert.equal(slotName(group), `${base.slice(0, 37)}-${digest(base).slice(0, 24)}`);
  const dashes = `${"g".repeat(17)}---${"h".repeat(40)}`;
  const dashed = `bloodraven-deploy-${dashes}-migration`;
  assert.equal(slotName(dashes), `${dashed.slice(0, 35)}-${digest(dashed).slice(0, 24)}`);
});

Deno.test("the group label has the group's name, shortened by the same rule over 63 characters", () => {
  assert.equal(groupLabelValue("orders"), "orders");
  assert.equal(groupLabelValue("g".repeat(63)), "g".repeat(63));
  const long = "g".repeat(64);
  assert.equal(groupLabelValue(long), `${"g".repeat(38)}-${digest(long).slice(0, 24)}`);
});

Deno.test("deploy-api 16 item 37: every name is a valid object name of at most 63 characters", () => {
  const valid = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
  const label = /^[a-z0-9]([-a-z0-9_.]*[a-z0-9])?$/;
  fc.assert(fc.property(groupName, operationId, (group, operation) => {
    for (
      const name of [
        slotName(group),
        gateName(group),
        holdName(group, operation),
        tombstoneName(group, operation),
      ]
    ) {
      assert.match(name, valid);
      assert.ok(name.length <= 63, name);
    }
    assert.match(groupLabelValue(group), label);
    assert.ok(groupLabelValue(group).length <= 63);
  }));
});

Deno.test("deploy-api 16 item 37: names are distinct per group, kind and operation", () => {
  fc.assert(fc.property(
    fc.uniqueArray(groupName, { minLength: 2, maxLength: 2 }),
    fc.uniqueArray(operationId, { minLength: 2, maxLength: 2 }),
    (groups, operations) => {
      const names = groups.flatMap((group) => [
        slotName(group),
        gateName(group),
        ...operations.flatMap((operation) => [
          holdName(group, operation),
          tombstoneName(group, operation),
        ]),
      ]);
      assert.equal(new Set(names).size, names.length, names.join("\n"));
    },
  ));
});

Deno.test("the suffix is of the operation's UTF-8 bytes", () => {
  assert.ok(leaseName("a", "migration", "täter").endsWith(digest("täter").slice(0, 32)));
});

Deno.test("the selector of all leases finds both kinds and not the gate", () => {
  assert.equal(LEASES_OF_A_GROUP_SELECTOR, `${DEPLOYMENT_KIND_LABEL} in (migration,failover-hold)`);
});
