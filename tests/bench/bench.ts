/**
 * `deno task bench [NAME…]`: measures the program on a real API server, each figure beside its goal.
 *
 * Whatever is compared is measured in turn in one run, so that a slow or busy machine slows both. Nothing here is a test:
 * a missed goal is shown, and the exit code stays 0 unless a measurement could not be made.
 *
 * @module
 */

import { print } from "../checks/shell.ts";
import { BinariesError, ensureBinaries, SKIPPED_LINE } from "../cluster/binaries.ts";
import { type Cluster, startCluster } from "../cluster/cluster.ts";
import { type Figure, line } from "./figures.ts";
import { measureElection } from "./election.ts";
import { measureHandOver } from "./hand_over.ts";
import { measureLists } from "./lists.ts";
import { measureLoad } from "./load.ts";
import { measurePage } from "./page.ts";
import { measureReactions } from "./reactions.ts";
import { measureRenewals } from "./renewals.ts";
import { measureSockets } from "./sockets.ts";
import { measureStart } from "./start.ts";

const benches: Readonly<Record<string, (cluster: Cluster) => Promise<readonly Figure[]>>> = {
  start: measureStart,
  renewals: measureRenewals,
  lists: measureLists,
  reactions: measureReactions,
  election: measureElection,
  "hand-over": measureHandOver,
  load: measureLoad,
  page: measurePage,
  sockets: measureSockets,
};

const names = Deno.args.length > 0 ? Deno.args : Object.keys(benches);
const unknown = names.filter((name) => !Object.hasOwn(benches, name));
if (unknown.length > 0) {
  print(`Cannot measure ${unknown.join(", ")}: choose from ${Object.keys(benches).join(", ")}`);
  Deno.exit(2);
}

const binaries = await ensureBinaries({ onProgress: print });
if (binaries === null) throw new BinariesError(SKIPPED_LINE);
print(
  `${navigator.hardwareConcurrency} cores, Deno ${Deno.version.deno}, Kubernetes ${binaries.version}`,
);
for (const name of names) {
  await using cluster = await startCluster({ binaries });
  print(`\n${name}`);
  for (const figure of await benches[name]?.(cluster) ?? []) print(`  ${line(figure)}`);
}
