/**
 * How one configuration key is described: its type, its default, what it takes and what it means. The loader, the error
 * texts, `holdfast config` and the reference page all read these descriptions, so they cannot disagree.
 *
 * @module
 */
import { z } from "zod";
import { type ListenAddress, parseListenAddress } from "./listen_address.ts";
import { formatDuration, parseDuration } from "./duration.ts";

/** What a key takes. It decides how the text of an environment variable is read. */
export type KeyKind = "boolean" | "integer" | "list" | "text";

/** A value as a layer gives it, before the schema has read it. */
export type RawValue = boolean | number | string | readonly string[];

/** The description of one key. */
export interface KeyDescription {
  /** How the text of an environment variable is read. */
  readonly kind: KeyKind;
  /** What is right, to follow "it must be". */
  readonly expects: string;
  /** What the key does. One or more sentences. */
  readonly description: string;
  /** The default, as a user would write it. */
  readonly fallback: RawValue;
  /** True for a value that `holdfast config` must not show. */
  readonly secret?: boolean;
}

const descriptions = z.registry<KeyDescription>();

/** A switch. */
export function flag(fallback: boolean, description: string) {
  return z.boolean().default(fallback)
    .register(descriptions, { kind: "boolean", expects: "true or false", description, fallback });
}

/** A whole number from `least` to `most`. */
export function integer(fallback: number, least: number, most: number, description: string) {
  return z.int().min(least).max(most).default(fallback).register(descriptions, {
    kind: "integer",
    expects: `a whole number from ${least} to ${most}`,
    description,
    fallback,
  });
}

/** What narrows a text. */
export interface TextOptions {
  /** What the text must match. */
  readonly pattern?: RegExp;
  /** What is right, to follow "it must be". @default {"a text"} */
  readonly expects?: string;
  /** True for a value that `holdfast config` must not show. @default {false} */
  readonly secret?: boolean;
}

/** A text. */
export function text(fallback: string, description: string, options: TextOptions = {}) {
  const { pattern = /^/, expects = "a text", secret = false } = options;
  return z.string().regex(pattern).default(fallback)
    .register(descriptions, { kind: "text", expects, description, fallback, secret });
}

/** A list of texts, empty by default. */
export function list(description: string, fallback: readonly string[] = []) {
  return z.array(z.string()).readonly().default([...fallback])
    .register(descriptions, {
      kind: "list",
      expects: "a list of texts",
      description,
      fallback,
    });
}

/** One of several words, in any case. */
export function choice<const Words extends readonly [string, ...string[]]>(
  words: Words,
  fallback: Words[number],
  description: string,
) {
  return z.string().toLowerCase().pipe(z.enum(words)).prefault(fallback).register(descriptions, {
    kind: "text",
    expects: `one of ${words.join(", ")}`,
    description,
    fallback,
  });
}

/** A Go-style duration from `least` to `most`, which are in milliseconds. It is read as milliseconds. */
export function duration(fallback: string, least: number, most: number, description: string) {
  return z.string().transform((value, context) => {
    const milliseconds = parseDuration(value);
    if (milliseconds !== undefined && milliseconds >= least && milliseconds <= most) {
      return milliseconds;
    }
    context.addIssue("not a duration in range");
    return z.NEVER;
  }).prefault(fallback).register(descriptions, {
    kind: "text",
    expects: `a duration such as 10s or 1m30s, from ${formatDuration(least)} to ${
      formatDuration(most)
    }`,
    description,
    fallback,
  });
}

/** An address to listen on. */
export function address(fallback: string, description: string) {
  return z.string().transform((value, context): ListenAddress => {
    try {
      return parseListenAddress(value);
    } catch {
      context.addIssue("not an address");
      return z.NEVER;
    }
  }).prefault(fallback).register(descriptions, {
    kind: "text",
    expects: "an address such as :8443, 127.0.0.1:8443 or [::1]:8443",
    description,
    fallback,
  });
}

/** One key: its description, and whether it takes a value. */
export interface Key extends KeyDescription {
  /** True when the key takes this value. */
  accepts(value: unknown): boolean;
}

/** The keys of a schema. */
export interface KeyTable {
  /** Every key by its dotted path, such as `deploy_api.enabled`, in the order of the schema. */
  readonly keys: ReadonlyMap<string, Key>;
  /** Every section by its dotted path (the root is the empty one), with the names of what it holds. */
  readonly sections: ReadonlyMap<string, readonly string[]>;
}

/** Joins a dotted path and a name below it. */
export function joinPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/**
 * Lists the keys of a schema.
 *
 * @param schema Objects of objects, with the values of this file's functions at the ends.
 * @throws {TypeError} A value that is not described: a mistake in the schema.
 */
export function keysOf(schema: z.ZodObject): KeyTable {
  const keys = new Map<string, Key>();
  const sections = new Map<string, readonly string[]>();
  const walk = (path: string, shape: z.ZodObject["shape"]) => {
    sections.set(path, Object.keys(shape));
    for (const [name, value] of Object.entries(shape)) {
      const here = joinPath(path, name);
      const inner: unknown = value instanceof z.ZodPrefault ? value.unwrap() : value;
      if (inner instanceof z.ZodObject) {
        walk(here, inner.shape);
        continue;
      }
      const description = value instanceof z.ZodType ? descriptions.get(value) : undefined;
      if (description === undefined || !(value instanceof z.ZodType)) {
        throw new TypeError(`Cannot list the configuration keys as '${here}' has no description`);
      }
      keys.set(here, { ...description, accepts: (raw) => value.safeParse(raw).success });
    }
  };
  walk("", schema.shape);
  return { keys, sections };
}
