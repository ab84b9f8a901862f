/**
 * The permission audit of Deno (`DENO_AUDIT_PERMISSIONS`): what a process asked its permissions for, allowed or not.
 *
 * @module
 */

import { z } from "zod";

const accessForm = z.strictObject({
  v: z.literal(1),
  datetime: z.string(),
  permission: z.string(),
  /** What it was for; `null` for all of the kind. */
  value: z.string().nullable(),
});

/** One access. */
export type Access = z.infer<typeof accessForm>;

/** Reads the lines of an audit. */
export function accessesIn(text: string): Access[] {
  return text.split("\n").filter((line) => line !== "").map((line) =>
    accessForm.parse(JSON.parse(line))
  );
}

/** What a process may use. */
export interface Allowance {
  /** Names of variables; a `*` at the end stands for any ending. */
  readonly env: readonly string[];
  /** Hosts with their ports. */
  readonly net: readonly string[];
}

/**
 * What was asked for beyond an allowance of variables, of the network, and of reading files. Each once, sorted.
 *
 * The runtime looks at the permission to write too whenever a file is opened, for whatever purpose. So a write at the very
 * path that was just opened for reading says nothing; that nothing is written is shown by the permission, which is not
 * granted.
 */
export function beyond(accesses: readonly Access[], { env, net }: Allowance): string[] {
  const found = accesses.flatMap(({ permission, value }, at) => {
    const before = accesses[at - 1];
    const opens = permission === "write" && before?.permission === "read" && before.value === value;
    const isAllowed = permission === "read" || opens ||
      (permission === "env" && (value === null || env.some((name) => matches(name, value)))) ||
      (permission === "net" && value !== null && net.includes(hostOf(value)));
    return isAllowed ? [] : [`${permission} ${value}`];
  });
  return [...new Set(found)].sort();
}

function matches(name: string, value: string): boolean {
  return name.endsWith("*") ? value.startsWith(name.slice(0, -1)) : value === name;
}

function hostOf(value: string): string {
  return value.includes("://") ? new URL(value).host : value;
}
