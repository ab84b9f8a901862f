/**
 * The modules of the npm package: our own files as JavaScript, with declarations and source maps, made by the TypeScript
 * compiler. One file stays one module, so a class is one class for all exports of the package.
 *
 * @module
 */

import ts from "typescript";

/** What {@linkcode emitModules} needs. */
export interface EmitOptions {
  /** The folder of the repository, with a slash at its end. */
  readonly root: string;
  /** The files that are exported, as paths from the root. What they import comes along. */
  readonly entries: readonly string[];
  /** A file with the types of the run time (`deno types`). */
  readonly runtimeTypes: string;
  /** The folder that the modules go to. */
  readonly outDir: string;
}

/** What was made. */
export interface EmittedModules {
  /** The packages that the modules import, without Node's own modules, sorted. */
  readonly packages: readonly string[];
  /** What the compiler refuses: then nothing is to be shipped. */
  readonly problems: readonly string[];
}

/** Node 20 knows all of it; the compiler writes what is newer (`using`) in older terms. */
const TARGET = ts.ScriptTarget.ES2023;

/** Makes the modules. */
export function emitModules({ root, entries, runtimeTypes, outDir }: EmitOptions): EmittedModules {
  const options: ts.CompilerOptions = {
    target: TARGET,
    lib: ["lib.esnext.d.ts"],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    rewriteRelativeImportExtensions: true,
    resolveJsonModule: true,
    typeRoots: [`${root}node_modules/.deno/node_modules/@types`],
    types: ["node"],
    strict: true,
    skipLibCheck: true,
    declaration: true,
    sourceMap: true,
    inlineSources: true,
    rootDir: root,
    outDir,
  };
  const rootNames = [runtimeTypes, ...entries.map((entry) => root + entry)];
  const program = ts.createProgram({ rootNames, options });
  const { diagnostics } = program.emit();
  const own = program.getSourceFiles().filter((file) => isOwn(file.fileName, root, runtimeTypes));
  const problems = [
    ...diagnostics,
    ...program.getSyntacticDiagnostics(),
    ...own.flatMap((file) => program.getSemanticDiagnostics(file)),
  ];
  return {
    packages: packagesOf(own),
    problems: problems.map((problem) => describe(problem, root)),
  };
}

function isOwn(file: string, root: string, runtimeTypes: string): boolean {
  return file.startsWith(root) && file !== runtimeTypes && !file.includes("/node_modules/");
}

/** The packages that files import, in whatever way. */
function packagesOf(files: readonly ts.SourceFile[]): string[] {
  const names = files.flatMap(({ text }) =>
    ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => packageName(fileName))
  );
  return [...new Set(names.filter((name) => name !== null))].sort();
}

/** The package of an import; `null` for a file of ours and for a module of Node. */
export function packageName(specifier: string): string | null {
  if (/^(\.|node:)/.test(specifier)) return null;
  const [first = "", second = ""] = specifier.split("/");
  return first.startsWith("@") ? `${first}/${second}` : first;
}

function describe({ file, start, messageText }: ts.Diagnostic, root: string): string {
  const message = ts.flattenDiagnosticMessageText(messageText, " ");
  if (file === undefined) return message;
  const { line } = file.getLineAndCharacterOfPosition(start ?? 0);
  return `${file.fileName.replace(root, "")}:${line + 1}: ${message}`;
}
