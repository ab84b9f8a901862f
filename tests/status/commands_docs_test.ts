import assert from "node:assert/strict";
import { Command } from "commander";
import { addRevokeCommand } from "../../handlers/commands/revoke/arguments.ts";
import { addStatusCommand } from "../../handlers/commands/status/arguments.ts";
import { clusterReport } from "../../lib/status/cluster_report.ts";
import { renderLines } from "../../lib/status/lines.ts";
import { operationsOf } from "../../lib/status/operations.ts";
import { renderTable } from "../../lib/status/table.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { fakeSystem } from "../handlers/commands/fake_system.ts";
import { gate, gateOf, leaseOf, migration, NOW, snapshotOf } from "./fixtures.ts";

const page = await Deno.readTextFile(new URL("../../docs/commands.md", import.meta.url));

/** The first column of the table behind a line. */
function membersBehind(line: string): readonly string[] {
  const [, rest = ""] = page.split(`\n${line}\n`);
  const [table = ""] = rest.trimStart().split("\n\n").filter((part) => part.startsWith("| Member"));
  return [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name = ""]) => name);
}

const planned = {
  operation: "PlannedFailover",
  id: "id-1",
  by: "me",
  since: "2026-01-01T00:00:00Z",
  state: "admitted",
} as const;
const pending = { by: "me", since: "2026-01-01T00:00:00Z" };
const leases = [leaseOf(migration()), gateOf(gate({ planned, pending }))];
const report = clusterReport(snapshotOf([healthyGroup()], leases), NOW, { all: true });

Deno.test("docs/commands.md lists every member of the JSON, in its order", () => {
  const [group] = report.groups;
  const [lease] = group?.leases ?? [];
  const [operation] = operationsOf(
    {
      requested: "pdx",
      plannedFailover: { phase: "", reason: "", target: "", retryAfter: "" },
      updatePhase: "",
      restoreInPlace: "",
      dragonflyUpgrade: "",
    },
    [],
    false,
  );
  assert.deepEqual(
    membersBehind("program must pass over members that it does not know."),
    Object.keys(report),
  );
  assert.deepEqual(membersBehind("A group:"), Object.keys(group ?? {}));
  assert.deepEqual(membersBehind("A lease:"), Object.keys(lease ?? {}));
  assert.deepEqual(membersBehind("An operation:"), Object.keys(operation ?? {}));
  const inner = (name: string) =>
    /\| object or null \| (.*?)[;|]/.exec(
      page.split("\n").find((line) => line.startsWith(`| \`${name}\``)) ?? "",
    )?.[1] ?? "";
  const named = (text: string) =>
    [...text.replaceAll(/\(.*?\)/g, "").matchAll(/`(\w+)`/g)].map(([, word]) => word);
  assert.deepEqual(named(inner("admission")), Object.keys(group?.admission ?? {}));
  assert.deepEqual(named(inner("pendingTopology")), Object.keys(group?.pendingTopology ?? {}));
  assert.deepEqual(named(inner("holder")), Object.keys(lease?.holder ?? {}));
});

Deno.test("docs/commands.md names every option of both commands", () => {
  const program = new Command();
  addStatusCommand(program, fakeSystem(), () => Promise.resolve());
  addRevokeCommand(program, fakeSystem(), () => Promise.resolve());
  const options = program.commands.flatMap((command) => command.options.map(({ long }) => long));
  assert.ok(options.length > 10);
  assert.deepEqual(options.filter((option) => !page.includes(option ?? "?")), []);
});

Deno.test("the table and the lines of docs/commands.md are what is printed", () => {
  const group = healthyGroup();
  const database = {
    ...group,
    metadata: { ...group.metadata, namespace: "database" },
  };
  const shownFor = (operationId: string) =>
    clusterReport(
      snapshotOf([database], [
        leaseOf(migration({ operationId }), { group: database }),
        gateOf(gate(), database),
      ]),
      NOW,
      { all: false },
    );
  assert.ok(page.includes(renderLines(shownFor("op-1"))));
  const table = renderTable(shownFor("0b6b2f62-8c0a-4b73-a9f2-0d4e6ad2a1b3"));
  assert.ok(page.includes(table), table);
});
