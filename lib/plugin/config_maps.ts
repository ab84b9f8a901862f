/**
 * ConfigMaps as they are at this moment: kubernetes-plugin 10.
 *
 * The store holds texts. A value is decoded when it is read, so that a bad one fails the reader that wants it and nothing
 * else.
 *
 * @module
 */

import { Pulse } from "../election/pulse.ts";

/** The keys and texts of a ConfigMap. */
export type ConfigMapData = Readonly<Record<string, string>>;

/** A validator by the Standard Schema convention, version 1: zod, valibot, arktype and others are. */
export interface Schema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly validate: (value: unknown) => Validation<T> | Promise<Validation<T>>;
  };
}

/** What a {@linkcode Schema} answers. */
export type Validation<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly ValidationIssue[] };

/** What is wrong with a value, and where. */
export interface ValidationIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A value of a ConfigMap is not what its reader wants. */
export class ConfigMapDecodeError extends Error {
  override readonly name = "ConfigMapDecodeError";
  readonly configMap: string;
  /** The key; `null` when the whole ConfigMap was read. */
  readonly key: string | null;
  /** What the parser or the validator said. It may quote the value, so the message does not have it. */
  readonly reasons: readonly string[];

  constructor(configMap: string, key: string | null, wish: string, reasons: readonly string[]) {
    const what = key === null ? "" : `the key ${JSON.stringify(key)} of `;
    super(`Cannot read ${what}the ConfigMap ${configMap}: ${wish}`);
    this.configMap = configMap;
    this.key = key;
    this.reasons = reasons;
  }
}

interface Entry {
  readonly synced: boolean;
  readonly data: ConfigMapData | undefined;
}

/** The ConfigMaps that are followed. Everybody who holds the store sees the same state. */
export class ConfigMapStore {
  readonly #entries: Map<string, Entry>;
  readonly #changes = new Pulse();

  /** @param names The ConfigMaps that are followed. */
  constructor(names: readonly string[]) {
    this.#entries = new Map(names.map((name) => [name, { synced: false, data: undefined }]));
  }

  /** The names of the ConfigMaps that are followed, sorted. */
  get names(): readonly string[] {
    return [...this.#entries.keys()].sort();
  }

  /** How many events were applied so far. */
  get changes(): number {
    return this.#changes.count;
  }

  /** The newest data; `undefined` when the ConfigMap is missing, is not followed, or was not seen yet. */
  get(name: string): ConfigMapData | undefined {
    return this.#entries.get(name)?.data;
  }

  /** One text; `undefined` when it is not there. */
  value(name: string, key: string): string | undefined {
    const data = this.get(name);
    return data !== undefined && Object.hasOwn(data, key) ? data[key] : undefined;
  }

  /**
   * One value, decoded as JSON; `undefined` when it is not there.
   *
   * @throws {ConfigMapDecodeError} It is no JSON.
   */
  json(name: string, key: string): unknown {
    const text = this.value(name, key);
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text);
    } catch (error) {
      const reason = error instanceof Error ? error.message : "no JSON";
      throw new ConfigMapDecodeError(name, key, "its value must be JSON", [reason]);
    }
  }

  /**
   * One value, decoded as JSON and validated; `undefined` when it is not there.
   *
   * ```ts
   * import { z } from "zod";
   *
   * const Limits = z.object({ perMinute: z.number() });
   * async function perMinute(maps: ConfigMapStore): Promise<number> {
   *   return (await maps.read("settings", "limits.json", Limits))?.perMinute ?? 60;
   * }
   * ```
   *
   * @throws {ConfigMapDecodeError} It is no JSON, or the validator refuses it. What the validator throws passes.
   */
  async read<T>(name: string, key: string, schema: Schema<T>): Promise<T | undefined> {
    const value = this.json(name, key);
    return value === undefined ? undefined : await validate(name, key, schema, value);
  }

  /**
   * The whole data, validated: an object of texts; `undefined` when the ConfigMap is not there.
   *
   * @throws {ConfigMapDecodeError} The validator refuses it. What the validator throws passes.
   */
  async readAll<T>(name: string, schema: Schema<T>): Promise<T | undefined> {
    const data = this.get(name);
    return data === undefined ? undefined : await validate(name, null, schema, data);
  }

  /** True once the state of the ConfigMap was seen, also when that was "missing". */
  isSynced(name: string): boolean {
    return this.#entries.get(name)?.synced ?? false;
  }

  /**
   * Tells {@linkcode ConfigMapStore.changes} now and whenever it has grown, until `signal` aborts. A slow reader misses
   * numbers in between and never the newest.
   */
  async *subscribe(signal: AbortSignal): AsyncGenerator<number, void> {
    let told = -1;
    while (!signal.aborted) {
      const { count } = this.#changes;
      if (count !== told) yield told = count;
      else await this.#changes.wait(count, { signal });
    }
  }

  /**
   * Takes a new state over. A name that is not followed is ignored.
   *
   * @param data `null` when the ConfigMap is missing.
   */
  apply(name: string, data: ConfigMapData | null): void {
    if (!this.#entries.has(name)) return;
    this.#entries.set(name, { synced: true, data: data ?? undefined });
    this.#changes.fire();
  }
}

async function validate<T>(
  name: string,
  key: string | null,
  schema: Schema<T>,
  value: unknown,
): Promise<T> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const paths = result.issues.map((issue) => pathOf(issue) || "the top level");
  const wish = `its value has another form at ${[...new Set(paths)].join(", ")}`;
  throw new ConfigMapDecodeError(name, key, wish, result.issues.map(({ message }) => message));
}

function pathOf({ path = [] }: ValidationIssue): string {
  return path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
}
