/**
 * CustomResourceDefinitions: what a stored one makes the server serve.
 *
 * @module
 */

import { type Cause, invalidValue, qualified, requiredValue } from "./api_error.ts";
import { compileSchema } from "./custom_schema.ts";
import {
  arrayAt,
  isObject,
  type Json,
  type JsonObject,
  objectAt,
  stringAt,
  strings,
} from "./json.ts";
import { ALL_VERBS, type Kind, type PrinterColumn } from "./kinds.ts";
import { wireObject } from "./wire_types.ts";

/** What is wrong with a CRD. The schema of each version is compiled, so that a broken one is refused and not served. */
export function crdFaults(crd: JsonObject): Cause[] {
  const spec = objectAt(crd, "spec");
  const names = objectAt(spec, "names");
  const causes: Cause[] = [];
  const name = stringAt(objectAt(crd, "metadata"), "name");
  for (
    const [path, value] of [
      ["spec.group", stringAt(spec, "group")],
      ["spec.scope", stringAt(spec, "scope")],
      ["spec.names.plural", stringAt(names, "plural")],
      ["spec.names.kind", stringAt(names, "kind")],
    ] as const
  ) {
    if (value === "") causes.push(requiredValue(path));
  }
  if (name !== qualified(stringAt(names, "plural"), stringAt(spec, "group"))) {
    causes.push(invalidValue("metadata.name", name, 'must be spec.names.plural+"."+spec.group'));
  }
  const versions = arrayAt(spec, "versions");
  if (versions.length === 0) causes.push(requiredValue("spec.versions"));
  versions.forEach((version, index) => {
    const path = `spec.versions[${index}].schema.openAPIV3Schema`;
    const schema = objectAt(version, "schema").openAPIV3Schema;
    if (!isObject(schema)) causes.push(requiredValue(path));
    else {
      try {
        compileSchema(schema);
      } catch {
        causes.push(invalidValue(path, "schema", "cannot be compiled"));
      }
    }
  });
  return causes;
}

/** The kinds that a CRD without faults serves, one for each served version. */
export function kindsOfCrd(crd: JsonObject): Kind[] {
  const spec = objectAt(crd, "spec");
  const names = acceptedNames(crd);
  const served = arrayAt(spec, "versions").filter((version) =>
    isObject(version) && version.served === true
  );
  return served.map((version): Kind => {
    const hasStatus = isObject(objectAt(version, "subresources").status);
    const paths = arrayAt(version, "selectableFields").map((field) => stringAt(field, "jsonPath"));
    return {
      group: stringAt(spec, "group"),
      version: stringAt(version, "name"),
      plural: stringAt(names, "plural"),
      singular: stringAt(names, "singular"),
      kind: stringAt(names, "kind"),
      listKind: stringAt(names, "listKind"),
      namespaced: stringAt(spec, "scope") === "Namespaced",
      shortNames: strings(arrayAt(names, "shortNames")),
      verbs: ALL_VERBS,
      subresources: hasStatus ? ["status"] : [],
      wire: wireObject(stringAt(names, "kind"), null),
      custom: compileSchema(objectAt(objectAt(version, "schema"), "openAPIV3Schema")),
      createOnUpdate: false,
      unconditionalUpdate: false,
      deleteAnswersObject: false,
      statusIsolated: hasStatus,
      selectableFields: paths.map((path) => path.replace(/^\./, "")),
      columns: arrayAt(version, "additionalPrinterColumns").map(toColumn),
    };
  });
}

function toColumn(column: Json): PrinterColumn {
  const priority = isObject(column) ? column.priority : undefined;
  return {
    name: stringAt(column, "name"),
    type: stringAt(column, "type"),
    jsonPath: stringAt(column, "jsonPath"),
    priority: typeof priority === "number" ? priority : 0,
  };
}

/** The names of a CRD with those that may be left out. */
function acceptedNames(crd: JsonObject): JsonObject {
  const names = objectAt(objectAt(crd, "spec"), "names");
  const kind = stringAt(names, "kind");
  return { singular: kind.toLowerCase(), listKind: `${kind}List`, ...names };
}

/** The CRD with names filled in and the status of one that is served: here that is at once. */
export function establishedCrd(crd: JsonObject, now: string): JsonObject {
  const names = acceptedNames(crd);
  const condition = (type: string, reason: string) => ({
    type,
    status: "True",
    lastTransitionTime: now,
    reason,
    message: type === "Established" ? "the initial names have been accepted" : "no conflicts found",
  });
  const versions = arrayAt(objectAt(crd, "spec"), "versions");
  return {
    ...crd,
    spec: { conversion: { strategy: "None" }, ...objectAt(crd, "spec"), names },
    status: {
      conditions: [
        condition("NamesAccepted", "NoConflicts"),
        condition("Established", "InitialNamesAccepted"),
      ],
      acceptedNames: names,
      storedVersions: versions.filter((version) => isObject(version) && version.storage === true)
        .map((version) => stringAt(version, "name")),
    },
  };
}
