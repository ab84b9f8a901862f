/**
 * Bad input to the caller's commands, beside a service that would grant: one clear line, the right code, and no lease.
 */

import assert from "node:assert/strict";
import { LEASES } from "../../../lib/kube/resources.ts";
import { callerOf } from "../../client/real_caller.ts";
import { clusterTest } from "../../cluster/cluster_test_support.ts";
import { HoldfastProcess } from "./holdfast_process.ts";
import { RunProcess } from "./run_process.ts";

const { signal } = new AbortController();

/** Options and variables, the code, and what the line says. */
type Row = readonly [
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  code: number,
  says: RegExp,
];

const RUN: readonly Row[] = [
  [["--nope", "--", "true"], {}, 2, /unknown option '--nope'/],
  [["--ttl", "30", "--", "true"], {}, 2, /must be a duration, for example 30s/],
  [["--ttl", "4s", "--", "true"], {}, 2, /from 5 to 120: current value is 4$/m],
  [["--ttl", "121s", "--", "true"], {}, 2, /from 5 to 120: current value is 121$/m],
  [["--ttl", "7s", "--", "true"], {}, 2, /'ttlSeconds' must be so long/],
  [["--", "true"], { HOLDFAST_CA_FILE: "/etc/hostname" }, 2, /must hold certificates in PEM form/],
  [["--", "true"], { HOLDFAST_URL: "http://holdfast" }, 2, /must begin with https/],
  [["--", "true"], { HOLDFAST_TOKEN_FILE: "/none/token" }, 112, /token cannot be read/],
  [["--", "no-such-command-here"], {}, 127, /Cannot run 'no-such-command-here'/],
  [["--group", "Orders", "--", "true"], {}, 2, /'group' must be .* current value is 'Orders'/],
  [
    ["--instance", "Tenant", "--", "true"],
    {},
    2,
    /'instance' must be .* current value is 'Tenant'/,
  ],
  [["--instance", "unknown", "--", "true"], {}, 112, /not allowed to/],
  [["--operation", "", "--", "true"], {}, 2, /'operationId' must be/],
];

const OTHERS: readonly (readonly [command: string, ...row: Row])[] = [
  ["status", ["--nope"], {}, 2, /unknown option '--nope'/],
  ["status", ["--group", "Orders"], {}, 2, /'group' must be .* current value is 'Orders'/],
  ["status", [], { HOLDFAST_CA_FILE: "/etc/hostname" }, 2, /certificates in PEM form/],
  ["status", [], { HOLDFAST_URL: "http://holdfast" }, 2, /must begin with https/],
  ["status", [], { HOLDFAST_TOKEN_FILE: "/none/token" }, 112, /token cannot be read/],
  ["revoke", ["--group", "orders", "--nope"], {}, 2, /unknown option '--nope'/],
  ["doctor", ["--nope"], {}, 2, /unknown option '--nope'/],
];

clusterTest(
  "bad input to run, status, revoke and doctor: one line, the right code, nothing runs, and no lease is left behind",
  async (cluster) => {
    await using caller = await callerOf(cluster, "bad-input");
    const before = caller.service.lines.length;
    const seen = new Map<string, string>();
    // A few at a time: each is a process, and the machine has few processors.
    const rows = RUN.map(([args, ...rest]) => ["run", args, ...rest] as const);
    const waiting = [...rows, ...OTHERS];
    await Promise.all([0, 1, 2].map(async () => {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
        const [command, args, change, code, says] = row;
        const env = { ...caller.env, ...change };
        const end = await ended(command, args, env);
        const name = [command, ...args, JSON.stringify(change)].join(" ");
        assert.equal(end.code, code, `${name}: ${end.stderr}`);
        assert.match(end.stderr, says, name);
        const [line, ...more] = end.stderr.trim().split("\n").filter((one) => one !== "");
        // Commander adds where help is, and a run that got to the service says what it began.
        const extra = more.filter((one) =>
          !/^(holdfast: (Operation|Cannot)|\(?Run 'holdfast)/.test(one)
        );
        assert.deepEqual(extra, [], name);
        assert.ok((line ?? "").length < 400, name);
        assert.equal(end.stdout, "", name);
        seen.set(name, end.stderr);
      }
    }));
    assert.equal(seen.size, RUN.length + OTHERS.length);
    const granted = caller.service.lines.slice(before)
      .filter(({ handler, status }) => handler === "grant" && Number(status) < 300);
    assert.deepEqual(granted, []);
    const { items } = await cluster.adminApi.list(LEASES, {
      namespace: caller.namespace,
      labelSelector: "bloodraven.shipstream.io/deployment-kind in (migration,failover-hold)",
      signal,
    });
    assert.deepEqual(items.map(({ metadata }) => metadata.name), []);
  },
);

async function ended(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
) {
  if (command !== "run") return await HoldfastProcess.run([command, ...args], env);
  await using process = new RunProcess(["--wait", "0s", ...args], env);
  return await process.ended();
}
