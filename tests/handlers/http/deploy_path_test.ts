import assert from "node:assert/strict";
import fc from "fast-check";
import { isDeployTarget, parseDeployCall } from "../../../handlers/http/deploy_path.ts";

const notFound = { type: "not_found" };

Deno.test("each shape of the contract is its call", () => {
  const base = "/deploy/v1/groups/orders";
  assert.deepEqual(parseDeployCall("GET", base), { type: "group", group: "orders" });
  assert.deepEqual(parseDeployCall("POST", `${base}/leases`), { type: "grant", group: "orders" });
  const lease = { group: "orders", kind: "migration", operationId: "op 1" };
  assert.deepEqual(parseDeployCall("PUT", `${base}/leases/migration/op%201`), {
    type: "renew",
    ...lease,
  });
  assert.deepEqual(parseDeployCall("DELETE", `${base}/leases/migration/op%201`), {
    type: "release",
    ...lease,
  });
});

Deno.test("the query string is ignored", () => {
  const call = parseDeployCall("GET", "/deploy/v1/groups/orders?namespace=other");
  assert.deepEqual(call, { type: "group", group: "orders" });
});

for (
  const target of [
    "/deploy/v1",
    "/deploy/v1/",
    "/deploy/v1/groups",
    "/deploy/v1/groups/",
    "/deploy/v1/groups/Orders",
    "/deploy/v1/groups/orders/",
    "/deploy/v1/groups/orders/leases/",
    "/deploy/v1/groups/orders/leases/migration",
    "/deploy/v1/groups/orders/leases/migration/op/more",
    "/deploy/v1/groups/orders/leases/migration/a%2Fb",
    "/deploy/v1/groups/orders/locks",
    "/deploy/v1/group/orders",
    "/deploy/v1//groups/orders",
    "/deploy/v1/./groups/orders",
    "/deploy/v1/x/../groups/orders",
    "/deploy/v1/%2e/groups/orders",
    "/deploy/v1/x/%2e%2e/groups/orders",
    "/deploy/v1/groups/%ff",
    "/deploy/v1/groups/%zz",
    "/deploy/v1/groups/" + "a".repeat(254),
  ]
) {
  Deno.test(`${target.slice(0, 60)} is not found`, () => {
    assert.deepEqual(parseDeployCall("GET", target), notFound);
  });
}

Deno.test("a wrong method names the right ones, for each shape", () => {
  const allow = (method: string, target: string) => {
    const call = parseDeployCall(method, target);
    return call.type === "method_not_allowed" ? [call.handler, call.allow] : call.type;
  };
  const base = "/deploy/v1/groups/orders";
  for (const method of ["HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"]) {
    assert.deepEqual(allow(method, base), ["group", "GET"]);
  }
  assert.deepEqual(allow("GET", `${base}/leases`), ["grant", "POST"]);
  assert.deepEqual(allow("GET", `${base}/leases/migration/`), ["renew", "PUT, DELETE"]);
  assert.deepEqual(allow("HEAD", `${base}/leases/unknown/op`), ["renew", "PUT, DELETE"]);
});

Deno.test("a target belongs to the API by its raw path alone", () => {
  assert.equal(isDeployTarget("/deploy/v1"), true);
  assert.equal(isDeployTarget("/deploy/v1/groups/x?y=/z"), true);
  assert.equal(isDeployTarget("/deploy/v10"), false);
  assert.equal(isDeployTarget("/x/../deploy/v1/groups/orders"), false);
  assert.equal(isDeployTarget("/keyring/escrow"), false);
});

Deno.test("property: any operation id that a path can carry comes back as it was", () => {
  const arbId = fc.string({ unit: "grapheme", minLength: 1 }).filter((id) =>
    id.isWellFormed() && !id.includes("/") && id !== "." && id !== ".."
  );
  fc.assert(fc.property(arbId, (id) => {
    const target = `/deploy/v1/groups/orders/leases/migration/${encodeURIComponent(id)}`;
    const call = parseDeployCall("PUT", target);
    assert.equal(call.type, "renew");
    assert.equal(call.operationId, id);
  }));
});

Deno.test("property: no target makes it throw", () => {
  fc.assert(fc.property(fc.string(), fc.string(), (method, rest) => {
    parseDeployCall(method, `/deploy/v1/${rest}`);
    isDeployTarget(rest);
  }));
});
