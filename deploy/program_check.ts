/**
 * What the compiled program is held to: the graph of its modules, and the permissions that are baked in. Both can be looked
 * at where the program itself cannot be run.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { z } from "zod";

const graphForm = z.looseObject({
  modules: z.array(z.looseObject({
    specifier: z.string(),
    error: z.string().optional(),
    dependencies: z.array(z.looseObject({
      specifier: z.string(),
      code: z.looseObject({ specifier: z.string().optional(), error: z.string().optional() })
        .optional(),
    })).optional(),
  })),
});

/**
 * What is wrong with the graph of a bundle: whatever is neither a file of the bundle nor a part of the runtime.
 *
 * @param graph What `deno info --json` says of the entry.
 * @param folder The URL of the folder of the bundle, with a slash at its end.
 * @throws {z.ZodError} Deno says it in another form.
 */
export function graphFaults(graph: unknown, folder: string): string[] {
  const { modules } = graphForm.parse(graph);
  const faults = modules.flatMap(({ specifier, error, dependencies = [] }) => [
    ...(isOwn(specifier, folder) ? [] : [`'${specifier}' is no file of the bundle`]),
    ...(error === undefined ? [] : [`'${specifier}' cannot be loaded`]),
    ...dependencies.flatMap(({ specifier: wanted, code }) =>
      code === undefined || code.error === undefined ? [] : [`'${wanted}' cannot be found`]
    ),
  ]);
  return modules.length === 0 ? ["the graph is empty"] : faults;
}

function isOwn(specifier: string, folder: string): boolean {
  return specifier.startsWith("node:") || specifier.startsWith(folder);
}

/**
 * The imports of a bundled file whose target is known only when it runs. A compiled program has no file for them.
 *
 * @param text The file, minified.
 */
export function computedImports(text: string): string[] {
  return [...text.matchAll(/(?<![\w$.])import\((?!"[^"]*"\))[^)]{0,60}\)?/g)].map(([found]) =>
    found
  );
}

/** Permissions as the compiler writes them into a program: `null` is none of a kind, an empty list is all of it. */
const kind = z.array(z.string()).nullable();
const bakedForm = z.looseObject({
  permissions: z.strictObject({
    allow_env: kind,
    deny_env: kind,
    ignore_env: kind,
    allow_net: kind,
    deny_net: kind,
    allow_ffi: kind,
    deny_ffi: kind,
    allow_read: kind,
    deny_read: kind,
    ignore_read: kind,
    allow_run: kind,
    deny_run: kind,
    allow_sys: kind,
    deny_sys: kind,
    allow_write: kind,
    deny_write: kind,
    allow_import: kind,
    deny_import: kind,
    prompt: z.boolean(),
  }),
  v8_flags: z.array(z.string()),
  code_cache_key: z.number().nullable(),
  entrypoint_key: z.string(),
  unsafely_ignore_certificate_errors: z.null(),
});

/** What a compiled program has in it besides its modules. */
export type BakedIn = z.infer<typeof bakedForm>;

const START = '{"argv":[';

/**
 * What the compiler wrote into a program.
 *
 * @param program The bytes of the program.
 * @throws {RangeError} It is not there. @throws {z.ZodError} The compiler writes it in another form.
 */
export function bakedInto(program: Uint8Array): BakedIn {
  const bytes = Buffer.from(program.buffer, program.byteOffset, program.byteLength);
  const at = bytes.lastIndexOf(START);
  if (at === -1) throw new RangeError("Cannot find the permissions in the program");
  return bakedForm.parse(JSON.parse(objectAt(bytes, at)));
}

/** The text of the JSON object that begins at a place. */
function objectAt(bytes: Uint8Array, start: number): string {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < bytes.length; at++) {
    const char = String.fromCharCode(bytes[at] ?? 0);
    if (quoted) {
      if (char === "\\") at++;
      else quoted = char !== '"';
    } else if (char === '"') quoted = true;
    else if (char === "{") depth++;
    else if (char === "}" && --depth === 0) {
      return new TextDecoder().decode(bytes.subarray(start, at + 1));
    }
  }
  throw new RangeError("Cannot find the end of the permissions in the program");
}

/**
 * What a program is granted beyond what was asked for, or lacks.
 *
 * @param bakedIn What the compiler wrote.
 * @param flags The flags that it was given: `--allow-KIND`, `--ignore-KIND` and `--deny-KIND`, with or without names, and
 * `--no-prompt`.
 */
export function permissionFaults({ permissions }: BakedIn, flags: readonly string[]): string[] {
  const wanted = new Map(flags.flatMap((flag) => {
    const [, mode, of, names] = /^--(allow|deny|ignore)-(\w+)(?:=(.*))?$/.exec(flag) ?? [];
    return mode === undefined ? [] : [[`${mode}_${of}`, names?.split(",") ?? []]];
  }));
  const { prompt, ...kinds } = permissions;
  const faults = Object.entries(kinds).flatMap(([name, granted]) => {
    // The hosts that modules may come from have a default. Where none may be loaded, it says nothing.
    if (name === "allow_import" && permissions.deny_import?.length === 0) return [];
    const [has, wish] = [JSON.stringify(granted), JSON.stringify(wanted.get(name) ?? null)];
    return has === wish ? [] : [`'${name}' is ${has} and not ${wish}`];
  });
  return prompt ? [...faults, "it asks for more"] : faults;
}

/**
 * What of the wishes for its engine a program does not have.
 *
 * @param bakedIn What the compiler wrote. Deno's own flags come first, and the last of a name counts.
 * @param wanted The flags of V8.
 */
export function engineFaults({ v8_flags }: BakedIn, wanted: readonly string[]): string[] {
  const last = v8_flags.slice(v8_flags.length - wanted.length);
  return wanted.filter((flag, index) => flag !== last[index])
    .map((flag) => `its engine lacks '${flag}'`);
}
