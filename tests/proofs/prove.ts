/**
 * `deno task prove [NAME…]`: proves every theorem about the shipped rules, or those whose name has one of the given parts.
 *
 * @module
 */

import { closingLine } from "../checks/junit.ts";
import { print } from "../checks/shell.ts";
import { testCase } from "./counter_example.ts";
import { Prover } from "./prover.ts";
import { Solver } from "./solver.ts";
import { readSubject, SUBJECTS } from "./theorems.ts";

const chosen = (name: string) =>
  Deno.args.length === 0 || Deno.args.some((part) => name.includes(part));

Deno.exit(await proveAll() ? 0 : 1);

async function proveAll(): Promise<boolean> {
  await using solver = await Solver.start();
  let passed = 0;
  let failed = 0;
  for (const subject of SUBJECTS) {
    print(subject.file);
    const prover = new Prover(solver, subject, await readSubject(subject));
    for (const theorem of prover.theorems.filter(({ name }) => chosen(name))) {
      const proof = await prover.prove(theorem, () => performance.now());
      const { verdict, elapsedMs } = proof;
      verdict.kind === "proven" ? passed++ : failed++;
      const seconds = (elapsedMs / 1000).toFixed(2).padStart(6);
      print(`  ${verdict.kind.padEnd(7)} ${seconds} s  ${theorem.name}`);
      if (verdict.kind !== "proven") print(`\n${theorem.statement}\n\n${testCase(proof)}\n`);
    }
  }
  print(closingLine({ passed, failed, skipped: 0 }));
  return failed === 0;
}
