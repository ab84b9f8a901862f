import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type EffectiveGeneration,
  effectiveGeneration,
  type GateFacts,
  type SeenFacts,
  type StatusFacts,
} from "../../lib/group/gate.ts";

const GATE: GateFacts = {
  exists: true,
  site: "iad",
  generation: 12,
  observedGeneration: 7,
  restoreFencing: false,
};
const NO_GATE: GateFacts = {
  exists: false,
  site: "",
  generation: 0,
  observedGeneration: 0,
  restoreFencing: false,
};
const STATUS: StatusFacts = { site: "iad", generation: 7, restoreInFlight: false };
const SEEN: SeenFacts = {
  unchangedForMs: 0,
  highestRecordGeneration: 0,
  activeRecordCarriesLabel: false,
};

/** The table of state protocol 2.1: what differs from a gate and a status that agree, and what follows. */
const TABLE: readonly {
  readonly name: string;
  readonly gate?: Partial<GateFacts>;
  readonly status?: Partial<StatusFacts>;
  readonly seen?: Partial<SeenFacts>;
  readonly want: Partial<EffectiveGeneration> & Pick<EffectiveGeneration, "row" | "outcome">;
}[] = [
  {
    name: "row 1: the first gate of a group takes what status says",
    gate: NO_GATE,
    want: { row: 1, outcome: "write", generation: 7, observedGeneration: 7 },
  },
  {
    name: "row 1: a group without an active site gets a gate too",
    gate: NO_GATE,
    status: { site: "", generation: 0 },
    want: { row: 1, outcome: "write", site: "", generation: 0, observedGeneration: 0 },
  },
  {
    name: "row 1: records with a higher generation lift a new gate above status",
    gate: NO_GATE,
    seen: { highestRecordGeneration: 15 },
    want: { row: 1, outcome: "write", generation: 15, observedGeneration: 7 },
  },
  {
    name: "row 1: records with a lower generation change nothing",
    gate: NO_GATE,
    seen: { highestRecordGeneration: 3 },
    want: { row: 1, outcome: "write", generation: 7, observedGeneration: 7 },
  },
  {
    name: "row 1: a gate that was deleted under an active lease ends that lease",
    gate: NO_GATE,
    seen: { highestRecordGeneration: 15, activeRecordCarriesLabel: true },
    want: { row: 1, outcome: "write", generation: 16, observedGeneration: 7 },
  },
  {
    name: "row 1: a restore in flight is counted with the first gate",
    gate: NO_GATE,
    status: { restoreInFlight: true },
    want: {
      row: 1,
      outcome: "write",
      generation: 7,
      observedGeneration: 7,
      restoreFencing: true,
    },
  },
  {
    name: "row 2: status that went backwards is not believed at once",
    status: { generation: 6 },
    seen: { unchangedForMs: 59_999 },
    want: { row: 2, outcome: "pending" },
  },
  {
    name: "row 2: status that stays behind for 60 s is a change",
    status: { generation: 6, site: "pdx" },
    seen: { unchangedForMs: 60_000 },
    want: { row: 2, outcome: "write", site: "pdx", generation: 13, observedGeneration: 6 },
  },
  {
    name: "row 2: a rewound status takes its restore phase along",
    status: { generation: 0, restoreInFlight: true },
    seen: { unchangedForMs: 60_000 },
    want: {
      row: 2,
      outcome: "write",
      generation: 13,
      observedGeneration: 0,
      restoreFencing: true,
    },
  },
  {
    name: "row 3: what the operator counted is added",
    status: { generation: 10, site: "pdx" },
    want: { row: 3, outcome: "write", site: "pdx", generation: 15, observedGeneration: 10 },
  },
  {
    name: "row 3: also when the site is empty now",
    status: { generation: 8, site: "" },
    want: { row: 3, outcome: "write", site: "", generation: 13, observedGeneration: 8 },
  },
  {
    name: "row 3: also when the site is the same, and with a restore that counts once",
    status: { generation: 8, restoreInFlight: true },
    want: {
      row: 3,
      outcome: "write",
      generation: 13,
      observedGeneration: 8,
      restoreFencing: true,
    },
  },
  {
    name: "row 4: a restore in place that the operator did not count",
    status: { restoreInFlight: true },
    want: { row: 4, outcome: "write", generation: 13, restoreFencing: true },
  },
  {
    name: "row 4: also while the group has no active site; the confirmed site stays",
    status: { restoreInFlight: true, site: "" },
    want: { row: 4, outcome: "write", generation: 13, restoreFencing: true },
  },
  {
    name: "row 5: the restore has ended",
    gate: { restoreFencing: true },
    want: { row: 5, outcome: "write", restoreFencing: false },
  },
  {
    name: "row 5: the restore has ended on another site; the site is left to the next look",
    gate: { restoreFencing: true },
    status: { site: "pdx" },
    want: { row: 5, outcome: "write", restoreFencing: false },
  },
  {
    name: "row 6: without an active site the gate stands",
    status: { site: "" },
    want: { row: 6, outcome: "unchanged" },
  },
  {
    name: "row 6: also in a restore that was counted",
    gate: { restoreFencing: true },
    status: { site: "", restoreInFlight: true },
    want: { row: 6, outcome: "unchanged", restoreFencing: true },
  },
  {
    name: "row 7: the first site is taken and not counted",
    gate: { site: "" },
    want: { row: 7, outcome: "write", site: "iad", generation: 12 },
  },
  {
    name: "row 7: with a restore in flight, which no lease can be hurt by",
    gate: { site: "" },
    status: { restoreInFlight: true },
    want: { row: 7, outcome: "write", site: "iad", generation: 12, restoreFencing: true },
  },
  {
    name: "row 8: a primary that moved without being counted",
    status: { site: "pdx" },
    want: { row: 8, outcome: "write", site: "pdx", generation: 13 },
  },
  {
    name: "row 8: with a restore that begins at the same time, counted once",
    status: { site: "pdx", restoreInFlight: true },
    want: { row: 8, outcome: "write", site: "pdx", generation: 13, restoreFencing: true },
  },
  {
    name: "row 9: gate and status agree",
    want: { row: 9, outcome: "confirmed" },
  },
  {
    name: "row 9: also in a restore that was counted",
    gate: { restoreFencing: true },
    status: { restoreInFlight: true },
    want: { row: 9, outcome: "confirmed", restoreFencing: true },
  },
];

for (const { name, gate, status, seen, want } of TABLE) {
  Deno.test(name, () => {
    const given = { ...GATE, ...gate };
    assert.deepEqual(
      effectiveGeneration(given, { ...STATUS, ...status }, { ...SEEN, ...seen }),
      {
        site: want.row === 1 ? { ...STATUS, ...status }.site : given.site,
        generation: given.generation,
        observedGeneration: given.observedGeneration,
        restoreFencing: given.restoreFencing,
        ...want,
      },
    );
  });
}

const site = fc.constantFrom("", "iad", "pdx", "sjc");
const small = fc.nat({ max: 5 });
const gateFacts: fc.Arbitrary<GateFacts> = fc.record({
  exists: fc.boolean(),
  site,
  generation: small,
  observedGeneration: small,
  restoreFencing: fc.boolean(),
});
const statusFacts: fc.Arbitrary<StatusFacts> = fc.record({
  site,
  generation: small,
  restoreInFlight: fc.boolean(),
});
const seenFacts: fc.Arbitrary<SeenFacts> = fc.record({
  unchangedForMs: fc.constantFrom(0, 59_999, 60_000, 1e9),
  highestRecordGeneration: small,
  activeRecordCarriesLabel: fc.boolean(),
});

const RUNS = { numRuns: 3_000 };

function stored(result: EffectiveGeneration): GateFacts {
  const { site, generation, observedGeneration, restoreFencing } = result;
  return { exists: true, site, generation, observedGeneration, restoreFencing };
}

/** Judges and stores until nothing is left to store, as the caller of the table does. */
function settle(gate: GateFacts, status: StatusFacts, seen: SeenFacts) {
  const results = [effectiveGeneration(gate, status, seen)];
  for (;;) {
    const last = results.at(-1);
    assert.ok(last);
    if (last.outcome !== "write") return { last, results };
    assert.ok(results.length <= 3, "it does not settle");
    results.push(effectiveGeneration(stored(last), status, { ...seen, unchangedForMs: 0 }));
  }
}

Deno.test("the generation of a gate never falls", () => {
  fc.assert(
    fc.property(gateFacts, statusFacts, seenFacts, (gate, status, seen) => {
      const result = effectiveGeneration(gate, status, seen);
      if (gate.exists) assert.ok(result.generation >= gate.generation);
      else {assert.ok(
          result.generation >= Math.max(status.generation, seen.highestRecordGeneration),
        );}
    }),
    RUNS,
  );
});

Deno.test("at most two writes settle any gate, and then gate and status agree", () => {
  fc.assert(
    fc.property(gateFacts, statusFacts, seenFacts, (gate, status, seen) => {
      const { last, results } = settle(gate, status, seen);
      assert.ok(results.length <= 3);
      if (last.outcome === "pending") {
        assert.equal(results.length, 1);
        assert.deepEqual(stored(last), { ...gate, exists: true });
        return;
      }
      assert.equal(last.observedGeneration, status.generation);
      assert.equal(last.restoreFencing, status.restoreInFlight);
      assert.equal(last.outcome, status.site === "" ? "unchanged" : "confirmed");
      if (status.site !== "") assert.equal(last.site, status.site);
    }),
    RUNS,
  );
});

Deno.test("a result that is not to be written changes nothing", () => {
  fc.assert(
    fc.property(gateFacts, statusFacts, seenFacts, (gate, status, seen) => {
      const result = effectiveGeneration(gate, status, seen);
      if (result.outcome === "write") assert.notDeepEqual(stored(result), { ...gate });
      else assert.deepEqual(stored(result), { ...gate });
    }),
    RUNS,
  );
});

Deno.test("whatever moved since a confirmed look, the generation rises: no lease outlives it", () => {
  fc.assert(
    fc.property(gateFacts, statusFacts, seenFacts, (gate, status, seen) => {
      if (!gate.exists || gate.site === "") return;
      const moved = status.site !== "" && status.site !== gate.site;
      const counted = status.generation !== gate.observedGeneration;
      const restored = status.restoreInFlight && !gate.restoreFencing;
      const { last } = settle(gate, status, seen);
      if (last.outcome === "pending") return;
      assert.equal(last.generation > gate.generation, moved || counted || restored);
    }),
    RUNS,
  );
});

Deno.test("while the operator counts as the contract says, the number is the operator's own", () => {
  const change = fc.record({ by: fc.nat({ max: 3 }), site: fc.constantFrom("iad", "pdx") });
  fc.assert(fc.property(small, fc.array(change, { maxLength: 20 }), (first, changes) => {
    let status: StatusFacts = { site: "iad", generation: first, restoreInFlight: false };
    let gate = stored(settle(NO_GATE, status, SEEN).last);
    for (const { by, site } of changes) {
      // It counts whenever it moves; it may count without moving.
      const counted = by + (site === status.site ? 0 : 1);
      status = { ...status, site, generation: status.generation + counted };
      gate = stored(settle(gate, status, SEEN).last);
      assert.equal(gate.generation, status.generation);
    }
  }));
});

Deno.test("a restore in place is counted once, from its fencing to its end", () => {
  fc.assert(fc.property(fc.array(fc.boolean(), { maxLength: 20 }), (phases) => {
    let gate = GATE;
    let before = false;
    for (const restoreInFlight of phases) {
      const next = stored(settle(gate, { ...STATUS, restoreInFlight }, SEEN).last);
      assert.equal(next.generation - gate.generation, restoreInFlight && !before ? 1 : 0);
      gate = next;
      before = restoreInFlight;
    }
  }));
});
