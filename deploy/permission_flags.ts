/**
 * The permissions of the compiled program: what all commands together need, read from the named sets of deno.json. Each
 * command gives back what it does not need before it does anything else.
 *
 * @module
 */

import { z } from "zod";

const some = z.union([z.boolean(), z.array(z.string())]);

/** One permission of a set: all of it, some of it, or some with the rest unseen. */
const grant = z.union([
  some.transform((allow) => ({ allow, ignore: false as const })),
  z.strictObject({ allow: some.default(false), ignore: some.default(false) }),
]);

const permissionSets = z.record(z.string(), z.record(z.string(), grant));

/**
 * The flags that grant the union of the sets, and never ask.
 *
 * @param sets The member `permissions` of deno.json.
 * @throws {z.ZodError} A permission is written in a way that is not known here.
 */
export function permissionFlags(sets: unknown): string[] {
  const all = Object.values(permissionSets.parse(sets));
  const kinds = [...new Set(all.flatMap((set) => Object.keys(set)))].sort();
  const flags = kinds.flatMap((kind) => {
    const grants = all.flatMap((set) => set[kind] ?? []);
    return [
      ...flagsOf(`--allow-${kind}`, grants.map(({ allow }) => allow)),
      ...flagsOf(`--ignore-${kind}`, grants.map(({ ignore }) => ignore)),
    ];
  });
  return [...flags, "--no-prompt"];
}

function flagsOf(name: string, grants: readonly z.infer<typeof some>[]): string[] {
  if (grants.includes(true)) return [name];
  const names = new Set(grants.flatMap((names) => typeof names === "boolean" ? [] : names));
  return names.size === 0 ? [] : [`${name}=${[...names].sort().join(",")}`];
}
