/**
 * The gate protocol (state protocol 2.2) over the shipped code: whatever the order of calls, whatever crashes, never a
 * granted hold beside the phase of a planned operation.
 *
 * `HOLDFAST_SOAK=true` walks through the larger casts whole, which takes minutes.
 *
 * @module
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { advance, exploreAll, exploreRandom, type Walk } from "./explorer.ts";
import { MUTANTS } from "./gate_faults.ts";
import { type Cast, GateWorld } from "./gate_world.ts";

const soak = Deno.env.get("HOLDFAST_SOAK") === "true";

function mustHold({ violation }: Walk): void {
  assert.equal(violation, null, `${violation?.what}:\n${violation?.trace.join("\n")}`);
}

const small: readonly (readonly [string, Cast])[] = [
  ["two planners", { planners: ["PlannedFailover", "PlannedFailover"] }],
  ["two planners of different operations", { planners: ["PlannedFailover", "OrderedUpdate"] }],
  ["a planner and a hold grant", { planners: ["RestoreInPlace"], grants: 1 }],
  ["a hold grant and a revocation", { grants: 1, revokers: 1 }],
  ["a planner and a withdrawer", { planners: ["PlannedFailover"], withdrawers: 1 }],
];

const large: readonly (readonly [string, Cast])[] = [
  ["a planner, a grant and a revocation", {
    planners: ["PlannedFailover"],
    grants: 1,
    revokers: 1,
  }],
  ["a planner, a grant and a withdrawer", {
    planners: ["PlannedFailover"],
    grants: 1,
    withdrawers: 1,
  }],
  ["a planner and two withdrawers", { planners: ["PlannedFailover"], withdrawers: 2 }],
  ["two planners and a grant", { planners: ["PlannedFailover", "OrderedUpdate"], grants: 1 }],
];

for (const [name, cast] of small) {
  Deno.test(`in every interleaving of ${name} the invariants hold, crashes at any step included`, async () => {
    using world = new GateWorld(cast);
    const walk = await exploreAll(world, 5_000);
    mustHold(walk);
    assert.equal(walk.complete, true);
    assert(walk.count > 50, `only ${walk.count} states`);
  });
}

for (const [name, cast] of large) {
  Deno.test({
    name: `in every interleaving of ${name} the invariants hold (soak)`,
    ignore: !soak,
    async fn() {
      using world = new GateWorld(cast);
      const walk = await exploreAll(world, 500_000);
      mustHold(walk);
      assert.equal(walk.complete, true);
    },
  });
}

const everybody: Cast = {
  planners: ["PlannedFailover", "OrderedUpdate"],
  grants: 2,
  withdrawers: 2,
  revokers: 1,
};

Deno.test("in many interleavings of two planners, two grants, two withdrawers and a revocation the invariants hold", async () => {
  using world = new GateWorld(everybody);
  mustHold(await exploreRandom(world, { runs: soak ? 50_000 : 200, seed: 1 }));
});

Deno.test("the invariants hold when answers are lost after their calls were served", async () => {
  using world = new GateWorld(everybody);
  mustHold(await exploreRandom(world, { runs: soak ? 50_000 : 200, seed: 2, loss: 0.1 }));
});

Deno.test("the invariants hold for casts and orders that a property test makes up", async () => {
  const operation = fc.constantFrom("PlannedFailover", "OrderedUpdate", "RestoreInPlace");
  const cast = fc.record({
    planners: fc.array(operation, { maxLength: 3 }),
    grants: fc.nat({ max: 2 }),
    withdrawers: fc.nat({ max: 2 }),
    revokers: fc.nat({ max: 1 }),
  });
  const loss = fc.constantFrom(0, 0.05, 0.3);
  const property = fc.asyncProperty(cast, fc.nat(), loss, async (cast, seed, loss) => {
    using world = new GateWorld(cast);
    mustHold(await exploreRandom(world, { runs: soak ? 100 : 5, seed, loss }));
  });
  await fc.assert(property, { numRuns: 25, seed: 7 });
});

Deno.test("in some interleaving the grant wins, in some the planner, and in some neither", async () => {
  using world = new GateWorld({ planners: ["PlannedFailover"], grants: 1 });
  const seen = new Set<string>();
  for (let seed = 0; seed < 60; seed++) {
    await exploreRandom(world, { runs: 1, seed });
    seen.add(`${world.granted}/${world.phaseWritten}`);
  }
  assert(seen.has("true/false") && seen.has("false/true"));
  assert(!seen.has("true/true"));
});

Deno.test("wherever a planner stops for ever, a withdrawal frees the gate and a hold is granted or a phase speaks", async () => {
  using world = new GateWorld({ planners: ["PlannedFailover"], grants: 1, withdrawers: 1 });
  for (let steps = 0;; steps++) {
    await world.begin();
    let ended = false;
    for (let step = 0; step < steps && !ended; step++) {
      const index = world.scheduler.choices.findIndex(({ process }) => process === "planner-0");
      if (index < 0) ended = true;
      else await world.step(index);
    }
    await advance(world, "withdrawer-0");
    assert.equal(world.planned(), null, `after ${steps} steps`);
    await advance(world, "grant-0");
    assert.notEqual(world.granted, world.phaseInStatus(), `after ${steps} steps`);
    // It thaws, and goes on with what it had prepared.
    await advance(world, "planner-0");
    mustHold({ count: 0, complete: true, violation: problem(world) });
    if (ended) break;
  }
});

function problem(world: GateWorld): Walk["violation"] {
  const what = world.violation();
  return what === null ? null : { what, trace: [] };
}

for (const { rule, fault, cast, opening } of MUTANTS) {
  Deno.test(`the check fails without the rule that ${rule}`, async () => {
    using world = new GateWorld(cast, fault);
    const walk = await exploreRandom(world, { runs: 3_000, seed: 1, opening });
    assert.notEqual(walk.violation, null);
  });

  Deno.test(`walks that begin the same way find nothing with the rule that ${rule}`, async () => {
    using world = new GateWorld(cast);
    mustHold(await exploreRandom(world, { runs: 30, seed: 1, opening }));
  });
}
