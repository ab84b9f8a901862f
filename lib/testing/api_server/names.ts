/**
 * The rules for names, labels and other metadata (Kubernetes concept "Object Names and IDs", "Labels and Selectors").
 *
 * @module
 */

import { type Cause, invalidValue, requiredValue } from "./api_error.ts";
import { arrayAt, isObject, type JsonObject, objectAt, stringAt, strings } from "./json.ts";

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;

const SUBDOMAIN_FAULT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_NAME_FAULT =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
  "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_FAULT =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/** All annotations of an object together, in bytes. */
const ANNOTATIONS_LIMIT = 262_144;

/** What is wrong with a name, or `null`. */
export function nameFault(name: string): string | null {
  if (name.length > 253) return "must be no more than 253 bytes";
  return SUBDOMAIN.test(name) ? null : SUBDOMAIN_FAULT;
}

/** What is wrong with the key of a label or an annotation, or `null`. */
export function labelKeyFault(key: string): string | null {
  const parts = key.split("/");
  const name = parts.at(-1) ?? "";
  if (parts.length > 2) return LABEL_NAME_FAULT.replace("name part", "a valid label key");
  if (parts.length === 2) {
    const prefix = parts[0] ?? "";
    if (prefix === "") return "prefix part must be non-empty";
    const fault = nameFault(prefix);
    if (fault !== null) return `prefix part ${fault}`;
  }
  if (name === "") return "name part must be non-empty";
  if (name.length > 63) return "name part must be no more than 63 bytes";
  return LABEL_NAME.test(name) ? null : LABEL_NAME_FAULT;
}

/** What is wrong with the value of a label, or `null`. */
export function labelValueFault(value: string): string | null {
  if (value.length > 63) return "must be no more than 63 bytes";
  return LABEL_VALUE.test(value) ? null : LABEL_VALUE_FAULT;
}

/** What is wrong with the metadata of an object. */
export function metadataFaults(metadata: JsonObject): Cause[] {
  return [
    ...nameFaults(metadata),
    ...Object.entries(objectAt(metadata, "labels")).flatMap(([key, value]) => [
      ...faultAt("metadata.labels", key, labelKeyFault(key)),
      ...faultAt("metadata.labels", value, labelValueFault(String(value))),
    ]),
    ...annotationFaults(objectAt(metadata, "annotations")),
    ...arrayAt(metadata, "ownerReferences").flatMap(ownerFaults),
    ...strings(arrayAt(metadata, "finalizers")).flatMap((finalizer) =>
      faultAt("metadata.finalizers", finalizer, labelKeyFault(finalizer))
    ),
  ];
}

function nameFaults(metadata: JsonObject): Cause[] {
  const name = stringAt(metadata, "name");
  if (name === "") return [requiredValue("metadata.name", "name or generateName is required")];
  return faultAt("metadata.name", name, nameFault(name));
}

function annotationFaults(annotations: JsonObject): Cause[] {
  const encoder = new TextEncoder();
  let size = 0;
  const causes: Cause[] = [];
  for (const [key, value] of Object.entries(annotations)) {
    // The key is judged in lower case, unlike that of a label.
    causes.push(...faultAt("metadata.annotations", key, labelKeyFault(key.toLowerCase())));
    size += encoder.encode(key).length + encoder.encode(String(value)).length;
  }
  if (size > ANNOTATIONS_LIMIT) {
    causes.push({
      reason: "FieldValueTooLong",
      message: `Too long: may not be more than ${ANNOTATIONS_LIMIT} bytes`,
      field: "metadata.annotations",
    });
  }
  return causes;
}

function ownerFaults(owner: unknown): Cause[] {
  if (!isObject(owner)) return [];
  return ["apiVersion", "kind", "name", "uid"].filter((key) => stringAt(owner, key) === "").map((
    key,
  ) =>
    invalidValue(
      `metadata.ownerReferences.${key}`,
      "",
      key === "apiVersion" ? "version must not be empty" : "must not be empty",
    )
  );
}

/**
 * What is wrong with new metadata beside that of the stored object. Each fault is told twice, as the server does: its
 * generic checks and those of the kind both look.
 */
export function metadataUpdateFaults(stored: JsonObject, incoming: JsonObject): Cause[] {
  const causes: Cause[] = [];
  const uid = stringAt(incoming, "uid");
  if (uid !== stringAt(stored, "uid")) {
    causes.push(invalidValue("metadata.uid", uid, "field is immutable"));
  }
  if (stored.deletionTimestamp !== undefined) {
    const known = strings(arrayAt(stored, "finalizers"));
    const added = strings(arrayAt(incoming, "finalizers")).filter((one) => !known.includes(one));
    if (added.length > 0) {
      const list = added.map((one) => JSON.stringify(one)).join(", ");
      causes.push({
        reason: "FieldValueForbidden",
        message:
          "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers " +
          `[]string{${list}}`,
        field: "metadata.finalizers",
      });
    }
  }
  return [...causes, ...causes];
}

function faultAt(field: string, value: unknown, fault: string | null): Cause[] {
  return fault === null ? [] : [invalidValue(field, value, fault)];
}
