/**
 * The check of promises: `no-floating-promises` and `no-misused-promises` of typescript-eslint, which need types.
 *
 * deno lint has no rule that knows types. The types are those that Deno itself gives out (`deno types`), of the packages
 * in node_modules, and of our own files, all in one program that is made here: no tsconfig has to be kept in step with
 * deno.json.
 *
 * @module
 */

import { ESLint } from "eslint";
import ts from "typescript";
import tseslint from "typescript-eslint";
import manifest from "../../deno.json" with { type: "json" };
import { pathOf, ROOT } from "./shell.ts";
import type { Offence } from "./syntax.ts";

const RULES = ["no-floating-promises", "no-misused-promises"] as const;

/** What does not exist as a file: the types of the runtime. */
const RUNTIME_TYPES = pathOf(new URL("deno.d.ts", ROOT));

/** Deno imports files of these kinds as text (`with { type: "text" }`); the compiler by itself knows of no such modules. */
const TEXT_MODULES = ["yaml", "css", "svg"].map((kind) =>
  `declare module "*.${kind}" { const text: string; export default text; }`
).join("\n");

/** Our own rooms by the names that users import them by, which Deno reads from `exports`. */
const OWN_ROOMS: Readonly<Record<string, string[]>> = Object.fromEntries(
  Object.entries(manifest.exports).map(([name, path]) => [
    name.replace(".", manifest.name),
    [pathOf(new URL(path, ROOT))],
  ]),
);

/** Finds promises that nobody waits for. `files` are paths from the root of the repository. */
export async function promiseOffences(files: readonly string[]): Promise<Offence[]> {
  const root = pathOf(ROOT);
  const paths = files.map((file) => root + file);
  const program = createProgram(paths, await runtimeTypes());
  const eslint = new ESLint({
    cwd: root,
    allowInlineConfig: false,
    overrideConfigFile: true,
    overrideConfig: [{
      files: ["**/*.ts", "**/*.tsx"],
      languageOptions: { parser: tseslint.parser, parserOptions: { programs: [program] } },
      plugins: { typed: tseslint.plugin },
      rules: Object.fromEntries(RULES.map((rule) => [`typed/${rule}`, "error"])),
    }],
  });
  const found = (await eslint.lintFiles(paths)).flatMap(({ filePath, messages }) =>
    messages.map(({ line, ruleId, message }) => ({
      file: filePath.slice(root.length),
      line,
      message: `${ruleId?.replace("typed/", "") ?? "unreadable"}: ${message}`,
    }))
  );
  return [...unresolvedImports(program, paths), ...found];
}

function createProgram(paths: readonly string[], types: string): ts.Program {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ["lib.esnext.d.ts"],
    // The modules of node come with the types of a package that we use; the planted promises tell when they do not.
    typeRoots: [pathOf(new URL("node_modules/.deno/node_modules/@types", ROOT))],
    types: ["node"],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    paths: { ...OWN_ROOMS },
    allowImportingTsExtensions: true,
    // What runs in a browser is written as it is served.
    allowJs: true,
    jsx: ts.JsxEmit.ReactJSX,
    jsxImportSource: "hono/jsx",
  };
  const host = ts.createCompilerHost(options, true);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => name === RUNTIME_TYPES || fileExists.call(host, name);
  host.readFile = (name) => name === RUNTIME_TYPES ? types : readFile.call(host, name);
  host.getSourceFile = (name, version, ...rest) =>
    name === RUNTIME_TYPES
      ? ts.createSourceFile(name, types, version, true)
      : getSourceFile.call(host, name, version, ...rest);
  return ts.createProgram({ rootNames: [RUNTIME_TYPES, ...paths], options, host });
}

/** A module, a member, a declaration file or a name (also one of node's) that cannot be found. */
const UNRESOLVED: ReadonlySet<number> = new Set([2304, 2305, 2307, 2580, 2591, 7016]);

/** An import without types makes its promises invisible, so that it is an offence of its own. */
function unresolvedImports(program: ts.Program, paths: readonly string[]): Offence[] {
  const root = pathOf(ROOT);
  return paths.flatMap((path) => {
    const source = program.getSourceFile(path);
    if (source === undefined) return [];
    return program.getSemanticDiagnostics(source).filter(({ code }) => UNRESOLVED.has(code)).map(
      ({ start, messageText }) => ({
        file: path.slice(root.length),
        line: source.getLineAndCharacterOfPosition(start ?? 0).line + 1,
        message: ts.flattenDiagnosticMessageText(messageText, " "),
      }),
    );
  });
}

async function runtimeTypes(): Promise<string> {
  const { success, stdout } = await new Deno.Command(Deno.execPath(), { args: ["types"] }).output();
  if (!success) throw new Error("Cannot check promises as 'deno types' failed");
  return `${new TextDecoder().decode(stdout)}\n${TEXT_MODULES}\n`;
}
