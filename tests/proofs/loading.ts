/**
 * Loads source texts as modules without a file, so that a counter-example meets the very text that was translated.
 *
 * @module
 */

import ts from "typescript";
import type { SourceTexts } from "../checks/syntax.ts";
import type { Argument } from "./prover.ts";

/** Calls a function of a module that was loaded. */
export type Call = (name: string, ...given: readonly Argument[]) => unknown;

/**
 * Loads one of the texts, with those that it imports.
 *
 * @param texts The texts by their path from the root of the repository.
 * @param file The path of the one whose functions are called.
 */
export async function load(texts: SourceTexts, file: string): Promise<Call> {
  const module: unknown = await import(urlOf(texts, file));
  return (name, ...given) => {
    const called: unknown = typeof module === "object" && module !== null
      ? Reflect.get(module, name)
      : undefined;
    if (typeof called !== "function") {
      throw new TypeError(`Cannot call '${name}' as ${file} does not export it`);
    }
    return Reflect.apply(called, undefined, given);
  };
}

/** A URL that is the module itself, and so are the URLs in it of the modules that it imports. */
function urlOf(texts: SourceTexts, file: string): string {
  const { outputText } = ts.transpileModule(texts.get(file) ?? "", {
    compilerOptions: { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext },
  });
  const linked = outputText.replace(/(?<= from ")\.[^"]+(?=";)/g, (specifier) => {
    return urlOf(texts, new URL(specifier, `file:///${file}`).pathname.slice(1));
  });
  return `data:text/javascript;base64,${new TextEncoder().encode(linked).toBase64()}`;
}
