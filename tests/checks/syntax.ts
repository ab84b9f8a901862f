/**
 * The product's source as syntax trees, for the checks that read it.
 *
 * The trees come from memory, so that a check is shown a planted mistake in the same way as the real files.
 *
 * @module
 */

import ts from "typescript";
import { ROOT } from "./shell.ts";

/** Source files by their path from the root of the repository, for example `lib/lease/rules.ts`. */
export type SourceTexts = ReadonlyMap<string, string>;

/** One place where a rule is broken. */
export interface Offence {
  /** The path from the root of the repository. */
  readonly file: string;
  /** The line, from 1. */
  readonly line: number;
  /** What is wrong, and what would be right. */
  readonly message: string;
}

/** Files that were parsed together. */
export interface Syntax {
  readonly files: readonly ts.SourceFile[];
  readonly checker: ts.TypeChecker;
}

/** One module that a file names. */
export interface Import {
  /** What stands in the source. */
  readonly specifier: string;
  /** The path from the root of the repository when it is a file of ours, and `null` for a package. */
  readonly target: string | null;
  /** True when nothing of it is left at run time. */
  readonly typeOnly: boolean;
  /** The names that are imported, as the module exports them; `null` when it is the whole module. */
  readonly names: readonly string[] | null;
  /** True when a local name stands for the whole module: {@linkcode wholeModuleUses} tells how it is used. */
  readonly bound: boolean;
  readonly line: number;
}

/** One use of a name that the file itself does not declare. */
export interface GlobalUse {
  /** The name with the members that follow it, for example `Date.now`; `globalThis.` is left out. */
  readonly path: string;
  readonly node: ts.Identifier;
  readonly line: number;
}

/** Reads the TypeScript files below `folders` (and files named in it); what is not there is left out. */
export async function readSources(...folders: readonly string[]): Promise<SourceTexts> {
  const texts = new Map<string, string>();
  for (const folder of folders) await readInto(texts, folder);
  return texts;
}

async function readInto(texts: Map<string, string>, path: string): Promise<void> {
  const url = new URL(path, ROOT);
  const info = await Deno.stat(url).catch((error: unknown) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (info === null) return;
  if (info.isFile) {
    texts.set(path, await Deno.readTextFile(url));
    return;
  }
  for await (const entry of Deno.readDir(url)) {
    if (entry.isDirectory || /\.tsx?$/.test(entry.name)) {
      await readInto(texts, `${path}/${entry.name}`);
    }
  }
}

/** Parses files and finds out which name is declared where. Nothing but the given texts is read. */
export function parse(texts: SourceTexts): Syntax {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    jsx: ts.JsxEmit.Preserve,
    // Without libraries a global name has no declaration at all, and that is how it is told from a local one.
    noLib: true,
    types: [],
  };
  const host: ts.CompilerHost = {
    fileExists: (name) => texts.has(name),
    readFile: (name) => texts.get(name),
    getSourceFile: (name, version) => {
      const text = texts.get(name);
      return text === undefined ? undefined : ts.createSourceFile(name, text, version, true);
    },
    // Which name comes from which file is no matter here, only that it is imported.
    resolveModuleNameLiterals: (names) => names.map(() => ({ resolvedModule: undefined })),
    getDefaultLibFileName: () => "lib.d.ts",
    writeFile: () => {},
    getCurrentDirectory: () => "",
    getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => "\n",
  };
  const program = ts.createProgram({ rootNames: [...texts.keys()], options, host });
  const files = program.getSourceFiles().filter((file) => texts.has(file.fileName));
  return { files, checker: program.getTypeChecker() };
}

/** The line of a node, from 1. */
export function lineOf(node: ts.Node): number {
  const file = node.getSourceFile();
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
}

/** Every module that a file names, static, dynamic or in a type. */
export function importsOf(file: ts.SourceFile): Import[] {
  const found: Import[] = [];
  const add = (
    node: ts.Node,
    specifier: ts.Node | undefined,
    typeOnly: boolean,
    names: readonly string[] | null,
    bound = false,
  ) => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return;
    const target = resolve(file.fileName, specifier.text);
    found.push({ specifier: specifier.text, target, typeOnly, names, bound, line: lineOf(node) });
  };
  visit(file, (node) => {
    if (ts.isImportDeclaration(node)) {
      const names = importedNames(node.importClause);
      add(node, node.moduleSpecifier, isTypeOnlyImport(node.importClause), names, names === null);
    } else if (ts.isExportDeclaration(node)) {
      const { exportClause } = node;
      const named = exportClause !== undefined && ts.isNamedExports(exportClause)
        ? exportClause.elements
        : null;
      const typeOnly = node.isTypeOnly || (named?.every((name) => name.isTypeOnly) ?? false);
      const names = named?.map((name) => (name.propertyName ?? name.name).text) ?? null;
      add(node, node.moduleSpecifier, typeOnly, names);
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node, node.arguments[0], false, null);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node, node.argument.literal, true, null);
    }
  });
  return found;
}

/**
 * Every use of a module that is imported whole (`import x from`, `import * as x from`), with the members that are named,
 * for example `node:process.cpuUsage`.
 */
export function wholeModuleUses(syntax: Syntax, file: ts.SourceFile): GlobalUse[] {
  const found: GlobalUse[] = [];
  visit(file, (node) => {
    if (!ts.isIdentifier(node) || !isValue(node) || isImportName(node)) return;
    const specifier = wholeModuleOf(symbolOf(syntax.checker, node)?.declarations?.[0]);
    if (specifier === null) return;
    const members = memberPath(node).split(".").slice(1);
    found.push({ path: [specifier, ...members].join("."), node, line: lineOf(node) });
  });
  return found;
}

/** Every use of a global as a value. Types are left out: nothing of them is left at run time. */
export function globalsOf(syntax: Syntax, file: ts.SourceFile): GlobalUse[] {
  const found: GlobalUse[] = [];
  visit(file, (node) => {
    if (!ts.isIdentifier(node) || !isValue(node) || isDeclared(syntax.checker, node)) return;
    found.push({ path: memberPath(node), node, line: lineOf(node) });
  });
  return found;
}

/** Calls `look` with every node below `node`, and with itself. */
export function visit(node: ts.Node, look: (node: ts.Node) => void): void {
  look(node);
  node.forEachChild((child) => visit(child, look));
}

function importedNames(clause: ts.ImportClause | undefined): readonly string[] | null {
  if (clause === undefined) return [];
  const bindings = clause.namedBindings;
  if (clause.name !== undefined || bindings === undefined || ts.isNamespaceImport(bindings)) {
    return null;
  }
  return bindings.elements.map((element) => (element.propertyName ?? element.name).text);
}

function isTypeOnlyImport(clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const bindings = clause.namedBindings;
  return clause.name === undefined && bindings !== undefined && ts.isNamedImports(bindings) &&
    bindings.elements.length > 0 && bindings.elements.every((element) => element.isTypeOnly);
}

function resolve(from: string, specifier: string): string | null {
  if (!specifier.startsWith(".")) return null;
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}

function isValue(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent) && parent.name === node) return false;
  if (ts.isPartOfTypeNode(node) || isInType(node)) return false;
  if (ts.isShorthandPropertyAssignment(parent)) return parent.name === node;
  if (ts.isPropertyAssignment(parent) && parent.name === node) return false;
  if (ts.isBindingElement(parent) && parent.propertyName === node) return false;
  if (ts.isImportSpecifier(parent) || ts.isExportSpecifier(parent)) return false;
  if (ts.isLabeledStatement(parent) || ts.isBreakOrContinueStatement(parent)) return false;
  if (ts.isMetaProperty(parent) || ts.isJsxAttribute(parent)) return false;
  return !(isJsxTag(parent, node) && /^[a-z]/.test(node.text));
}

function isJsxTag(parent: ts.Node, node: ts.Node): boolean {
  return (ts.isJsxOpeningLikeElement(parent) || ts.isJsxClosingElement(parent)) &&
    parent.tagName === node;
}

function isInType(node: ts.Node): boolean {
  for (let at: ts.Node = node.parent; !ts.isSourceFile(at); at = at.parent) {
    // The class that a class extends is a value, although the syntax counts it among the types.
    if (ts.isHeritageClause(at)) return at.token === ts.SyntaxKind.ImplementsKeyword;
    if (ts.isTypeNode(at) && !ts.isExpressionWithTypeArguments(at)) return true;
    if (ts.isStatement(at)) return ts.isInterfaceDeclaration(at) || ts.isTypeAliasDeclaration(at);
  }
  return false;
}

function isDeclared(checker: ts.TypeChecker, node: ts.Identifier): boolean {
  return (symbolOf(checker, node)?.declarations?.length ?? 0) > 0 || node.text === "undefined";
}

function symbolOf(checker: ts.TypeChecker, node: ts.Identifier): ts.Symbol | undefined {
  return ts.isShorthandPropertyAssignment(node.parent)
    ? checker.getShorthandAssignmentValueSymbol(node.parent)
    : checker.getSymbolAtLocation(node);
}

function isImportName({ parent }: ts.Identifier): boolean {
  return ts.isImportClause(parent) || ts.isNamespaceImport(parent);
}

function wholeModuleOf(declaration: ts.Declaration | undefined): string | null {
  if (declaration === undefined) return null;
  const clause = ts.isNamespaceImport(declaration) ? declaration.parent : declaration;
  if (!ts.isImportClause(clause) || !ts.isImportDeclaration(clause.parent)) return null;
  const { moduleSpecifier } = clause.parent;
  return ts.isStringLiteralLike(moduleSpecifier) ? moduleSpecifier.text : null;
}

function memberPath(node: ts.Identifier): string {
  const names = [node.text];
  for (let at: ts.Node = node; at.parent !== undefined; at = at.parent) {
    const { parent } = at;
    if (ts.isPropertyAccessExpression(parent) && parent.expression === at) {
      names.push(parent.name.text);
    } else if (
      ts.isElementAccessExpression(parent) && parent.expression === at &&
      ts.isStringLiteralLike(parent.argumentExpression)
    ) {
      names.push(parent.argumentExpression.text);
    } else {
      break;
    }
  }
  while (names[0] === "globalThis" && names.length > 1) names.shift();
  return names.join(".");
}
