/**
 * Translates the body of one function into terms of SMT, with all that must hold on the way.
 *
 * A body without loops and mutation is one expression: `if` becomes `ite`, `const` becomes `let`. Every step of
 * arithmetic leaves an obligation behind, under the conditions that lead to it.
 *
 * @module
 */

import ts from "typescript";
import { lineOf } from "../checks/syntax.ts";
import { apply, integer } from "./smt.ts";
import type { Obligation, Surroundings } from "./surroundings.ts";
import {
  BOOLEAN,
  INTEGER,
  nameOf,
  OutsideSubsetError,
  sameType,
  STRING,
  type Type,
  typeOf,
} from "./types.ts";
import {
  choose,
  functionSymbol,
  mapTerms,
  parameterValue,
  termsOf,
  unionMember,
  type Value,
} from "./values.ts";

type Scope = ReadonlyMap<string, Value>;

/** Functions that may divide: every other one calls them. */
const DIVIDING: ReadonlySet<string> = new Set(["quotient", "remainder"]);

const COMPARISONS: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.LessThanToken, "<"],
  [ts.SyntaxKind.LessThanEqualsToken, "<="],
  [ts.SyntaxKind.GreaterThanToken, ">"],
  [ts.SyntaxKind.GreaterThanEqualsToken, ">="],
]);

const ARITHMETIC: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.PlusToken, "+"],
  [ts.SyntaxKind.MinusToken, "-"],
  [ts.SyntaxKind.AsteriskToken, "*"],
  [ts.SyntaxKind.SlashToken, "exact_quotient"],
  [ts.SyntaxKind.PercentToken, "truncated_remainder"],
]);

/** Translates one body. */
export class BodyTranslator {
  /** What must hold for every input in range. */
  obligations: Obligation[] = [];
  /** How many times the body itself calls `implies`. */
  implications = 0;
  readonly #around: Surroundings;
  readonly #result: Type;
  #names = 0;

  constructor(around: Surroundings, result: Type) {
    this.#around = around;
    this.#result = result;
  }

  /** Translates the statements of a body. */
  translate(body: ts.Block, scope: Scope): Value {
    return this.#statements(body.statements, scope, () => {
      throw new OutsideSubsetError(body, "every path ends in a return");
    });
  }

  #statements(list: readonly ts.Statement[], scope: Scope, after: () => Value): Value {
    const [first, ...rest] = list;
    if (first === undefined) return after();
    if (ts.isReturnStatement(first)) {
      if (rest[0] !== undefined) throw new OutsideSubsetError(rest[0], "nothing follows a return");
      if (first.expression === undefined) {
        throw new OutsideSubsetError(first, "a function returns a value");
      }
      return this.#fit(this.#value(first.expression, scope, this.#result), this.#result, first);
    }
    if (ts.isVariableStatement(first)) return this.#constants(first, rest, scope, after);
    if (ts.isIfStatement(first)) {
      const condition = this.#boolean(first.expression, scope);
      const onward = () => this.#statements(rest, scope, after);
      const branch = (node: ts.Statement | undefined) =>
        node === undefined ? onward() : this.#statements([node], scope, onward);
      const whenTrue = this.#under(condition, () => branch(first.thenStatement));
      const whenFalse = this.#under(apply("not", condition), () => branch(first.elseStatement));
      return choose(condition, whenTrue, whenFalse);
    }
    if (ts.isBlock(first)) {
      return this.#statements(
        first.statements,
        scope,
        () => this.#statements(rest, scope, after),
      );
    }
    throw new OutsideSubsetError(first, "a statement is const, if, return, or a block of these");
  }

  #constants(
    node: ts.VariableStatement,
    rest: readonly ts.Statement[],
    scope: Scope,
    after: () => Value,
  ): Value {
    const { declarationList } = node;
    const [declaration, ...others] = declarationList.declarations;
    if (
      (declarationList.flags & ts.NodeFlags.BlockScoped) !== ts.NodeFlags.Const ||
      declaration === undefined || others.length > 0 || !ts.isIdentifier(declaration.name) ||
      declaration.initializer === undefined
    ) {
      throw new OutsideSubsetError(node, "a variable is 'const name = value', one at a time");
    }
    const type = declaration.type === undefined
      ? undefined
      : typeOf(declaration.type, declaration, (name) => this.#around.findType(name));
    const given = this.#value(declaration.initializer, scope, type);
    const value = type === undefined ? given : this.#fit(given, type, declaration);
    const name = `${declaration.name.text}#${this.#names++}`;
    const inner: Value = parameterValue({ name, type: value.type });
    const bindings = termsOf(inner).map((bound, index) => `(${bound} ${termsOf(value)[index]})`)
      .join(" ");
    const wrap = (term: string) => `(let (${bindings}) ${term})`;
    return this.#wrapped(wrap, () =>
      mapTerms(
        this.#statements(rest, new Map([...scope, [declaration.name.getText(), inner]]), after),
        wrap,
      ));
  }

  /** A value of any type. `expected` gives strings their type. */
  #value(node: ts.Expression, scope: Scope, expected?: Type): Value {
    if (ts.isParenthesizedExpression(node)) return this.#value(node.expression, scope, expected);
    if (ts.isNumericLiteral(node)) return this.#number(node, Number(node.text));
    if (ts.isStringLiteral(node)) return this.#text(node, expected);
    switch (node.kind) {
      case ts.SyntaxKind.TrueKeyword:
        return { type: BOOLEAN, term: "true" };
      case ts.SyntaxKind.FalseKeyword:
        return { type: BOOLEAN, term: "false" };
    }
    if (ts.isIdentifier(node)) return this.#named(node, scope);
    if (ts.isPropertyAccessExpression(node) && node.questionDotToken === undefined) {
      const value = this.#value(node.expression, scope);
      const type = value.type.kind === "record" ? value.type.members.get(node.name.text) : null;
      const term = "members" in value ? value.members.get(node.name.text) : undefined;
      if (type && term !== undefined) return { type, term };
      throw new OutsideSubsetError(node, "a member belongs to a flat object");
    }
    if (ts.isPrefixUnaryExpression(node)) return this.#prefix(node, scope);
    if (ts.isBinaryExpression(node)) return this.#binary(node, scope);
    if (ts.isConditionalExpression(node)) {
      const condition = this.#boolean(node.condition, scope);
      const whenTrue = this.#under(
        condition,
        () => this.#fitted(node.whenTrue, scope, expected),
      );
      const type = expected ?? whenTrue.type;
      const whenFalse = this.#under(
        apply("not", condition),
        () => this.#fitted(node.whenFalse, scope, type),
      );
      return choose(condition, whenTrue, whenFalse);
    }
    if (ts.isCallExpression(node)) return this.#call(node, scope);
    if (ts.isObjectLiteralExpression(node)) return this.#object(node, scope, expected);
    throw new OutsideSubsetError(
      node,
      "an expression is a literal, a name, a member, a condition, arithmetic, a call or an object",
    );
  }

  #number(node: ts.Node, value: number): Value {
    if (!Number.isSafeInteger(value)) throw new OutsideSubsetError(node, "a number is an integer");
    return { type: INTEGER, term: integer(value) };
  }

  #text(node: ts.StringLiteral, expected: Type | undefined): Value {
    if (expected?.kind === "union" && expected.members.includes(node.text)) {
      return { type: expected, term: unionMember(expected, node.text) };
    }
    if (expected?.kind === "string") {
      return { type: STRING, term: this.#around.literal(node.text) };
    }
    throw new OutsideSubsetError(
      node,
      "a string stands where a string or a union with it is wanted",
    );
  }

  #named(node: ts.Identifier, scope: Scope): Value {
    const local = scope.get(node.text);
    if (local !== undefined) return local;
    const constant = this.#around.findConstant(node.text);
    if (constant !== undefined) return this.#number(node, constant);
    throw new OutsideSubsetError(node, "a name is a parameter, a const, or a number of this file");
  }

  #prefix(node: ts.PrefixUnaryExpression, scope: Scope): Value {
    if (node.operator === ts.SyntaxKind.ExclamationToken) {
      return { type: BOOLEAN, term: apply("not", this.#boolean(node.operand, scope)) };
    }
    if (node.operator === ts.SyntaxKind.MinusToken) {
      return { type: INTEGER, term: apply("-", this.#integer(node.operand, scope)) };
    }
    throw new OutsideSubsetError(node, "an operator before a value is '!' or '-'");
  }

  #binary(node: ts.BinaryExpression, scope: Scope): Value {
    const { left, right } = node;
    const operator = node.operatorToken.kind;
    switch (operator) {
      case ts.SyntaxKind.AmpersandAmpersandToken:
      case ts.SyntaxKind.BarBarToken: {
        const isAnd = operator === ts.SyntaxKind.AmpersandAmpersandToken;
        const first = this.#boolean(left, scope);
        const reached = isAnd ? first : apply("not", first);
        const second = this.#under(reached, () => this.#boolean(right, scope));
        return { type: BOOLEAN, term: apply(isAnd ? "and" : "or", first, second) };
      }
      case ts.SyntaxKind.EqualsEqualsEqualsToken:
        return { type: BOOLEAN, term: this.#equality(left, right, scope) };
      case ts.SyntaxKind.ExclamationEqualsEqualsToken:
        return { type: BOOLEAN, term: apply("not", this.#equality(left, right, scope)) };
    }
    const comparison = COMPARISONS.get(operator);
    if (comparison !== undefined) {
      return {
        type: BOOLEAN,
        term: apply(comparison, this.#integer(left, scope), this.#integer(right, scope)),
      };
    }
    const arithmetic = ARITHMETIC.get(operator);
    if (arithmetic === undefined) {
      throw new OutsideSubsetError(
        node,
        "an operator is one of && || === !== < <= > >= + - * / %",
      );
    }
    return this.#arithmetic(node, arithmetic, scope);
  }

  #arithmetic(node: ts.BinaryExpression, name: string, scope: Scope): Value {
    const divides = name === "exact_quotient" || name === "truncated_remainder";
    const { shipped, functionName } = this.#around;
    if (divides && !(shipped && DIVIDING.has(functionName))) {
      throw new OutsideSubsetError(node, "only 'quotient' and 'remainder' divide: call them");
    }
    if (
      shipped && name === "*" && !this.#isConstant(node.left, scope) &&
      !this.#isConstant(node.right, scope)
    ) {
      throw new OutsideSubsetError(node, "one factor of a product is a constant");
    }
    const left = this.#integer(node.left, scope);
    const right = this.#integer(node.right, scope);
    const term = apply(name, left, right);
    const text = node.getText();
    if (divides) this.#oblige(node, apply("not", apply("=", right, "0")), `'${text}' divides by 0`);
    if (name === "exact_quotient") {
      this.#oblige(node, apply("=", left, apply("*", right, term)), `'${text}' is no integer`);
    }
    this.#oblige(node, apply("safe", term), `'${text}' leaves the safe integers`);
    return { type: INTEGER, term };
  }

  #isConstant(node: ts.Expression, scope: Scope): boolean {
    if (ts.isParenthesizedExpression(node)) return this.#isConstant(node.expression, scope);
    return ts.isNumericLiteral(node) ||
      (ts.isIdentifier(node) && !scope.has(node.text) &&
        this.#around.findConstant(node.text) !== undefined);
  }

  #equality(left: ts.Expression, right: ts.Expression, scope: Scope): string {
    // The type of a literal string is known from the other side alone.
    const [typed, other] = ts.isStringLiteral(left) ? [right, left] : [left, right];
    const one = this.#value(typed, scope);
    const two = this.#value(other, scope, one.type);
    if ("term" in one && "term" in two && sameType(one.type, two.type)) {
      return apply("=", one.term, two.term);
    }
    throw new OutsideSubsetError(left.parent, "what is compared has one type, and is no object");
  }

  #call(node: ts.CallExpression, scope: Scope): Value {
    const { expression, arguments: given } = node;
    if (ts.isPropertyAccessExpression(expression)) {
      const name = expression.getText();
      const [first, ...others] = given.map((argument) => this.#integer(argument, scope));
      if ((name !== "Math.min" && name !== "Math.max") || first === undefined) {
        throw new OutsideSubsetError(node, "of all libraries, Math.min and Math.max are known");
      }
      const smt = name === "Math.min" ? "minimum" : "maximum";
      return {
        type: INTEGER,
        term: others.reduce((term, other) => apply(smt, term, other), first),
      };
    }
    const callee = ts.isIdentifier(expression) && !scope.has(expression.text)
      ? this.#around.findFunction(expression.text)
      : undefined;
    if (callee === undefined || given.length !== callee.parameters.length) {
      throw new OutsideSubsetError(node, "what is called is a function of this file");
    }
    const terms = callee.parameters.flatMap(({ type }, index) => {
      const argument = given[index];
      if (argument === undefined) throw new OutsideSubsetError(node, "no argument is left out");
      return termsOf(this.#fitted(argument, scope, type));
    });
    if (callee.range !== null) {
      const what = `'${node.getText()}' calls with arguments out of range`;
      this.#oblige(node, apply(callee.range, ...terms), what);
    }
    const { file, name, result } = callee;
    if (name === "implies" && this.implications++ === this.#around.withoutConclusion) {
      return { type: BOOLEAN, term: apply("not", terms[0] ?? "true") };
    }
    if (result.kind !== "record") {
      return { type: result, term: apply(functionSymbol(file, name), ...terms) };
    }
    const members = [...result.members.keys()].map((
      member,
    ) => [member, apply(functionSymbol(file, name, member), ...terms)] as const);
    return { type: result, members: new Map(members) };
  }

  #object(node: ts.ObjectLiteralExpression, scope: Scope, expected: Type | undefined): Value {
    if (expected?.kind !== "record") {
      throw new OutsideSubsetError(node, "an object stands where its type is known");
    }
    const members = new Map<string, string>();
    for (const property of node.properties) {
      const value = ts.isShorthandPropertyAssignment(property)
        ? property.name
        : ts.isPropertyAssignment(property)
        ? property.initializer
        : undefined;
      const type = property.name !== undefined && ts.isIdentifier(property.name)
        ? expected.members.get(property.name.text)
        : undefined;
      if (value === undefined || type === undefined || property.name === undefined) {
        throw new OutsideSubsetError(property, `a member of ${expected.name} is 'name: value'`);
      }
      members.set(property.name.getText(), termsOf(this.#fitted(value, scope, type)).join());
    }
    if (members.size !== expected.members.size) {
      throw new OutsideSubsetError(node, `an object of ${expected.name} has all its members`);
    }
    return { type: expected, members };
  }

  #fitted(node: ts.Expression, scope: Scope, type: Type | undefined): Value {
    const value = this.#value(node, scope, type);
    return type === undefined ? value : this.#fit(value, type, node);
  }

  /** The value as one of the wanted type. An object may have more members than are wanted. */
  #fit(value: Value, type: Type, node: ts.Node): Value {
    if (type.kind !== "record") {
      if ("term" in value && sameType(value.type, type)) return value;
    } else if ("members" in value) {
      const members = new Map<string, string>();
      for (const [name, wanted] of type.members) {
        const given = value.type.members.get(name);
        const term = value.members.get(name);
        if (given !== undefined && term !== undefined && sameType(given, wanted)) {
          members.set(name, term);
        }
      }
      if (members.size === type.members.size) return { type, members };
    }
    throw new OutsideSubsetError(node, `this is a ${nameOf(type)}`);
  }

  #boolean(node: ts.Expression, scope: Scope): string {
    return termsOf(this.#fitted(node, scope, BOOLEAN)).join();
  }

  #integer(node: ts.Expression, scope: Scope): string {
    return termsOf(this.#fitted(node, scope, INTEGER)).join();
  }

  #oblige(node: ts.Node, term: string, what: string): void {
    if (this.#around.shipped) this.obligations.push({ term, line: lineOf(node), what });
  }

  /** Runs a part that is reached under a condition only. */
  #under<T>(condition: string, run: () => T): T {
    return this.#wrapped((term) => apply("=>", condition, term), run);
  }

  #wrapped<T>(wrap: (term: string) => string, run: () => T): T {
    const before = this.obligations;
    this.obligations = [];
    const result = run();
    this.obligations = [
      ...before,
      ...this.obligations.map((obligation) => ({ ...obligation, term: wrap(obligation.term) })),
    ];
    return result;
  }
}
