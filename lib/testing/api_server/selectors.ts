/**
 * Label and field selectors in the API's own text form.
 *
 * @module
 */

import { badRequest } from "./api_error.ts";
import { type Json, type JsonObject, objectAt, valueAt } from "./json.ts";
import type { Kind } from "./kinds.ts";
import { labelKeyFault, labelValueFault } from "./names.ts";

/** Says whether an object is selected. */
export type Predicate = (object: JsonObject) => boolean;

/** What one label has to be. */
interface Requirement {
  readonly key: string;
  readonly operator: "exists" | "absent" | "in" | "notin" | ">" | "<";
  readonly values: readonly string[];
}

/** Splits a label selector into words and signs; spaces separate words. */
const TOKEN = /\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)/gy;

/**
 * Reads a label selector, for example `app=x,tier in (a,b),!old`.
 *
 * @throws {ApiError} 400, when it cannot be read.
 */
export function labelPredicate(selector: string): Predicate {
  const requirements = new LabelParser(selector).requirements();
  return (object) => {
    const labels = objectAt(objectAt(object, "metadata"), "labels");
    return requirements.every((requirement) => satisfies(requirement, labels[requirement.key]));
  };
}

function satisfies({ operator, values }: Requirement, label: Json | undefined): boolean {
  const value = typeof label === "string" ? label : null;
  switch (operator) {
    case "exists":
      return value !== null;
    case "absent":
      return value === null;
    case "in":
      return value !== null && values.includes(value);
    case "notin":
      return value === null || !values.includes(value);
    case ">":
      return value !== null && Number(value) > Number(values[0]);
    case "<":
      return value !== null && Number(value) < Number(values[0]);
  }
}

class LabelParser {
  readonly #tokens: string[];
  #position = 0;

  constructor(selector: string) {
    this.#tokens = [...selector.matchAll(TOKEN)].map((match) => match[1] ?? "");
  }

  requirements(): Requirement[] {
    const found: Requirement[] = [];
    if (this.#peek() === null) return found;
    while (true) {
      found.push(this.#requirement());
      const separator = this.#next();
      if (separator === null) return found;
      if (separator !== ",") {
        throw badRequest(`found '${separator}', expected: ',' or 'end of string'`);
      }
    }
  }

  #requirement(): Requirement {
    if (this.#peek() === "!") {
      this.#next();
      return { key: this.#key(), operator: "absent", values: [] };
    }
    const key = this.#key();
    const operator = this.#peek();
    if (operator === null || operator === ",") return { key, operator: "exists", values: [] };
    this.#next();
    switch (operator) {
      case "=":
      case "==":
        return { key, operator: "in", values: [this.#value()] };
      case "!=":
        return { key, operator: "notin", values: [this.#value()] };
      case ">":
      case "<":
        return { key, operator, values: [this.#integer()] };
      case "in":
      case "notin":
        return { key, operator, values: this.#set() };
      default:
        throw unparsable(
          `found '${operator}', expected: in, notin, =, ==, !=, gt, lt, ! or 'end of string'`,
        );
    }
  }

  #key(): string {
    const key = this.#next();
    if (key === null || isSign(key)) {
      throw unparsable(`found '${key ?? ""}', expected: !, identifier, or 'end of string'`);
    }
    const fault = labelKeyFault(key);
    if (fault !== null) throw unparsable(`<nil>: Invalid value: ${JSON.stringify(key)}: ${fault}`);
    return key;
  }

  /** A value may be missing: `a=` selects an empty label. */
  #value(): string {
    const next = this.#peek();
    if (next === null || next === ",") return "";
    if (isSign(next)) throw unparsable(`found '${next}', expected: identifier`);
    this.#next();
    return checkedValue(next);
  }

  #integer(): string {
    const value = this.#value();
    if (!/^-?\d+$/.test(value)) {
      throw unparsable(`for 'Gt', 'Lt' operators, the value must be an integer`);
    }
    return value;
  }

  #set(): string[] {
    const open = this.#next();
    if (open !== "(") throw unparsable(`found '${open ?? ""}' expected: '('`);
    const values: string[] = [];
    let value = "";
    while (true) {
      const token = this.#next();
      if (token === ")" || token === ",") {
        values.push(checkedValue(value));
        value = "";
        if (token === ")") return values;
      } else if (token === null || isSign(token) || value !== "") {
        throw unparsable(`found '${token ?? ""}', expected: ',', ')' or identifier`);
      } else value = token;
    }
  }

  #peek(): string | null {
    return this.#tokens[this.#position] ?? null;
  }

  #next(): string | null {
    return this.#tokens[this.#position++] ?? null;
  }
}

function isSign(token: string): boolean {
  return /^(==|!=|[=!(),<>])$/.test(token);
}

function checkedValue(value: string): string {
  const fault = labelValueFault(value);
  if (fault !== null) throw unparsable(`<nil>: Invalid value: ${JSON.stringify(value)}: ${fault}`);
  return value;
}

function unparsable(why: string) {
  return badRequest(`unable to parse requirement: ${why}`);
}

/** One term of a field selector. */
interface FieldTerm {
  readonly path: string;
  readonly equals: boolean;
  readonly value: string;
}

/**
 * Reads a field selector, for example `metadata.name=x` or `spec.groupRef.name!=orders`.
 *
 * @throws {ApiError} 400, when it cannot be read or names a field that the kind cannot be selected by.
 */
export function fieldPredicate(selector: string, kind: Kind): Predicate {
  const terms = fieldTerms(selector);
  for (const { path } of terms) checkField(path, kind);
  return (object) =>
    terms.every(({ path, equals, value }) => {
      const actual = valueAt(object, path);
      const text = actual === undefined || actual === null ? "" : String(actual);
      return (text === value) === equals;
    });
}

/** The name that a field selector asks for, which is what RBAC judges a list or a watch by; empty when it asks for none. */
export function selectedName(selector: string): string {
  const term = selector.split(",").find((part) => /^metadata\.name==?[^=]/.test(part.trim()));
  return term === undefined ? "" : term.trim().replace(/^metadata\.name==?/, "");
}

function fieldTerms(selector: string): FieldTerm[] {
  return selector.split(",").filter((term) => term !== "").map((term) => {
    const parts = /^([^=!]+)(==|!=|=)(.*)$/.exec(term);
    if (parts === null) {
      throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
    }
    return { path: parts[1] ?? "", equals: parts[2] !== "!=", value: parts[3] ?? "" };
  });
}

function checkField(path: string, kind: Kind): void {
  const always = kind.namespaced ? ["metadata.name", "metadata.namespace"] : ["metadata.name"];
  if (always.includes(path) || kind.selectableFields?.includes(path)) return;
  throw badRequest(
    kind.selectableFields === null
      ? `"${path}" is not a known field selector: only "metadata.name", "metadata.namespace"`
      : `field label not supported: ${path}`,
  );
}

/** Both selectors of a request. @throws {ApiError} 400 */
export function selectionOf(query: URLSearchParams, kind: Kind): Predicate {
  const byLabel = labelPredicate(query.get("labelSelector") ?? "");
  const byField = fieldPredicate(query.get("fieldSelector") ?? "", kind);
  return (object) => byLabel(object) && byField(object);
}
