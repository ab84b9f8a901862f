import assert from "node:assert/strict";
import { type ServiceRole, serviceRoles } from "../../lib/manifests/service/roles.ts";
import { readDocument, tableRowsIn } from "./markdown.ts";

/** What the service needs with everything switched on. */
const roles = serviceRoles({
  deployApi: true,
  plannedOperations: true,
  keyringEscrow: ["database"],
  auxiliary: true,
  statusPage: true,
  own: { leaseName: "holdfast.shipstream.io", events: true, labelLeader: true },
});

const PARTS: Readonly<Record<string, string>> = {
  "": "deployment API",
  "planned-operations": "planned operations",
  "keyring-escrow": "keyring escrow",
  "auxiliary": "auxiliary views",
  "status-page": "status page",
};

const OWN: Readonly<Record<string, string>> = {
  leases: "election",
  events: "Events about the pod",
  pods: "label of the leader",
};

function rowsOf({ suffix, scope, rules }: ServiceRole): readonly string[][] {
  return rules.flatMap(({ resources, resourceNames, verbs }) =>
    resources.map((resource) => [
      (scope === "own" ? OWN[resource] : PARTS[suffix]) ?? "",
      `\`${resource}\`${resourceNames === undefined ? "" : ", its own one"}`,
      verbs.join(", "),
      scope === "own"
        ? "own namespace"
        : scope === "cluster"
        ? scope
        : "`keyringEscrow.namespaces`",
    ])
  );
}

Deno.test("docs/security.md lists what the generated roles allow, verb by verb", async () => {
  const page = await readDocument("docs/security.md");
  const [, section = ""] = page.split("\n## What the service may do\n");
  const [table = ""] = section.split("\nWhat is broad");
  assert.deepEqual(tableRowsIn(table), roles.flatMap(rowsOf));
});
