/** The races in memory, in interleavings that a seed decides: many more than processes show in the same time. */

import { openFakeArena } from "./fake_arena.ts";
import { races, run } from "./races.ts";

/** `deno task soak` runs thousands. */
const ROUNDS = 40;

for (const [index, race] of races.entries()) {
  Deno.test(`in memory, with two leaders: ${race.name}`, async () => {
    await using opened = await openFakeArena(index + 1);
    await run(race, opened.arena, { rounds: ROUNDS });
  });
}
