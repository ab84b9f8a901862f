/** The races on a real API server, between two processes that both believe they lead. */

import { clusterTest } from "../cluster/cluster_test_support.ts";
import { openProcessArena } from "./process_arena.ts";
import { races, run } from "./races.ts";

/** `deno task soak` runs thousands. */
const ROUNDS = 100;

clusterTest("two processes that both lead stay safe", async (cluster, context) => {
  await using opened = await openProcessArena(cluster, "races");
  for (const race of races) {
    await context.step(race.name, async () => {
      await run(race, opened.arena, { rounds: ROUNDS });
    });
  }
});
