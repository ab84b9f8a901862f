import assert from "node:assert/strict";
import { pathOf, ROOT } from "../checks/shell.ts";
import { readSources, type SourceTexts } from "../checks/syntax.ts";
import { callChecked } from "./checked_call.ts";
import { testCase } from "./counter_example.ts";
import { plant, PLANTED } from "./planted.ts";
import { type Proof, Prover } from "./prover.ts";
import { parseExpressions } from "./smt.ts";
import { Solver } from "./solver.ts";
import { readSubject, type Subject, SUBJECTS } from "./theorems.ts";

const now = () => performance.now();

function subjectOf(file: string): Subject {
  const subject = SUBJECTS.find((each) => each.file === file);
  assert.ok(subject);
  return subject;
}

async function proofOf(name: string, subject: Subject, texts: SourceTexts): Promise<Proof> {
  await using solver = await Solver.start();
  const prover = new Prover(solver, subject, texts);
  const theorem = prover.theorems.find((each) => each.name === name);
  assert.ok(theorem);
  return await prover.prove(theorem, now);
}

/** How many theorems there are at least, so that one that gets lost is missed. */
const AT_LEAST: Readonly<Record<string, number>> = {
  "lib/election/policy.ts": 20,
  "lib/group/gate.ts": 20,
  "lib/manifests/grace_period.ts": 6,
};

for (const subject of SUBJECTS) {
  Deno.test(`every theorem about ${subject.file} is proven`, async (t) => {
    await using solver = await Solver.start();
    const prover = new Prover(solver, subject, await readSubject(subject));
    assert.ok(prover.theorems.length >= (AT_LEAST[subject.file] ?? Infinity));
    for (const theorem of prover.theorems) {
      await t.step(`${theorem.name}: ${theorem.statement}`, async () => {
        assert.notEqual(theorem.statement, "");
        const proof = await prover.prove(theorem, now);
        assert.equal(proof.verdict.kind, "proven", testCase(proof));
      });
    }
  });
}

Deno.test("each item of the contract has its theorem", async () => {
  const texts = await readSources("tests/proofs/theorems");
  const items = ["policy", "grace_period"].flatMap((name) => {
    const text = texts.get(`tests/proofs/theorems/${name}.ts`) ?? "";
    return [...text.matchAll(/\/\*\* Item (\d+)\./g)].map(([, item]) => Number(item));
  });
  assert.deepEqual([...new Set(items)], Array.from({ length: 13 }, (_, index) => index + 1));
});

Deno.test("a theorem whose premise no input fulfils says nothing, and so it is not proven", async () => {
  const subject = subjectOf("lib/election/policy.ts");
  const texts = new Map(await readSubject(subject));
  texts.set(
    subject.theorems,
    `import { decide, type LeaseView } from "../../../lib/election/policy.ts";
     import { implies } from "./logic.ts";
     /** Says nothing. */
     export function hollow(lease: LeaseView): boolean {
       return implies(lease.mine, decide(lease) === "renew") &&
         implies(lease.mine && !lease.mine, decide(lease) === "wait");
     }`,
  );
  assert.equal((await proofOf("hollow", subject, texts)).verdict.kind, "empty");
});

Deno.test("a theorem that the solver cannot decide in time is not proven", async () => {
  await using solver = await Solver.start(200);
  const answers = await solver.ask(
    `(declare-const x Int) (declare-const y Int) (declare-const z Int)
     (assert (and (> x 5) (> y 5) (> z 5) (= (* x x x) (+ (* y y y) (* z z z)))))
     (check-sat)`,
  );
  assert.equal(answers[0], "unknown");
});

Deno.test("a new function without a word on its range stops the proofs", async () => {
  const subject = subjectOf("lib/group/gate.ts");
  const texts = new Map(await readSubject(subject));
  texts.set(
    subject.file,
    `${texts.get(subject.file)}\nexport function more(a: number): number {\n  return a + 1;\n}\n`,
  );
  await assert.rejects(proofOf("more", subject, texts), /'more' that says what is in range/);
});

Deno.test("a counter-example is a test case that fails on the mistake and passes without it", async () => {
  const chosen = PLANTED.filter(({ name }) =>
    name === "row 8 does not count" ||
    name === "the products are made before the values are known to be small"
  );
  assert.equal(chosen.length, 2);
  const mistaken = new Map<string, string>();
  const cases = new Map<string, string>();
  for (const planted of chosen) {
    const texts = new Map(await readSubject(subjectOf(planted.file)));
    mistaken.set(planted.file, plant(texts.get(planted.file) ?? "", planted));
    const subject = subjectOf(planted.file);
    const proof = await proofOf(planted.breaks, subject, new Map([...texts, ...mistaken]));
    cases.set(`${planted.breaks}_test.ts`, testCase(proof));
  }
  assert.match(await runCopy(new Map([...mistaken, ...cases])), /\b0 passed \| 2 failed\b/);
  assert.match(await runCopy(cases), /\b2 passed \| 0 failed\b/);
});

/** Runs test cases in a copy of the repository, as somebody does who pasted them into files of its root. */
async function runCopy(changed: SourceTexts): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "holdfast-proofs-" });
  try {
    const files = SUBJECTS.map(({ file }) => file);
    const copied = await readSources("tests/proofs", "tests/checks", ...files);
    for (const [path, text] of new Map([...copied, ...changed])) {
      await Deno.mkdir(`${folder}/${path}`.replace(/\/[^/]+$/, ""), { recursive: true });
      await Deno.writeTextFile(`${folder}/${path}`, text);
    }
    const cases = [...changed.keys()].filter((path) => path.endsWith("_test.ts"));
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: [
        "test",
        "--allow-all",
        "--no-check",
        `--config=${pathOf(new URL("deno.json", ROOT))}`,
        ...cases.map((path) => `${folder}/${path}`),
      ],
      // What the copy covers is nothing that is shipped.
      env: { DENO_COVERAGE_DIR: `${folder}/coverage`, NO_COLOR: "1" },
      stdin: "null",
    }).output();
    return new TextDecoder().decode(stdout);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("the task prints each chosen theorem with its verdict and its time, and an unknown name is an error", async () => {
  const prove = async (...names: readonly string[]) => {
    const { code, stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "tests/proofs/prove.ts", ...names],
      cwd: ROOT,
      stdin: "null",
    }).output();
    return { code, lines: new TextDecoder().decode(stdout).trimEnd().split("\n") };
  };
  const { code, lines } = await prove("theDecisionIsThatOfTheTable", "row5");
  assert.equal(code, 0);
  assert.match(lines[1] ?? "", /^\s+proven\s+\d+\.\d\d s\s+theDecisionIsThatOfTheTable$/);
  assert.match(lines[3] ?? "", /^\s+proven\s+\d+\.\d\d s\s+row5CountsNothing$/);
  assert.equal(lines.at(-1), "2 passed, 0 failed");
  const none = await prove("noSuchTheorem");
  assert.deepEqual([none.code, none.lines.at(-1)], [
    1,
    "Cannot find a theorem named noSuchTheorem",
  ]);
});

Deno.test("a function that is called with its steps looked at answers as it is shipped", async () => {
  const file = "lib/election/policy.ts";
  assert.equal(await callChecked(file, "jittered", 1_000, 200), 1_200);
  await assert.rejects(
    callChecked(file, "remainder", 5, 0),
    /policy.ts:\d+: 'dividend % divisor' is no safe integer: current value is NaN/,
  );
  await assert.rejects(callChecked(file, "gone"), /does not export it/);
});

Deno.test("an answer of the solver that is cut off is not read", () => {
  assert.deepEqual(parseExpressions(`sat ((|a b| (- 5)) (x "t"))`), [
    "sat",
    [["a b", ["-", "5"]], ["x", `"t"`]],
  ]);
  assert.throws(() => parseExpressions("((a)"), /ends too early/);
  assert.throws(() => parseExpressions("(a))"), /closes too much/);
});
