/** The races on a real API server, between two processes that both believe they lead. */

import { clusterTest } from "../cluster/cluster_test_support.ts";
import { TwoLeaders } from "./process_arena.ts";
import { races, run } from "./races.ts";

/** `deno task soak` runs thousands. */
const ROUNDS = 100;

clusterTest(
  "two processes that both lead stay safe in a hundred rounds of each race",
  async (cluster) => {
    await using leaders = await TwoLeaders.start(cluster, "races");
    // Side by side, each in a group of its own: a request waits for the API server most of its time.
    const ends = await Promise.allSettled(races.map(async (race) => {
      const arena = await leaders.openArena();
      try {
        await run(race, arena, { rounds: ROUNDS });
      } catch (cause) {
        throw new Error(`The race broke: ${race.name}`, { cause });
      }
    }));
    // All are waited for: services that end under a race would break it too, and hide what broke first.
    const broken = ends.filter((end) => end.status === "rejected").map(({ reason }) => reason);
    if (broken.length > 0) throw broken.length === 1 ? broken[0] : new AggregateError(broken);
  },
);
