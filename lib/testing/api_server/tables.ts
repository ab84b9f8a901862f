/**
 * Tables: the form in which kubectl asks for what it prints.
 *
 * @module
 */

import { isArray, isObject, type Json, type JsonObject, objectAt, stringAt } from "./json.ts";
import type { Kind, PrinterColumn } from "./kinds.ts";

/** True when a client would rather have a table. */
export function wantsTable(accept: string): boolean {
  return accept.split(",").some((range) => /;\s*as=Table\b/.test(range) && /\bv=v1\b/.test(range));
}

const AGE: PrinterColumn = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  priority: 0,
};

/**
 * Objects as a table.
 *
 * @param nowMs The server's wall time: ages are counted to it.
 * @param resourceVersion The version of the list; of the object, for one.
 */
export function toTable(
  kind: Kind,
  objects: readonly JsonObject[],
  resourceVersion: string,
  nowMs: number,
): JsonObject {
  const hasAge = kind.columns.some((column) => column.jsonPath === AGE.jsonPath);
  const columns = hasAge ? kind.columns : [...kind.columns, AGE];
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: { resourceVersion },
    columnDefinitions: [
      { name: "Name", type: "string", format: "name", description: "", priority: 0 },
      ...columns.map(({ name, type, priority }) => ({
        name,
        // Ages are written out here, so they are texts for the client.
        type: type === "date" ? "string" : type,
        format: "",
        description: "",
        priority,
      })),
    ],
    rows: objects.map((object) => ({
      cells: [
        stringAt(objectAt(object, "metadata"), "name"),
        ...columns.map((column) => cell(object, column, nowMs)),
      ],
      object: {
        kind: "PartialObjectMetadata",
        apiVersion: "meta.k8s.io/v1",
        metadata: object.metadata,
      },
    })),
  };
}

function cell(object: JsonObject, column: PrinterColumn, nowMs: number): Json {
  const values = evaluate(object, column.jsonPath);
  const [first] = values;
  if (first === undefined || first === null) return null;
  if (column.type === "date") return age(String(first), nowMs);
  if (column.type === "integer" || column.type === "number") return first;
  return values.map((value) => typeof value === "string" ? value : JSON.stringify(value)).join(",");
}

/** The steps of a JSON path: `.name`, `.a\.b`, `[*]`, `[0]` and `[?(@.name=="value")]`. */
const STEP = /\.((?:\\.|[^.[\\])+)|\[(\*|\d+)\]|\[\?\(@\.([^=]+)==["']([^"']*)["']\)\]/gy;

/** What a JSON path of a printer column leads to. Of the language of JSON paths only what {@linkcode STEP} reads. */
function evaluate(object: Json, path: string): Json[] {
  let values: Json[] = [object];
  for (const [, key, index, field, wanted] of path.matchAll(STEP)) {
    values = values.flatMap((value): Json[] => {
      if (key !== undefined) {
        const member = isObject(value) ? value[key.replaceAll("\\", "")] : undefined;
        return member === undefined ? [] : [member];
      }
      if (!isArray(value)) return [];
      if (index === "*") return [...value];
      if (index !== undefined) return value.slice(Number(index), Number(index) + 1);
      return value.filter((item) => stringAt(item, field ?? "") === wanted);
    });
  }
  return values;
}

/** A time as kubectl writes it: `45s`, `3m`, `5h`, `2d`. */
function age(text: string, nowMs: number): string {
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(text)) / 1000));
  if (Number.isNaN(seconds)) return "<invalid>";
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}
