import type {
  KubeApi,
  KubeObject,
  ListOptions,
  ObjectList,
  ObjectName,
  Resource,
  Stored,
  WriteOptions,
} from "../../lib/kube/api.ts";

/** What a test answers to the calls that this room makes. Answers pass the schema of their kind, as with a real one. */
export interface Script {
  create?(object: KubeObject, options: WriteOptions): Promise<unknown>;
  get?(name: ObjectName): Promise<unknown>;
  list?(options: ListOptions): Promise<readonly unknown[]>;
}

function unexpected(): never {
  throw new Error("unexpected call");
}

/** A cluster whose answers a test writes; any other call is a fault. */
export function scriptedApi(script: Script): KubeApi {
  return {
    defaultNamespace: "default",
    watch: unexpected,
    createNamed: unexpected,
    replace: unexpected,
    patch: unexpected,
    delete: unexpected,
    createSubresource: unexpected,
    version: unexpected,
    async create<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions) {
      return resource.parse(await (script.create ?? unexpected)(object, options));
    },
    async get<T extends KubeObject>(resource: Resource<T>, name: ObjectName): Promise<Stored<T>> {
      return stored(resource.parse(await (script.get ?? unexpected)(name)), 0);
    },
    async list<T extends KubeObject>(
      resource: Resource<T>,
      options: ListOptions,
    ): Promise<ObjectList<T>> {
      const items: Stored<T>[] = [];
      const undecodable: { namespace: string; name: string; paths: string[] }[] = [];
      for (const [index, value] of (await (script.list ?? unexpected)(options)).entries()) {
        try {
          items.push(stored(resource.parse(value), index));
        } catch {
          undecodable.push({ namespace: "ns", name: `bad-${index}`, paths: ["spec.groupRef"] });
        }
      }
      return { items, undecodable, resourceVersion: "100" };
    },
  };
}

function stored<T extends KubeObject>(object: T, index: number): Stored<T> {
  const name = object.metadata.name ?? "";
  return {
    ...object,
    metadata: { ...object.metadata, name, uid: `uid-${index}`, resourceVersion: `${index + 1}` },
  };
}
