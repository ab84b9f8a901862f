/**
 * Looks that may fail without an end to all others.
 *
 * @module
 */

import { KubeError, NotFoundError } from "../kube/errors.ts";
import type { Sight } from "./cluster_facts.ts";

/** Looks, and takes what the API server refuses as a fact. @throws Whatever is no error of a call, and the signal's reason. */
export async function see<T>(look: () => Promise<T>): Promise<Sight<T>> {
  try {
    return { type: "seen", value: await look() };
  } catch (error) {
    if (error instanceof NotFoundError) return { type: "absent" };
    if (error instanceof KubeError) return { type: "unseen", why: error.kind };
    throw error;
  }
}

/** Makes something of what was seen. */
export function whenSeen<T, R>(sight: Sight<T>, make: (value: T) => R): Sight<R> {
  return sight.type === "seen" ? { type: "seen", value: make(sight.value) } : sight;
}
