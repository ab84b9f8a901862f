/**
 * `deno task prove [NAME…]`: proves every theorem about the shipped rules, or those whose name has one of the given parts.
 *
 * @module
 */

import { closingLine } from "../checks/junit.ts";
import { print } from "../checks/shell.ts";
import { testCase } from "./counter_example.ts";
import { type Proof, Prover } from "./prover.ts";
import { Solver } from "./solver.ts";
import { readSubject, SUBJECTS } from "./theorems.ts";
import { OutsideSubsetError } from "./types.ts";

const chosen = (name: string) =>
  Deno.args.length === 0 || Deno.args.some((part) => name.includes(part));

Deno.exit(await proveAll() ? 0 : 1);

async function proveAll(): Promise<boolean> {
  await using solver = await Solver.start();
  let passed = 0;
  let failed = 0;
  for (const subject of SUBJECTS) {
    print(subject.file);
    try {
      const prover = new Prover(solver, subject, await readSubject(subject));
      for (const theorem of prover.theorems.filter(({ name }) => chosen(name))) {
        const proof = await prover.prove(theorem, () => performance.now());
        proof.verdict.kind === "proven" ? passed++ : failed++;
        printProof(proof);
      }
    } catch (error) {
      if (!(error instanceof OutsideSubsetError)) throw error;
      print(error.message);
      failed++;
    }
  }
  print(closingLine({ passed, failed, skipped: 0 }));
  if (passed + failed === 0) print(`Cannot find a theorem named ${Deno.args.join(", ")}`);
  return failed === 0 && passed > 0;
}

function printProof(proof: Proof): void {
  const { theorem, verdict, elapsedMs } = proof;
  const seconds = (elapsedMs / 1000).toFixed(2).padStart(6);
  print(`  ${verdict.kind.padEnd(7)} ${seconds} s  ${theorem.name}`);
  if (verdict.kind !== "proven") print(`\n${theorem.statement}\n\n${testCase(proof)}\n`);
}
