import assert from "node:assert/strict";
import { ROOT } from "./shell.ts";

/** One planted line for each rule that the house rules name, so that nobody switches one off unseen. */
const PLANTED: Readonly<Record<string, string>> = {
  "no-explicit-any": "export const a = (b: any) => b;",
  "no-non-null-assertion": "export const a = (b: string | null) => b!.length;",
  "no-console": "console.log(1);",
  "eqeqeq": "export const a = (b: number) => b == 1;",
  "no-throw-literal": "throw 'x';",
  "no-eval": "eval('1');",
  "no-await-in-sync-fn": "export function a() { await Promise.resolve(); }",
  "no-unused-vars": "const a = 1;",
  "ban-ts-comment": `// ${"@ts"}-ignore\nexport const a = 1;`,
};

async function lint(source: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["lint", "--json", "-"],
    cwd: ROOT,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(source));
  await writer.close();
  const { stdout } = await child.output();
  return new TextDecoder().decode(stdout);
}

Deno.test("deno lint finds a planted offender of each rule that the house rules name", async () => {
  const reports = await Promise.all(
    Object.entries(PLANTED).map(async ([rule, line]) => ({ rule, report: await lint(line) })),
  );
  for (const { rule, report } of reports) {
    assert.ok(report.includes(`"code": "${rule}"`), `${rule} is not found: ${report}`);
  }
});
