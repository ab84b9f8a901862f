/**
 * Calls a function of a shipped file with every step of its arithmetic looked at.
 *
 * @module
 */

import ts from "typescript";
import { ROOT } from "../checks/shell.ts";
import { lineOf } from "../checks/syntax.ts";
import { load } from "./loading.ts";
import type { Argument } from "./prover.ts";

/** The name under which the changed source finds the check. */
const CHECK = "checkStep";

const ARITHMETIC: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.PlusToken,
  ts.SyntaxKind.MinusToken,
  ts.SyntaxKind.AsteriskToken,
  ts.SyntaxKind.SlashToken,
  ts.SyntaxKind.PercentToken,
]);

/**
 * Calls an exported function.
 *
 * @param file The path from the root of the repository.
 * @returns What the function returns.
 * @throws {RangeError} A step has a result that is no safe integer; the message names the line.
 */
export async function callChecked(
  file: string,
  name: string,
  ...given: readonly Argument[]
): Promise<unknown> {
  return await callCheckedText(await Deno.readTextFile(new URL(file, ROOT)), file, name, given);
}

/** The same for a text that stands in no file. */
export async function callCheckedText(
  text: string,
  file: string,
  name: string,
  given: readonly Argument[],
): Promise<unknown> {
  const call = await load(new Map([[file, checkedSource(text, file)]]), file);
  return call(name, ...given);
}

function checkedSource(text: string, file: string): string {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true);
  const { transformed } = ts.transform(source, [({ factory, ...context }) => {
    const visit = (node: ts.Node): ts.Node => {
      const visited = ts.visitEachChild(node, visit, { factory, ...context });
      if (!ts.isBinaryExpression(visited) || !ARITHMETIC.has(visited.operatorToken.kind)) {
        return visited;
      }
      return factory.createCallExpression(factory.createIdentifier(CHECK), undefined, [
        visited,
        factory.createStringLiteral(`${file}:${lineOf(node)}: '${node.getText(source)}'`),
      ]);
    };
    return (root) => ts.visitEachChild(root, visit, { factory, ...context });
  }]);
  const [changed] = transformed;
  const body = changed === undefined ? "" : ts.createPrinter().printFile(changed);
  return `function ${CHECK}(value: number, step: string): number {
    if (Number.isSafeInteger(value)) return value;
    throw new RangeError(\`Cannot go on as \${step} is no safe integer: current value is \${value}\`);
  }
  ${body}`;
}
