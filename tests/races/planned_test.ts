import assert from "node:assert/strict";
import { Planner } from "../../lib/group/admission.ts";
import type { KubeObject, ListOptions, ObjectList, Resource } from "../../lib/kube/api.ts";
import { ApiDecorator } from "../../lib/kube/api_decorator.ts";
import type { InProcessService } from "../service/in_process.ts";
import { Arena } from "./arena.ts";
import { type FakeArena, openFakeArena } from "./fake_arena.ts";
import { holdAgainstPlanned } from "./planned.ts";
import { run } from "./races.ts";

/** An operator that does not look at the holds. */
class SeesNoHolds extends ApiDecorator {
  override async list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions,
  ): Promise<ObjectList<T>> {
    return { ...await this.inner.list(resource, options), items: [] };
  }
}

function blindPlanner({ parts, api: inner }: InProcessService, by: string): Planner {
  const api = new SeesNoHolds(inner);
  return new Planner({ ...parts, api, by, maxClockOffsetMs: parts.limits.maxClockOffsetMs });
}

function withBlindPlanners({ arena, services: [first, second] }: FakeArena): Arena {
  const planners = [blindPlanner(first, "blind"), blindPlanner(second, "blind too")] as const;
  return new Arena({ ...arena.parts, planners });
}

Deno.test("in some rounds of the race a hold wins, and in some a planned operation", async () => {
  await using opened = await openFakeArena(42);
  const outcomes = await run(holdAgainstPlanned, opened.arena, { rounds: 40 });
  assert.ok(outcomes["a hold"], JSON.stringify(outcomes));
  assert.ok(outcomes["a planned operation"], JSON.stringify(outcomes));
});

Deno.test("the race finds two operators that do not look at the holds", async () => {
  await using opened = await openFakeArena(42);
  const race = run(holdAgainstPlanned, withBlindPlanners(opened), { rounds: 40 });
  await assert.rejects(race, /an answered hold is active beside an admission/);
});
