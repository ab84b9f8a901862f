/**
 * The rules of the gate protocol, each switched off: by an API that leaves out a call, answers a read from memory, or
 * changes an order. The code under test is the shipped one in all cases.
 *
 * @module
 */

import type {
  CallOptions,
  KubeApi,
  KubeObject,
  ListOptions,
  ObjectList,
  ObjectName,
  Patch,
  Resource,
  Stored,
  WriteOptions,
} from "../../lib/kube/api.ts";
import { ConflictError } from "../../lib/kube/errors.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYMENT_GATE_ANNOTATION, gateName } from "../../lib/records/names.ts";
import { ApiDecorator } from "../../lib/kube/api_decorator.ts";
import type { Opening } from "./explorer.ts";
import { type Cast, type Fault, GROUP, NAMESPACE } from "./gate_world.ts";

const HOME = { namespace: NAMESPACE };
const GATE = { ...HOME, name: gateName(GROUP) };

const groups = (resource: Resource) => resource.plural === "mysqlfailovergroups";
const gate = ({ name = "" }: { readonly name?: string }) => name.endsWith("-gate");
const mutex = ({ name = "" }: { readonly name?: string }) => name.endsWith("-migration");

/** What a gate says of a planned operation: `""`, `admitted` or `withdrawing`. */
function plannedState({ metadata }: KubeObject): string {
  const record = JSON.parse(metadata.annotations?.[DEPLOYMENT_GATE_ANNOTATION] ?? "{}");
  return record.planned?.state ?? "";
}

/** An API with one call changed. */
abstract class Changed extends ApiDecorator {
  /** Reads again instead of writing, and says that it was stored. */
  protected async unwritten<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: CallOptions,
  ): Promise<Stored<T>> {
    const { namespace, name } = object.metadata;
    return await this.inner.get(resource, { namespace, name }, options);
  }
}

/** Rule: a grant touches the gate, and does not only look at it. */
class ReadsGateWithoutTouch extends Changed {
  override async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    if (!gate(object.metadata)) return await super.replace(resource, object, options);
    const found = await this.unwritten(resource, object, options);
    if (plannedState(found) === "") return found;
    throw new ConflictError({ verb: "update", resource: "leases", target: "gate" });
  }
}

/** Rule: a touch changes the content. The server keeps the version of what is written unchanged. */
class TouchesWithoutChange extends Changed {
  readonly #known = new Map<string, Stored<KubeObject>>();

  override async get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    const found = await super.get(resource, name, options);
    if (gate(name)) this.#known.set(found.metadata.resourceVersion, found);
    return found;
  }

  override async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    const same = this.#known.get(object.metadata.resourceVersion);
    const annotations = same?.metadata.annotations;
    const unchanged = { ...object, metadata: { ...object.metadata, annotations } };
    return await super.replace(resource, gate(object.metadata) ? unchanged : object, options);
  }
}

/** Answers the second and every later read of what it was told from memory. */
abstract class Remembers extends Changed {
  readonly #memory = new Map<string, Promise<unknown>>();

  protected once<T>(what: string, read: () => Promise<T>): Promise<T> {
    const known = this.#memory.get(what) as Promise<T> | undefined;
    const answer = known ?? read();
    this.#memory.set(what, answer);
    return answer;
  }
}

/** Rule: a grant reads the mutex again after its write. */
class ReadsMutexOnce extends Remembers {
  override get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    const read = () => super.get(resource, name, options);
    return mutex(name) ? this.once("mutex", read) : read();
  }
}

/** Rule: a grant reads the group again after its write. */
class ReadsGroupOnce extends Remembers {
  override get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    const read = () => super.get(resource, name, options);
    return groups(resource) ? this.once("group", read) : read();
  }
}

/** Rule: after a lost touch a grant looks at all of it again. */
class KeepsGroupAfterConflict extends Changed {
  #last: Promise<Stored<KubeObject>> | null = null;
  #conflict = false;

  override get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    if (!groups(resource)) return super.get(resource, name, options);
    if (this.#conflict && this.#last !== null) return this.#last as Promise<Stored<T>>;
    const read = super.get(resource, name, options);
    this.#last = read;
    return read;
  }

  override async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    try {
      return await super.replace(resource, object, options);
    } catch (error) {
      this.#conflict ||= gate(object.metadata);
      throw error;
    }
  }
}

/** Rule: a withdrawal marks the gate first. */
class WithdrawsWithoutMark extends Changed {
  override replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return plannedState(object) === "withdrawing"
      ? this.unwritten(resource, object, options)
      : super.replace(resource, object, options);
  }
}

/** Rule: a withdrawal gives the group a new version. */
class WithdrawsWithoutTouch extends Changed {
  override patch<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    _patch: Patch,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return super.get(resource, name, options);
  }
}

/** Rule: the value of that touch is new. */
class TouchesGroupWithOldValue extends Changed {
  override patch<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    _patch: Patch,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return super.patch(resource, name, { type: "merge", body: { metadata: {} } }, options);
  }
}

/** Reads another object before the one that it is asked for the n-th time, and answers for that other from memory then. */
abstract class ReadsEarly extends Changed {
  protected abstract readonly nth: number;
  #asked = 0;
  #early: Promise<Stored<KubeObject>> | null = null;

  protected abstract isFirst(resource: Resource, name: ObjectName): boolean;
  protected abstract readOther(options: CallOptions): Promise<Stored<KubeObject>>;

  override async get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    if (this.isFirst(resource, name)) {
      this.#asked++;
      if (this.#asked === this.nth) await (this.#early = this.readOther(options));
      return await super.get(resource, name, options);
    }
    const known = this.#early as Promise<Stored<T>> | null;
    this.#early = null;
    return await (known ?? super.get(resource, name, options));
  }
}

/** Rule: the group before the gate, when a phase is written. An admission reads the group once before that. */
class ReadsGateBeforeGroup extends ReadsEarly {
  protected override readonly nth = 2;

  protected override isFirst(resource: Resource): boolean {
    return groups(resource);
  }

  protected override readOther(options: CallOptions) {
    return this.inner.get(LEASES, GATE, options);
  }
}

/** Rule: the gate before the group, when an admission begins. */
class ReadsGroupBeforeGate extends ReadsEarly {
  protected override readonly nth = 1;

  protected override isFirst(_resource: Resource, name: ObjectName): boolean {
    return gate(name);
  }

  protected override readOther(options: CallOptions) {
    return this.inner.get(MYSQL_FAILOVER_GROUPS, { ...HOME, name: GROUP }, options);
  }
}

/** Rule: the phase carries the version of the group that was read. */
class WritesPhaseWithoutVersion extends Changed {
  override patch<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    patch: Patch,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    const { metadata: _, ...body } = patch.type === "merge" ? patch.body : {};
    return super.patch(resource, name, { type: "merge", body }, options);
  }
}

/** Rule: the admission is written under the version of the gate that was read before the holds were listed. */
class AdmitsUnderAnyVersion extends Changed {
  override async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    if (plannedState(object) !== "admitted") return await super.replace(resource, object, options);
    const { metadata } = await this.unwritten(resource, object, options);
    return await super.replace(resource, {
      ...object,
      metadata: { ...object.metadata, resourceVersion: metadata.resourceVersion },
    }, options);
  }
}

/** Rule: the gate is read before the holds are listed, in the same try. */
class KeepsOldList extends Remembers {
  override list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions,
  ): Promise<ObjectList<T>> {
    return this.once("holds", () => super.list(resource, options));
  }
}

/** Rule: a direct revocation lists the holds after it wrote the mutex. It has listed them before that, too. */
class ListsHoldsOnce extends Remembers {
  override list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions,
  ): Promise<ObjectList<T>> {
    return this.once(options.labelSelector ?? "", () => super.list(resource, options));
  }
}

/** A rule that is switched off. */
export interface Mutant {
  readonly rule: string;
  readonly fault: Fault;
  readonly cast: Cast;
  /** Where the walks begin, for a violation that takes many turns. */
  readonly opening: Opening;
}

const mutant = (
  rule: string,
  role: Fault["role"],
  Api: new (inner: KubeApi) => KubeApi,
  cast: Cast,
  opening: Opening = [],
): Mutant => ({ rule, fault: { role, wrap: (inner) => new Api(inner) }, cast, opening });

const race: Cast = { planners: ["PlannedFailover"], grants: 1 };
const withdrawn: Cast = { ...race, withdrawers: 1 };

const LISTED: Opening = [["planner-0", "list leases"]];
const ADMITTED: Opening = [["planner-0", "replace leases"]];
const PREPARED: Opening = [...ADMITTED, ["planner-0", "get mysqlfailovergroups"], [
  "planner-0",
  "get leases",
]];

/** Every rule of the protocol. Without any of them, two that exclude each other can both be. */
export const MUTANTS: readonly Mutant[] = [
  mutant("a grant touches the gate", "grant", ReadsGateWithoutTouch, race, LISTED),
  mutant("a touch of the gate changes its content", "grant", TouchesWithoutChange, race, LISTED),
  mutant("a grant reads the group again after its write", "grant", ReadsGroupOnce, race, LISTED),
  mutant(
    "a grant reads the group again after a lost touch",
    "grant",
    KeepsGroupAfterConflict,
    race,
    LISTED,
  ),
  mutant("a grant reads the mutex again after its write", "grant", ReadsMutexOnce, {
    grants: 1,
    revokers: 1,
  }),
  mutant("a withdrawal marks the gate first", "withdrawer", WithdrawsWithoutMark, withdrawn, [
    ...ADMITTED,
    ["withdrawer-0", "patch mysqlfailovergroups"],
    ["planner-0", "get mysqlfailovergroups"],
    ["planner-0", "get leases"],
  ]),
  mutant(
    "a withdrawal gives the group a new version",
    "withdrawer",
    WithdrawsWithoutTouch,
    withdrawn,
    PREPARED,
  ),
  mutant(
    "a touch of the group changes its content",
    "withdrawer",
    TouchesGroupWithOldValue,
    withdrawn,
    PREPARED,
  ),
  mutant(
    "the group is read before the gate for a phase",
    "planner",
    ReadsGateBeforeGroup,
    withdrawn,
    [...ADMITTED, ["planner-0", "get leases"]],
  ),
  mutant(
    "a phase carries the version of the group",
    "planner",
    WritesPhaseWithoutVersion,
    withdrawn,
    PREPARED,
  ),
  mutant("an admission carries the version of the gate", "planner", AdmitsUnderAnyVersion, race),
  mutant("holds are listed after the gate is read, in every try", "planner", KeepsOldList, race),
  mutant("the gate is read before the group for an admission", "planner", ReadsGroupBeforeGate, {
    planners: ["PlannedFailover", "PlannedFailover"],
  }),
  mutant("a revocation lists the holds after it wrote the mutex", "revoker", ListsHoldsOnce, {
    grants: 1,
    revokers: 1,
  }),
];
