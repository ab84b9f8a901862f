/**
 * Translates source files to SMT: the shipped ones, and the theorems about them.
 *
 * @module
 */

import ts from "typescript";
import { lineOf, type SourceTexts } from "../checks/syntax.ts";
import { BodyTranslator } from "./body.ts";
import { apply, integer, symbol } from "./smt.ts";
import type { Callee, Obligation, Surroundings } from "./surroundings.ts";
import {
  OutsideSubsetError,
  readRecord,
  readUnion,
  type ScalarType,
  sortOf,
  type Type,
  typeOf,
} from "./types.ts";
import {
  flatten,
  functionSymbol,
  type Parameter,
  parameterValue,
  termsOf,
  unionMember,
  type Value,
} from "./values.ts";

/** What a file is. */
export interface SourceRole {
  /** The path from the root of the repository. */
  readonly file: string;
  /** True for a file of the product: it must keep to the provable subset. False for theorems, which may say more. */
  readonly shipped: boolean;
  /** The file with the predicates that say which arguments of a shipped function are in range. */
  readonly ranges?: string;
}

/** A function that was translated. */
export interface TranslatedFunction extends Callee {
  readonly line: number;
  readonly exported: boolean;
  /** The first sentences of its documentation, on one line. */
  readonly documentation: string;
  /** What must hold for every input in range; empty in theorems. */
  readonly obligations: readonly Obligation[];
  /** How often it calls `implies` itself. */
  readonly implications: number;
}

/** Every integer that a number of JavaScript holds exactly, with both neighbours. */
const PRELUDE = [
  "(declare-sort Text 0)",
  `(define-fun safe ((n Int)) Bool (<= ${integer(Number.MIN_SAFE_INTEGER)} n ${
    integer(Number.MAX_SAFE_INTEGER)
  }))`,
  "(define-fun minimum ((a Int) (b Int)) Int (ite (< b a) b a))",
  "(define-fun maximum ((a Int) (b Int)) Int (ite (> b a) b a))",
  // SMT rounds so that the remainder is never negative; JavaScript rounds towards 0.
  "(define-fun truncated_quotient ((a Int) (b Int)) Int (ite (>= a 0) (div a b) (- (div (- a) b))))",
  "(define-fun truncated_remainder ((a Int) (b Int)) Int (- a (* b (truncated_quotient a b))))",
  // Whoever divides must show that nothing remains, so that rounding does not matter.
  "(define-fun exact_quotient ((a Int) (b Int)) Int (div a b))",
];

interface Module {
  readonly role: SourceRole;
  readonly types: Map<string, Type>;
  readonly constants: Map<string, number>;
  readonly functions: Map<string, ts.FunctionDeclaration>;
}

/** Source files as definitions of SMT. */
export class Translation {
  readonly #texts: SourceTexts;
  readonly #roles: ReadonlyMap<string, SourceRole>;
  readonly #modules = new Map<string, Module>();
  readonly #functions = new Map<string, TranslatedFunction>();
  readonly #inProgress = new Set<string>();
  readonly #literals = new Map<string, string>();
  readonly #unions: string[] = [];
  /** By the symbol that each defines, after all that it refers to. */
  readonly #definitions = new Map<string, string>();

  /**
   * @param texts The files' texts.
   * @param roles Which of them can be translated, and as what.
   */
  constructor(texts: SourceTexts, roles: readonly SourceRole[]) {
    this.#texts = texts;
    this.#roles = new Map(roles.map((role) => [role.file, role]));
  }

  /** The strings that stand in the sources, by the symbol that stands for each. */
  get literals(): ReadonlyMap<string, string> {
    return new Map([...this.#literals].map(([text, name]) => [name, text]));
  }

  /**
   * Translates every function of a file.
   *
   * @returns In the order in which they stand there.
   * @throws {OutsideSubsetError} Something in the file is outside the provable subset.
   */
  functionsOf(file: string): TranslatedFunction[] {
    const { functions } = this.#module(file);
    return [...functions]
      .filter(([, node]) => node.getSourceFile().fileName === file)
      .map(([name]) => this.function(file, name));
  }

  /**
   * Translates one function, and those that it calls.
   *
   * @throws {OutsideSubsetError} Something on the way is outside the provable subset.
   */
  function(file: string, name: string): TranslatedFunction {
    const key = functionSymbol(file, name);
    const known = this.#functions.get(key);
    if (known !== undefined) return known;
    const module = this.#module(file);
    const node = module.functions.get(name);
    if (node === undefined) throw new Error(`Cannot find the function '${name}' in ${file}`);
    if (this.#inProgress.has(key)) {
      throw new OutsideSubsetError(node, "a function does not call itself");
    }
    this.#inProgress.add(key);
    const translated = this.#translate(module, node, null);
    this.#functions.set(key, translated);
    return translated;
  }

  /**
   * Translates a theorem once more for each of its implications, each time with one conclusion taken for false.
   *
   * @returns The symbols. One that still holds for every input has a premise that nothing fulfils.
   */
  withoutConclusions(theorem: TranslatedFunction): string[] {
    const module = this.#module(theorem.file);
    const node = module.functions.get(theorem.name);
    if (node === undefined) return [];
    return Array.from({ length: theorem.implications }, (_, index) => {
      this.#translate(module, node, index);
      return variantSymbol(theorem, index);
    });
  }

  /**
   * What some terms need: sorts, strings, and the functions that they call.
   *
   * @param terms The terms that will follow.
   */
  script(terms: readonly string[]): string {
    const literals = [...this.#literals.values()];
    return [
      ...PRELUDE,
      ...this.#unions,
      ...literals.map((name) => `(declare-const ${name} Text)`),
      ...(literals.length > 1 ? [`(assert ${apply("distinct", ...literals)})`] : []),
      ...this.#neededBy(terms),
    ].join("\n");
  }

  #neededBy(terms: readonly string[]): string[] {
    const needed = new Set<string>();
    const open = [...terms];
    for (let text = open.pop(); text !== undefined; text = open.pop()) {
      for (const [name] of text.matchAll(/\|[^|]*\|/g)) {
        const definition = this.#definitions.get(name);
        if (definition === undefined || needed.has(name)) continue;
        needed.add(name);
        open.push(definition);
      }
    }
    return [...this.#definitions].flatMap(([name, text]) => needed.has(name) ? [text] : []);
  }

  #translate(
    module: Module,
    node: ts.FunctionDeclaration,
    withoutConclusion: number | null,
  ): TranslatedFunction {
    const { role } = module;
    const name = node.name?.text ?? "";
    const exported = isExported(node);
    const find = (type: string) => module.types.get(type);
    if (
      node.body === undefined || node.asteriskToken !== undefined || node.typeParameters ||
      node.modifiers?.some(({ kind }) => kind !== ts.SyntaxKind.ExportKeyword) ||
      (role.shipped && !exported)
    ) {
      throw new OutsideSubsetError(node, "a function is exported, and neither async nor generic");
    }
    const parameters = node.parameters.map((parameter): Parameter => {
      const { questionToken, dotDotDotToken, initializer } = parameter;
      if (!ts.isIdentifier(parameter.name) || questionToken || dotDotDotToken || initializer) {
        throw new OutsideSubsetError(parameter, "a parameter is 'name: type', and never left out");
      }
      return { name: parameter.name.text, type: typeOf(parameter.type, parameter, find) };
    });
    const result = typeOf(node.type, node, find);
    const body = new BodyTranslator(this.#surroundings(module, name, withoutConclusion), result);
    const scope = new Map(parameters.map((each) => [each.name, parameterValue(each)]));
    const value = body.translate(node.body, scope);
    this.#define(role.file, name, withoutConclusion, parameters, value);
    return {
      file: role.file,
      name,
      parameters,
      result,
      range: role.ranges === undefined ? null : this.#range(role.ranges, node, parameters),
      line: lineOf(node),
      exported,
      documentation: documentationOf(node),
      obligations: body.obligations,
      implications: body.implications,
    };
  }

  #define(
    file: string,
    name: string,
    variant: number | null,
    parameters: readonly Parameter[],
    value: Value,
  ): void {
    const given = parameters.flatMap(flatten)
      .map(([term, type]) => `(${symbol(term)} ${sortOf(type)})`).join(" ");
    const members = value.type.kind === "record"
      ? [...value.type.members].map(([member, type]) => ({ member, type }))
      : [{ member: undefined, type: value.type }];
    members.forEach(({ member, type }, index) => {
      const defined = variant === null
        ? functionSymbol(file, name, member)
        : variantSymbol({ file, name }, variant);
      const term = termsOf(value)[index] ?? "";
      this.#definitions.set(
        defined,
        `(define-fun ${defined} (${given}) ${sortOf(type)} ${term})`,
      );
    });
  }

  #range(file: string, node: ts.FunctionDeclaration, parameters: readonly Parameter[]): string {
    const name = node.name?.text ?? "";
    if (!this.#module(file).functions.has(name)) {
      throw new OutsideSubsetError(node, `${file} has a '${name}' that says what is in range`);
    }
    const range = this.function(file, name);
    // One that is not looked at may have an underscore before its name.
    const shape = (list: readonly Parameter[]) =>
      JSON.stringify(list.flatMap(flatten)).replaceAll('["_', '["');
    if (shape(range.parameters) !== shape(parameters)) {
      throw new OutsideSubsetError(node, `'${name}' of ${file} has the same parameters`);
    }
    return functionSymbol(file, name);
  }

  #surroundings(
    module: Module,
    functionName: string,
    withoutConclusion: number | null,
  ): Surroundings {
    return {
      findType: (name) => module.types.get(name),
      findConstant: (name) => module.constants.get(name),
      findFunction: (name) => {
        const node = module.functions.get(name);
        if (node === undefined) return undefined;
        return this.function(node.getSourceFile().fileName, node.name?.text ?? name);
      },
      literal: (text) => {
        const name = symbol(`text ${text}`);
        this.#literals.set(text, name);
        return name;
      },
      shipped: module.role.shipped,
      functionName,
      withoutConclusion,
    };
  }

  #module(file: string): Module {
    const known = this.#modules.get(file);
    if (known !== undefined) return known;
    const text = this.#texts.get(file);
    const role = this.#roles.get(file);
    if (text === undefined || role === undefined) throw new Error(`Cannot find ${file} to prove`);
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true);
    const module = { role, types: new Map(), constants: new Map(), functions: new Map() };
    this.#modules.set(file, module);
    for (const statement of source.statements) this.#declare(module, statement);
    return module;
  }

  #declare(module: Module, node: ts.Statement): void {
    const find = (name: string) => module.types.get(name);
    if (ts.isFunctionDeclaration(node) && node.name !== undefined) {
      module.functions.set(node.name.text, node);
    } else if (ts.isInterfaceDeclaration(node)) {
      module.types.set(node.name.text, readRecord(node, find));
    } else if (ts.isTypeAliasDeclaration(node)) {
      const union = readUnion(node);
      module.types.set(node.name.text, union);
      this.#unions.push(enumeration(union));
    } else if (ts.isVariableStatement(node)) {
      const [name, value] = readConstant(node);
      module.constants.set(name, value);
    } else if (ts.isImportDeclaration(node) && !module.role.shipped) {
      this.#import(module, node);
    } else {
      throw new OutsideSubsetError(
        node,
        "a file has functions, flat objects, string unions and numbers, and imports nothing",
      );
    }
  }

  #import(module: Module, node: ts.ImportDeclaration): void {
    const bindings = node.importClause?.namedBindings;
    if (
      bindings === undefined || !ts.isNamedImports(bindings) ||
      !ts.isStringLiteral(node.moduleSpecifier)
    ) {
      throw new OutsideSubsetError(node, "an import names what it takes");
    }
    const path = new URL(node.moduleSpecifier.text, `file:///${module.role.file}`).pathname.slice(
      1,
    );
    const from = this.#module(path);
    for (const { name, propertyName } of bindings.elements) {
      const original = propertyName?.text ?? name.text;
      const type = from.types.get(original);
      const constant = from.constants.get(original);
      const called = from.functions.get(original);
      if (type !== undefined) module.types.set(name.text, type);
      else if (constant !== undefined) module.constants.set(name.text, constant);
      else if (called !== undefined) module.functions.set(name.text, called);
      else throw new OutsideSubsetError(name, `${path} has it`);
    }
  }
}

/** The symbol of a theorem of which one conclusion is taken for false. */
function variantSymbol({ file, name }: { file: string; name: string }, index: number): string {
  return symbol(`${file}:${name} without conclusion ${index}`);
}

function enumeration(type: ScalarType): string {
  const members = type.kind === "union" ? type.members.map((each) => unionMember(type, each)) : [];
  return `(declare-datatypes ((${sortOf(type)} 0)) ((${
    members.map((name) => `(${name})`).join(" ")
  })))`;
}

function readConstant(node: ts.VariableStatement): [name: string, value: number] {
  const { declarationList } = node;
  const [declaration, ...others] = declarationList.declarations;
  const initializer = declaration?.initializer;
  const isConst = (declarationList.flags & ts.NodeFlags.BlockScoped) === ts.NodeFlags.Const;
  if (
    isConst && others.length === 0 && declaration && ts.isIdentifier(declaration.name) &&
    initializer && ts.isNumericLiteral(initializer) &&
    Number.isSafeInteger(Number(initializer.text))
  ) {
    return [declaration.name.text, Number(initializer.text)];
  }
  throw new OutsideSubsetError(node, "at the top of a file stands 'const NAME = an integer'");
}

function isExported(node: ts.FunctionDeclaration): boolean {
  return node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

function documentationOf(node: ts.FunctionDeclaration): string {
  const comment = ts.getJSDocCommentsAndTags(node).find(ts.isJSDoc)?.comment;
  return (ts.getTextOfJSDocComment(comment) ?? "").replace(/\s+/g, " ").trim();
}
