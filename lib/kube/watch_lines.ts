/**
 * What a line of a watch says. Pure.
 *
 * @module
 */

import { z } from "zod";
import { errorOfStatus, readStatus } from "./answers.ts";
import type { KubeObject, Resource, Stored, UndecodableObject } from "./api.ts";
import { READS } from "./calls.ts";
import { decodeJson, decodeStored, nameUndecodable } from "./decode.ts";
import { type CallIdentity, DecodeError, type KubeError } from "./errors.ts";

/** One line of a watch. */
export type WatchLine<T extends KubeObject> =
  | {
    readonly type: "added" | "modified" | "deleted";
    readonly version: string;
    readonly object: Stored<T>;
  }
  | { readonly type: "undecodable"; readonly version: string; readonly object: UndecodableObject }
  | { readonly type: "bookmark"; readonly version: string }
  | { readonly type: "error"; readonly error: KubeError };

const lineSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.enum(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]),
    object: z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string().min(1) }) }),
  }),
  z.object({ type: z.literal("ERROR"), object: z.unknown() }),
]);

const CHANGES = { ADDED: "added", MODIFIED: "modified", DELETED: "deleted" } as const;

/**
 * Reads one line of a watch.
 *
 * @param resource The kind that is watched.
 * @param call The call that started the watch, for errors.
 * @param text One line.
 */
export function readWatchLine<T extends KubeObject>(
  resource: Resource<T>,
  call: CallIdentity,
  text: string,
): WatchLine<T> {
  const json = decodeJson(text);
  const line = lineSchema.safeParse(json.ok ? json.value : null);
  if (!line.success) return { type: "error", error: new DecodeError(call, []) };
  if (line.data.type === "ERROR") {
    const status = readStatus(line.data.object);
    return { type: "error", error: errorOfStatus(call, READS, status.code ?? 500, status) };
  }
  const { type, object } = line.data;
  const version = object.metadata.resourceVersion;
  if (type === "BOOKMARK") return { type: "bookmark", version };
  const decoded = decodeStored(resource, object);
  return decoded.ok
    ? { type: CHANGES[type], version, object: decoded.value }
    : { type: "undecodable", version, object: nameUndecodable(object, decoded.paths) };
}
