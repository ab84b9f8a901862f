/**
 * What tests of the rendered manifests look at.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Manifest } from "../../lib/manifests/service/objects.ts";
import { readServiceValues, ValuesError } from "../../lib/manifests/service/read_values.ts";
import { renderService } from "../../lib/manifests/service/render.ts";
import { member } from "../cluster/raw_client.ts";

/** Values as a file gives them. */
export type Layer = Readonly<Record<string, unknown>>;

/** The deployment API is on. */
export const API: Layer = {
  auxiliary: {
    deployAPI: { enabled: true },
    escrowTLS: { enabled: true, existingSecret: "tls" },
  },
};

/** Renders values, low to high. */
export function render(...layers: readonly Layer[]) {
  return renderService(readServiceValues(layers), { version: "1.2.3" });
}

/** What is refused about values; nothing when they can be rendered. */
export function problemsOf(...layers: readonly Layer[]): readonly string[] {
  try {
    render(...layers);
    return [];
  } catch (error) {
    assert.ok(error instanceof ValuesError);
    return error.problems;
  }
}

/** The one object of a kind, and of a name where one is given. */
export function one(objects: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = objects.filter((object) =>
    object.kind === kind && (name === undefined || object.metadata.name === name)
  );
  assert.equal(found.length, 1, `${kind} ${name ?? ""}`);
  return found[0] ?? assert.fail();
}

/** Kinds and names. */
export const titles = (objects: readonly Manifest[]) =>
  objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);

/** The container of the Deployment. */
export function container(objects: readonly Manifest[]): Readonly<Record<string, unknown>> {
  return Object(member(one(objects, "Deployment"), "spec", "template", "spec", "containers", 0));
}

/** The variables that are set by value. */
export function variables(objects: readonly Manifest[]): Readonly<Record<string, string>> {
  const env: readonly { name: string; value?: string }[] = Object(container(objects).env);
  return Object.fromEntries(
    env.flatMap(({ name, value }) => value === undefined ? [] : [[name, value]]),
  );
}
