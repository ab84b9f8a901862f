/**
 * The directions of imports: main → handlers → lib and never back, no circles, pure files without I/O, and one way to a
 * cluster.
 *
 * @module
 */

import type ts from "typescript";
import { globalsOf, type Import, importsOf, type Offence, type Syntax } from "./syntax.ts";

/** The files that decide and do nothing, wherever in lib they are. */
const PURE_FILE =
  /^lib\/[^/]+\/((\w+_)?rules|policy|stability|gate|names|record|grace_period)\.ts$/;

/** Packages that compute and do no I/O. */
const PURE_PACKAGES = /^(zod|yaml|@noble\/hashes)(\/|$)/;

/** Functions of the platform's modules that only compute. */
const PURE_NAMES: ReadonlyMap<string, readonly string[]> = new Map([
  ["node:net", ["isIP", "isIPv4", "isIPv6"]],
]);

/** Globals with which I/O is done. */
const IO_GLOBAL =
  /^(Deno|process|fetch|console|navigator|caches|localStorage|sessionStorage|WebSocket|EventSource|Worker|BroadcastChannel|XMLHttpRequest)(\.|$)/;

/** What opens a connection to a cluster. */
const CLUSTER_GLOBAL = /^(fetch|EventSource|XMLHttpRequest|Deno\.createHttpClient)(\.|$)/;

/** The files of lib/kube that talk to a cluster, and the door that has all of them. */
const CLUSTER_FILE = /^lib\/kube\/(http_\w+|credentials|kubeconfig|mod)\.ts$/;

/** Where the client of a cluster is put together; all others are handed a `KubeApi`. */
const MAKES_CLIENT =
  /^(lib\/kube\/|lib\/plugin\/|lib\/testing\/client\.ts$|handlers\/commands\/|main\.ts$)/;

/** Who may open connections of their own: the client of a cluster, and the client of the service. */
const OPENS_CONNECTIONS = /^lib\/(kube|client)\//;

/** Who may use the API server in memory. */
const USES_TESTING = /^(lib\/testing\/|handlers\/commands\/demo)/;

/** The files outside that become a part of the product: its version and its custom resources are told there alone. */
const EMBEDDED = /^(deno\.json|deploy\/crds\/\w+\.yaml)$/;

const LAYERS = ["lib", "handlers", "main.ts"] as const;

/** One file with what it imports. */
interface Module {
  readonly file: string;
  readonly source: ts.SourceFile;
  readonly imports: readonly Import[];
}

/** Finds every import, and every use of a global, that goes where it must not. */
export function directionOffences(syntax: Syntax): Offence[] {
  const modules = new Map(
    syntax.files.map((source) => [
      source.fileName,
      { file: source.fileName, source, imports: importsOf(source) },
    ]),
  );
  const rooms = roomsOf(modules);
  return [...modules.values()].flatMap((module) => [
    ...module.imports.flatMap((used) => {
      const message = wrongLayer(module.file, used) ?? wrongDoor(module.file, used);
      return message === null ? [] : [{ file: module.file, line: used.line, message }];
    }),
    ...connectionOffences(syntax, module),
    ...(PURE_FILE.test(module.file) ? purityOffences(syntax, module, modules) : []),
    ...circleOffences(module, modules),
    ...roomOffences(module, rooms),
  ]);
}

function wrongLayer(file: string, { target, specifier }: Import): string | null {
  if (target === null || EMBEDDED.test(target)) return null;
  const from = layerOf(file);
  const to = layerOf(target);
  if (to === -1) {
    return `Cannot import '${specifier}': the product needs nothing outside lib and handlers`;
  }
  return to <= from ? null : `Cannot import '${specifier}': imports point main → handlers → lib`;
}

function wrongDoor(file: string, { target, specifier, typeOnly }: Import): string | null {
  if (typeOnly) return null;
  if (specifier.startsWith("@kubernetes/client-node") && !file.startsWith("lib/kube/")) {
    return `Cannot import '${specifier}' at run time outside lib/kube: import its types only`;
  }
  if (target === null) return null;
  if (CLUSTER_FILE.test(target) && !MAKES_CLIENT.test(file)) {
    return `Cannot import '${specifier}': take a KubeApi (lib/kube/api.ts) as a parameter`;
  }
  if (target.startsWith("lib/testing/") && !USES_TESTING.test(file)) {
    return `Cannot import '${specifier}': the API server in memory is for tests and the demo`;
  }
  return null;
}

function connectionOffences(syntax: Syntax, { file, source }: Module): Offence[] {
  if (!file.startsWith("lib/") || OPENS_CONNECTIONS.test(file)) return [];
  return globalsOf(syntax, source).filter((use) => CLUSTER_GLOBAL.test(use.path)).map((use) => ({
    file,
    line: use.line,
    message: `Cannot use '${use.path}' here: what talks to a cluster goes through lib/kube/api.ts`,
  }));
}

/** A pure file may need other files as long as they are as pure as it is. */
function purityOffences(
  syntax: Syntax,
  module: Module,
  modules: ReadonlyMap<string, Module>,
): Offence[] {
  const offences: Offence[] = [];
  const seen = new Set<string>();
  const look = ({ file, source, imports }: Module) => {
    if (seen.has(file)) return;
    seen.add(file);
    const add = (line: number, name: string) => {
      const message =
        `Cannot use '${name}': the pure file ${module.file} reaches it and does no I/O`;
      offences.push({ file, line, message });
    };
    for (const use of globalsOf(syntax, source)) {
      if (IO_GLOBAL.test(use.path)) add(use.line, use.path);
    }
    for (const { target, specifier, typeOnly, names, line } of imports) {
      if (typeOnly) continue;
      const next = target === null ? undefined : modules.get(target);
      if (next !== undefined) look(next);
      else if (!isPurePackage(specifier, names)) add(line, specifier);
    }
  };
  look(module);
  return offences;
}

function isPurePackage(specifier: string, names: readonly string[] | null): boolean {
  if (PURE_PACKAGES.test(specifier)) return true;
  const pure = PURE_NAMES.get(specifier) ?? [];
  return names !== null && names.length > 0 && names.every((name) => pure.includes(name));
}

function circleOffences(module: Module, modules: ReadonlyMap<string, Module>): Offence[] {
  const nextOf = (file: string) =>
    modules.get(file)?.imports.flatMap(({ target, typeOnly }) =>
      target === null || typeOnly ? [] : [target]
    ) ?? [];
  return module.imports.flatMap(({ target, typeOnly, line }) => {
    if (target === null || typeOnly) return [];
    const way = wayBetween(target, module.file, nextOf);
    if (way === null) return [];
    const message = `Cannot import in a circle: ${[module.file, ...way].join(" → ")}`;
    return [{ file: module.file, line, message }];
  });
}

/** Which rooms of lib each room needs, types included: what it needs for its types, a reader has to know too. */
function roomsOf(modules: ReadonlyMap<string, Module>): ReadonlyMap<string, ReadonlySet<string>> {
  const rooms = new Map<string, Set<string>>();
  for (const { file, imports } of modules.values()) {
    const room = roomOf(file);
    if (room === null) continue;
    const needed = rooms.get(room) ?? new Set();
    rooms.set(room, needed);
    for (const { target } of imports) {
      const other = target === null ? null : roomOf(target);
      if (other !== null && other !== room) needed.add(other);
    }
  }
  return rooms;
}

function roomOf(file: string): string | null {
  return /^lib\/([^/]+)\//.exec(file)?.[1] ?? null;
}

function roomOffences(
  { file, imports }: Module,
  rooms: ReadonlyMap<string, ReadonlySet<string>>,
): Offence[] {
  const room = roomOf(file);
  return imports.flatMap(({ target, line }) => {
    const other = target === null ? null : roomOf(target);
    if (room === null || other === null || other === room) return [];
    const way = wayBetween(other, room, (at) => [...rooms.get(at) ?? []]);
    if (way === null) return [];
    const message = `Cannot import between rooms in a circle: ${[room, ...way].join(" → ")}`;
    return [{ file, line, message }];
  });
}

/** The shortest way along `nextOf`, both ends included, or `null`. */
function wayBetween(
  from: string,
  to: string,
  nextOf: (at: string) => readonly string[],
): string[] | null {
  const ways = [[from]];
  const seen = new Set([from]);
  for (const way of ways) {
    const at = way.at(-1) ?? from;
    if (at === to) return way;
    for (const next of nextOf(at)) {
      if (!seen.has(next)) ways.push([...way, next]);
      seen.add(next);
    }
  }
  return null;
}

function layerOf(file: string): number {
  return LAYERS.findIndex((layer) => file === layer || file.startsWith(`${layer}/`));
}
