/**
 * Create, update, patch and delete: the rules of the API server's generic registry, in its order.
 *
 * @module
 */

import type { Entropy } from "../../runtime/entropy.ts";
import {
  alreadyExists,
  ApiError,
  detailsToJson,
  forbidden,
  invalid,
  invalidValue,
  notFound,
} from "./api_error.ts";
import { decodeObject } from "./decode_object.ts";
import {
  arrayAt,
  equal,
  isObject,
  type Json,
  type JsonObject,
  objectAt,
  stringAt,
  without,
} from "./json.ts";
import { filledIn, kindFaults } from "./kind_rules.ts";
import { apiVersionOf, type Kind, kindKey } from "./kinds.ts";
import { metadataFaults, metadataUpdateFaults } from "./names.ts";
import { objectKey, type Store } from "./store.ts";
import { timestamp } from "./wire_types.ts";
import {
  checkName,
  checkPreconditions,
  checkVersion,
  keyIn,
  placed,
  uidConflict,
  type WriteTarget,
} from "./write_checks.ts";

/** What a write answers. */
export interface WriteResult {
  readonly status: 200 | 201;
  readonly object: JsonObject;
  readonly warnings: readonly string[];
}

/** What a writer works on. */
export interface WriterOptions {
  readonly store: Store;
  readonly entropy: Entropy;
  /** The server's wall time in milliseconds since 1970. */
  readonly now: () => number;
  /** True when a namespace that is missing is made by the write. */
  readonly createNamespaces: () => boolean;
}

const NAMESPACES = "/namespaces";

/** The letters of generated names: no vowels, so that no words come out. */
const NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/** Members of metadata that only the server sets. */
const SERVER_OWNED = [
  "selfLink",
  "managedFields",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "resourceVersion",
];

/** Writes to a store as the API server does. */
export class Writer {
  readonly #store: Store;
  readonly #entropy: Entropy;
  readonly #now: () => number;
  readonly #createNamespaces: () => boolean;

  constructor(options: WriterOptions) {
    this.#store = options.store;
    this.#entropy = options.entropy;
    this.#now = options.now;
    this.#createNamespaces = options.createNamespaces;
  }

  /** POST. */
  create(target: WriteTarget, body: Json): WriteResult {
    const { object, warnings } = decodeObject(target.kind, body, target.fieldValidation);
    const inNamespace = placed(target, object);
    return { ...this.#insert(target, inNamespace), warnings };
  }

  /**
   * PUT.
   *
   * @param authorizeCreate Throws when the caller may not create; called only when the PUT is to create.
   */
  update(target: WriteTarget, body: Json, authorizeCreate: () => void): WriteResult {
    const { kind, name } = target;
    const { object, warnings } = decodeObject(kind, body, target.fieldValidation);
    const incoming = placed(target, object);
    checkName(target, incoming);
    const stored = this.#stored(target);
    const uid = stringAt(objectAt(incoming, "metadata"), "uid");
    const storedUid = stored === null ? "" : stringAt(objectAt(stored, "metadata"), "uid");
    if (stored === null && (!kind.createOnUpdate || target.subresource !== "")) {
      throw notFound(kind, name);
    }
    // A precondition, and so judged first and also when there is no object: what makes "stale version and uid" safe.
    if (uid !== "" && uid !== storedUid) throw uidConflict(target, uid, storedUid);
    if (stored !== null) return { ...this.#replace(target, stored, incoming), warnings };
    authorizeCreate();
    // A version alone is no precondition: it is dropped, and the object is created.
    const metadata = without(objectAt(incoming, "metadata"), "resourceVersion");
    return { ...this.#insert(target, { ...incoming, metadata }), warnings };
  }

  /** PATCH. `apply` makes the new object from the stored one. */
  patch(target: WriteTarget, apply: (stored: JsonObject) => JsonObject): WriteResult {
    const stored = this.#stored(target);
    if (stored === null) throw notFound(target.kind, target.name);
    const patched = apply(stored);
    let decoded: ReturnType<typeof decodeObject>;
    try {
      decoded = decodeObject(target.kind, patched, target.fieldValidation);
    } catch (error) {
      throw error instanceof ApiError && error.code === 400 && target.kind.custom === null
        ? invalid("", "", "", [invalidValue("patch", "patched object", error.message)])
        : error;
    }
    const incoming = placed(target, decoded.object);
    checkName(target, incoming);
    return { ...this.#replace(target, stored, incoming), warnings: decoded.warnings };
  }

  /** DELETE. */
  delete(target: WriteTarget, options: JsonObject): WriteResult {
    const { kind, name, dryRun } = target;
    const stored = this.#stored(target);
    if (stored === null) throw notFound(kind, name);
    checkPreconditions(target, stored, objectAt(options, "preconditions"));
    const metadata = objectAt(stored, "metadata");
    if (arrayAt(metadata, "finalizers").length > 0 || isNamespace(kind)) {
      return { status: 200, object: this.#markDeleted(target, stored), warnings: [] };
    }
    if (!dryRun) this.#store.remove(kindKey(kind), keyIn(target));
    return {
      status: 200,
      object: kind.deleteAnswersObject ? stored : deleted(kind, metadata),
      warnings: [],
    };
  }

  /** Stores an object past versions, users and status rules: what a test puts there. @throws {ApiError} */
  seed(kind: Kind, namespace: string, body: Json): JsonObject {
    const target: WriteTarget = {
      kind,
      namespace,
      name: "",
      subresource: "",
      dryRun: false,
      fieldValidation: "Ignore",
    };
    const identity = { apiVersion: apiVersionOf(kind), kind: kind.kind };
    const decoded = decodeObject(kind, isObject(body) ? { ...body, ...identity } : body, "Ignore");
    const object = placed(target, decoded.object);
    const sent = objectAt(object, "metadata");
    const name = stringAt(sent, "name");
    const stored = this.#store.get(kindKey(kind), objectKey(namespace, name));
    const was = objectAt(stored ?? {}, "metadata");
    const metadata: JsonObject = {
      ...without(sent, "resourceVersion"),
      uid: sent.uid ?? was.uid ?? this.#entropy.uuid(),
      creationTimestamp: sent.creationTimestamp ?? was.creationTimestamp ?? this.#timestamp(),
      generation: sent.generation ?? was.generation ?? (isCounted(kind) ? 1 : undefined),
    };
    const complete = filledIn(kind, { ...object, metadata }, stored, this.#timestamp());
    this.#validate(kind, name, complete, null, []);
    const isNew = stored === null || sent.generation !== undefined;
    return this.#store.put(kindKey(kind), isNew ? complete : counted(kind, stored, complete));
  }

  #timestamp(): string {
    return timestamp(this.#now());
  }

  #stored(target: WriteTarget): JsonObject | null {
    return this.#store.get(kindKey(target.kind), keyIn(target));
  }

  #insert(target: WriteTarget, object: JsonObject): Omit<WriteResult, "warnings"> {
    const { kind, dryRun } = target;
    const sent = objectAt(object, "metadata");
    const generateName = stringAt(sent, "generateName");
    const name = stringAt(sent, "name") || (generateName ? generateName + this.#suffix() : "");
    const metadata: JsonObject = {
      ...without(sent, ...SERVER_OWNED),
      ...(name === "" ? {} : { name }),
      uid: this.#entropy.uuid(),
      creationTimestamp: this.#timestamp(),
      ...(isCounted(kind) ? { generation: 1 } : {}),
    };
    const named = { ...(kind.statusIsolated ? without(object, "status") : object), metadata };
    if (kind.namespaced) this.#checkNamespace(kind, target.namespace, name);
    const complete = filledIn(kind, named, null, this.#timestamp());
    this.#validate(kind, name, complete, null, []);
    if (stringAt(sent, "resourceVersion") !== "") {
      throw new ApiError(500, "", "resourceVersion should not be set on objects to be created");
    }
    const present = this.#store.get(kindKey(kind), objectKey(target.namespace, name));
    if (present !== null) {
      const isBeingDeleted = objectAt(present, "metadata").deletionTimestamp !== undefined;
      throw alreadyExists(kind, name, isBeingDeleted);
    }
    return {
      status: 201,
      object: dryRun ? complete : this.#store.put(kindKey(kind), complete),
    };
  }

  #replace(
    target: WriteTarget,
    stored: JsonObject,
    incoming: JsonObject,
  ): Omit<WriteResult, "warnings"> {
    const { kind, name, dryRun } = target;
    checkVersion(target, stored, incoming);
    const storedMetadata = objectAt(stored, "metadata");
    const candidate = target.subresource === "status"
      ? { ...stored, status: incoming.status }
      : mainUpdate(kind, stored, incoming);
    const complete = filledIn(kind, candidate, stored, this.#timestamp());
    const metadata = objectAt(complete, "metadata");
    this.#validate(kind, name, complete, stored, metadataUpdateFaults(storedMetadata, metadata));
    const object = counted(kind, stored, complete);
    if (equal(object, stored)) return { status: 200, object: stored };
    if (dryRun) return { status: 200, object };
    const isReleased = storedMetadata.deletionTimestamp !== undefined &&
      arrayAt(metadata, "finalizers").length === 0 && !isNamespace(kind);
    if (isReleased) {
      this.#store.remove(kindKey(kind), keyIn(target));
      return { status: 200, object };
    }
    return { status: 200, object: this.#store.put(kindKey(kind), object) };
  }

  #validate(
    kind: Kind,
    name: string,
    object: JsonObject,
    stored: JsonObject | null,
    updateFaults: ReturnType<typeof metadataUpdateFaults>,
  ): void {
    const causes = [
      ...updateFaults,
      ...metadataFaults(objectAt(object, "metadata")),
      ...(kind.custom?.faults(object, stored) ?? kindFaults(kind, object, stored)),
    ];
    if (causes.length > 0) throw invalid(kind.kind, kind.group, name, causes);
  }

  #checkNamespace(kind: Kind, namespace: string, name: string): void {
    const stored = this.#store.get(NAMESPACES, namespace);
    if (stored === null) {
      if (!this.#createNamespaces()) throw notFound({ plural: "namespaces", group: "" }, namespace);
      return;
    }
    if (objectAt(stored, "metadata").deletionTimestamp === undefined) return;
    const message = `namespace ${namespace} is being terminated`;
    throw forbidden(
      kind,
      name,
      `unable to create new content in namespace ${namespace} because it is being terminated`,
      [{ reason: "NamespaceTerminating", message, field: "metadata.namespace" }],
    );
  }

  #markDeleted(target: WriteTarget, stored: JsonObject): JsonObject {
    const { kind, dryRun } = target;
    const metadata = objectAt(stored, "metadata");
    if (metadata.deletionTimestamp !== undefined) return stored;
    const generation = metadata.generation;
    const object: JsonObject = {
      ...stored,
      metadata: {
        ...metadata,
        ...(isNamespace(kind) ? {} : { deletionGracePeriodSeconds: 0 }),
        deletionTimestamp: this.#timestamp(),
        ...(typeof generation === "number" ? { generation: generation + 1 } : {}),
      },
      ...(isNamespace(kind) ? { status: { phase: "Terminating" } } : {}),
    };
    return dryRun ? object : this.#store.put(kindKey(kind), object);
  }

  #suffix(): string {
    return Array.from(
      { length: 5 },
      () => NAME_LETTERS[Math.floor(this.#entropy.fraction() * NAME_LETTERS.length)],
    ).join("");
  }
}

function isNamespace(kind: Kind): boolean {
  return kindKey(kind) === NAMESPACES;
}

/** True for kinds that count the changes of what they wish in `metadata.generation`. */
function isCounted(kind: Kind): boolean {
  return kind.custom !== null || (kind.statusIsolated && kind.group !== "");
}

/** The new object of a write to the main URL: what the server owns is taken from the stored one. */
function mainUpdate(kind: Kind, stored: JsonObject, incoming: JsonObject): JsonObject {
  const was = objectAt(stored, "metadata");
  const sent = objectAt(incoming, "metadata");
  const metadata: JsonObject = {
    ...without(sent, ...SERVER_OWNED, "generation"),
    uid: stringAt(sent, "uid") || was.uid,
    creationTimestamp: was.creationTimestamp,
    generation: was.generation,
    deletionTimestamp: was.deletionTimestamp,
    deletionGracePeriodSeconds: was.deletionGracePeriodSeconds,
    resourceVersion: was.resourceVersion,
  };
  const status = kind.statusIsolated ? stored.status : incoming.status;
  return { ...incoming, metadata, status };
}

/** The object with its generation counted up, when what it wishes changed. */
function counted(kind: Kind, stored: JsonObject, object: JsonObject): JsonObject {
  if (!isCounted(kind)) return object;
  const aside = kind.statusIsolated ? ["metadata", "status"] : ["metadata"];
  if (equal(without(object, ...aside), without(stored, ...aside))) return object;
  const metadata = objectAt(object, "metadata");
  const generation = typeof metadata.generation === "number" ? metadata.generation + 1 : 1;
  return { ...object, metadata: { ...metadata, generation } };
}

function deleted(kind: Kind, metadata: JsonObject): JsonObject {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: detailsToJson({
      name: stringAt(metadata, "name"),
      group: kind.group,
      kind: kind.plural,
      uid: stringAt(metadata, "uid"),
    }),
  };
}
