/**
 * The types of the provable subset, and how they are read from a source file.
 *
 * @module
 */

import ts from "typescript";
import { lineOf } from "../checks/syntax.ts";

/** A type that is one term of SMT. */
export type ScalarType =
  | { readonly kind: "integer" }
  | { readonly kind: "boolean" }
  | { readonly kind: "string" }
  | {
    readonly kind: "union";
    readonly name: string;
    readonly file: string;
    readonly members: readonly string[];
  };

/** A flat object: one term for each member. */
export interface RecordType {
  readonly kind: "record";
  readonly name: string;
  readonly members: ReadonlyMap<string, ScalarType>;
}

/** A type of the provable subset. */
export type Type = ScalarType | RecordType;

/** Whole numbers. */
export const INTEGER: ScalarType = { kind: "integer" };
/** True and false. */
export const BOOLEAN: ScalarType = { kind: "boolean" };
/** Strings of which nothing is known but whether two are the same. */
export const STRING: ScalarType = { kind: "string" };

/** A source file has a construct that the translation does not cover. */
export class OutsideSubsetError extends Error {
  override readonly name = "OutsideSubsetError";
  /** The path from the root of the repository. */
  readonly file: string;
  /** The line, from 1. */
  readonly line: number;
  /** The kind of the construct, as the TypeScript compiler calls it. */
  readonly construct: string;

  constructor(node: ts.Node, wish: string) {
    const file = node.getSourceFile();
    const construct = ts.SyntaxKind[node.kind] ?? "unknown";
    const text = node.getText(file).split("\n")[0];
    const line = lineOf(node);
    super(
      `Cannot translate ${file.fileName}:${line} as it is outside the provable subset: ${wish}: ${construct} '${text}'`,
    );
    this.file = file.fileName;
    this.line = line;
    this.construct = construct;
  }
}

/** Finds the type that a name stands for, or `undefined`. */
export type FindType = (name: string) => Type | undefined;

/** Reads a type where it is used. */
export function typeOf(node: ts.TypeNode | undefined, owner: ts.Node, find: FindType): Type {
  if (node === undefined) throw new OutsideSubsetError(owner, "its type must be written");
  switch (node.kind) {
    case ts.SyntaxKind.NumberKeyword:
      return INTEGER;
    case ts.SyntaxKind.BooleanKeyword:
      return BOOLEAN;
    case ts.SyntaxKind.StringKeyword:
      return STRING;
  }
  if (
    ts.isTypeReferenceNode(node) && ts.isIdentifier(node.typeName) &&
    node.typeArguments === undefined
  ) {
    const found = find(node.typeName.text);
    if (found !== undefined) return found;
  }
  throw new OutsideSubsetError(
    node,
    "a type is number, boolean, string, or the name of a string union or of a flat object",
  );
}

/** Reads `type Name = "one" | "two"`. */
export function readUnion(node: ts.TypeAliasDeclaration): ScalarType {
  const parts = ts.isUnionTypeNode(node.type) ? node.type.types : [node.type];
  const members = parts.map((part) => {
    if (ts.isLiteralTypeNode(part) && ts.isStringLiteral(part.literal)) return part.literal.text;
    throw new OutsideSubsetError(part, "a named type is a union of strings");
  });
  if (node.typeParameters !== undefined) {
    throw new OutsideSubsetError(node, "a type has no parameters");
  }
  return { kind: "union", name: node.name.text, file: node.getSourceFile().fileName, members };
}

/** Reads an interface whose members are all read-only and no objects. */
export function readRecord(node: ts.InterfaceDeclaration, find: FindType): RecordType {
  if (node.heritageClauses !== undefined || node.typeParameters !== undefined) {
    throw new OutsideSubsetError(node, "an object extends nothing and has no type parameters");
  }
  const members = new Map<string, ScalarType>();
  for (const member of node.members) {
    if (
      !ts.isPropertySignature(member) || !ts.isIdentifier(member.name) ||
      member.questionToken !== undefined ||
      !member.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ReadonlyKeyword)
    ) {
      throw new OutsideSubsetError(
        member,
        "a member is 'readonly name: type', and never absent",
      );
    }
    const type = typeOf(member.type, member, find);
    if (type.kind === "record") throw new OutsideSubsetError(member, "an object is flat");
    members.set(member.name.text, type);
  }
  return { kind: "record", name: node.name.text, members };
}

/** The sort of SMT that a type has. */
export function sortOf(type: ScalarType): string {
  switch (type.kind) {
    case "integer":
      return "Int";
    case "boolean":
      return "Bool";
    case "string":
      return "Text";
    case "union":
      return `|${type.file}:${type.name}|`;
  }
}

/** Says whether values of two types can be compared, and one can stand for the other. */
export function sameType(one: ScalarType, other: ScalarType): boolean {
  return sortOf(one) === sortOf(other);
}

/** How a type is called in an error. */
export function nameOf(type: Type): string {
  return type.kind === "union" || type.kind === "record" ? type.name : type.kind;
}
