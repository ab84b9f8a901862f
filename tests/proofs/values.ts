/**
 * Values during translation: what a parameter, a member or an expression of the source is in SMT.
 *
 * @module
 */

import { apply, symbol } from "./smt.ts";
import { type RecordType, sameType, type ScalarType, type Type } from "./types.ts";

/** A value during translation: a term, or a term for each member. */
export type Value =
  | { readonly type: ScalarType; readonly term: string }
  | { readonly type: RecordType; readonly members: ReadonlyMap<string, string> };

/** One parameter of a function. */
export interface Parameter {
  readonly name: string;
  readonly type: Type;
}

/** The symbol of a function, or of one member of its result. */
export function functionSymbol(file: string, name: string, member?: string): string {
  return symbol(member === undefined ? `${file}:${name}` : `${file}:${name}.${member}`);
}

/** The names of the terms that a parameter becomes, with their types. */
export function flatten({ name, type }: Parameter): [name: string, type: ScalarType][] {
  return type.kind === "record"
    ? [...type.members].map(([member, inner]) => [`${name}.${member}`, inner])
    : [[name, type]];
}

/** The value of a parameter inside its function. */
export function parameterValue({ name, type }: Parameter): Value {
  return type.kind === "record"
    ? {
      type,
      members: new Map([...type.members.keys()].map((key) => [key, symbol(`${name}.${key}`)])),
    }
    : { type, term: symbol(name) };
}

/** The symbol of a member of a string union. */
export function unionMember(type: ScalarType & { readonly kind: "union" }, member: string): string {
  return symbol(`${type.file}:${type.name}=${member}`);
}

/** The terms of a value, in the order of its members. */
export function termsOf(value: Value): readonly string[] {
  return "term" in value
    ? [value.term]
    : [...value.type.members.keys()].map((name) => value.members.get(name) ?? "");
}

/** Changes each term of a value. */
export function mapTerms(value: Value, change: (term: string) => string): Value {
  if ("term" in value) return { type: value.type, term: change(value.term) };
  const members = [...value.members].map(([name, term]) => [name, change(term)] as const);
  return { type: value.type, members: new Map(members) };
}

/** One of two values of the same type, member by member. */
export function choose(condition: string, whenTrue: Value, whenFalse: Value): Value {
  if ("term" in whenTrue && "term" in whenFalse && sameType(whenTrue.type, whenFalse.type)) {
    return {
      type: whenTrue.type,
      term: apply("ite", condition, whenTrue.term, whenFalse.term),
    };
  }
  if ("members" in whenTrue && "members" in whenFalse && whenTrue.type === whenFalse.type) {
    const members = [...whenTrue.members].map(([name, term]) =>
      [name, apply("ite", condition, term, whenFalse.members.get(name) ?? "")] as const
    );
    return { type: whenTrue.type, members: new Map(members) };
  }
  throw new TypeError("Cannot choose between two values as their types differ");
}
