import assert from "node:assert/strict";
import { type PlannedEvent, PlannedJudge } from "./planned_judge.ts";

const hold = (tokenHash: string | null, name = "hold") =>
  ({ type: "hold", name, tokenHash }) as const;
const answer = (tokenHash: string) => ({ type: "answer", tokenHash }) as const;
const gate = (id: string | null, state = "admitted") =>
  ({ type: "gate", planned: id === null ? null : { id, state } }) as const;
const phase = (phaseOf: string | null) => ({ type: "group", phaseOf }) as const;

type Step = ReturnType<typeof hold | typeof answer | typeof gate | typeof phase>;

function judge(steps: readonly Step[]): readonly string[] {
  const judge = new PlannedJudge();
  for (const [index, step] of steps.entries()) {
    const event: PlannedEvent = { ...step, version: BigInt(index) };
    judge.take(event);
  }
  return judge.violations.map((found) => found.replace(/^\d+: /, ""));
}

Deno.test("a history in which hold and planned operation take turns has no violation", () => {
  const histories: readonly (readonly Step[])[] = [
    // The hold is first: nobody is admitted before it ends.
    [hold("1"), gate(null), answer("1"), hold(null), gate("x"), phase("x"), gate(null)],
    // The operation is first: the hold is taken back, and may be granted afterwards.
    [gate("x"), phase("x"), hold("1"), hold(null), gate(null), phase(null), hold("2"), answer("2")],
    // It is written between the list of holds and the admission, and never answered.
    [hold("1"), gate("x"), hold(null), phase("x"), gate(null)],
    // It waits with its look until the operation is over: then it may stand.
    [hold("1"), gate("x"), phase("x"), gate(null), phase(null), answer("1")],
    // The phase is written between the mark and the touch of a withdrawal.
    [gate("x"), gate("x", "withdrawing"), phase("x"), gate(null), phase(null), gate("y")],
    // An admission is taken over: only its owner changes.
    [gate("x"), gate("x"), phase("x"), gate(null)],
    // A token that was replaced is not active any more.
    [hold("1"), answer("1"), hold("2"), hold(null), gate("x")],
  ];
  for (const history of histories) assert.deepEqual(judge(history), [], JSON.stringify(history));
});

Deno.test("each planted violation is found", () => {
  const besidePhase = "an answered hold is active beside a phase";
  const besideAdmission = "an answered hold is active beside an admission";
  const planted: readonly (readonly [readonly string[], readonly Step[]])[] = [
    // An operator that never asked: it admitted nothing, and its phase is there.
    [["a phase was written without its admission", besidePhase], [
      hold("1"),
      answer("1"),
      phase("x"),
    ]],
    // A planner that did not list the holds.
    [[besideAdmission, besidePhase, besideAdmission], [
      hold("1"),
      answer("1"),
      gate("x"),
      phase("x"),
    ]],
    // A grant that did not look at the group again.
    [[besidePhase], [gate("x"), hold("1"), phase("x"), gate(null), answer("1")]],
    // A grant that did not touch the gate.
    [[besideAdmission], [hold("1"), gate("x"), answer("1")]],
    // It is active under another name than the one that was looked at.
    [[besidePhase], [hold(null, "a"), gate("x"), phase("x"), gate(null), answer("1"), hold("1")]],
    // A planner that had read the group before the gate was cleared.
    [["an admission was written beside a phase", "a phase was written over another"], [
      gate("x"),
      phase("x"),
      gate(null),
      gate("y"),
      phase("y"),
    ]],
    // A planner that was frozen, and whose phase is not fenced by a touch of the group.
    [["a phase was written without its admission"], [
      gate("x"),
      gate("x", "withdrawing"),
      gate(null),
      phase("x"),
    ]],
    [["an admission was written over another"], [gate("x"), gate("y")]],
    [["an admission came back from its withdrawal"], [
      gate("x"),
      gate("x", "withdrawing"),
      gate("x"),
    ]],
  ];
  for (const [what, history] of planted) {
    assert.deepEqual(judge(history), what, JSON.stringify(history));
  }
});
