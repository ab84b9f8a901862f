/**
 * The rule of the composition root: clocks, timers and randomness are used in `handlers/commands` alone and injected
 * everywhere else, so that a test clock drives the shipped code.
 *
 * @module
 */

import ts from "typescript";
import {
  globalsOf,
  type GlobalUse,
  type Import,
  importsOf,
  type Offence,
  type Syntax,
  wholeModuleUses,
} from "./syntax.ts";

/** Globals that are out of bounds with all that is in them, and what to use. */
const BANNED: ReadonlyMap<string, string> = new Map([
  ["setTimeout", "Clock.timer"],
  ["setInterval", "Clock.timer"],
  ["setImmediate", "Clock.timer"],
  ["performance", "Clock.monotonic"],
  ["crypto", "Entropy"],
  ["Temporal.Now", "Clock.wall"],
  ["process.hrtime", "Clock.monotonic"],
  ["process.uptime", "Clock.monotonic"],
  ["AbortSignal.timeout", "startDeadline"],
  ["Math.random", "Entropy"],
  ["Deno.cron", "Clock.timer"],
]);

/** Globals of which only these members may be named; the bare name could be taken apart elsewhere. */
const ALLOWED_MEMBERS: ReadonlyMap<string, { readonly test: RegExp; readonly wish: string }> =
  new Map([
    ["Date", { test: /^(parse|UTC)$/, wish: "Clock.wall, or new Date(milliseconds)" }],
    ["AbortSignal", { test: /^(any|abort)$/, wish: "startDeadline" }],
    ["Math", { test: /^(?!random$)/, wish: "Entropy" }],
    ["globalThis", { test: /^$/, wish: "the name itself" }],
  ]);

/** Modules that are out of bounds: their names, or all of them when there is no list. */
const BANNED_MODULES: ReadonlyMap<string, { readonly names?: readonly string[]; wish: string }> =
  new Map([
    ["timers", { wish: "Clock.timer" }],
    ["timers/promises", { wish: "sleep" }],
    ["perf_hooks", { wish: "Clock.monotonic" }],
    ["process", { names: ["hrtime", "uptime"], wish: "Clock.monotonic" }],
    ["crypto", {
      names: [
        "generateKey",
        "generateKeyPair",
        "generateKeyPairSync",
        "generateKeySync",
        "getRandomValues",
        "pseudoRandomBytes",
        "prng",
        "randomBytes",
        "randomFill",
        "randomFillSync",
        "randomInt",
        "randomUUID",
        "rng",
        "subtle",
        "webcrypto",
      ],
      wish: "Entropy",
    }],
  ]);

/** Says whether the rule holds for a file. */
export function isInjected(file: string): boolean {
  return /^(lib|handlers)\//.test(file) && !file.startsWith("handlers/commands/");
}

/** Finds clocks, timers and randomness where they must be injected. */
export function compositionRootOffences(syntax: Syntax): Offence[] {
  return syntax.files.filter((file) => isInjected(file.fileName)).flatMap((file) => [
    ...globalsOf(syntax, file).flatMap((use) => offence(file, use.line, globalWish(use), use.path)),
    ...wholeModuleUses(syntax, file).flatMap((use) =>
      offence(file, use.line, wholeModuleWish(use), use.path)
    ),
    ...importsOf(file).flatMap((used) =>
      offence(file, used.line, moduleWish(used), used.specifier)
    ),
  ]);
}

function offence(
  file: ts.SourceFile,
  line: number,
  wish: string | null,
  name: string,
): Offence[] {
  if (wish === null) return [];
  const message = `Cannot use '${name}' outside handlers/commands: inject it (${wish})`;
  return [{ file: file.fileName, line, message }];
}

function globalWish({ path, node }: GlobalUse): string | null {
  const [name = "", member = ""] = path.split(".");
  const banned = BANNED.get(name) ?? BANNED.get(`${name}.${member}`);
  if (banned !== undefined) return banned;
  const rule = ALLOWED_MEMBERS.get(name);
  if (rule === undefined || isInstanceOf(node)) return null;
  if (name === "Date" && isNewWithArguments(node)) return null;
  return member !== "" && rule.test.test(member) ? null : rule.wish;
}

function moduleWish({ specifier, typeOnly, names, bound }: Import): string | null {
  const rule = BANNED_MODULES.get(specifier.replace(/^node:/, ""));
  if (rule === undefined || typeOnly) return null;
  if (rule.names === undefined) return rule.wish;
  if (names === null) return bound ? null : rule.wish;
  return names.some((name) => rule.names?.includes(name)) ? rule.wish : null;
}

/** Of a module that is imported whole, each use counts: one without a member could be taken apart elsewhere. */
function wholeModuleWish({ path }: GlobalUse): string | null {
  const [specifier = "", member] = path.split(".");
  const rule = BANNED_MODULES.get(specifier.replace(/^node:/, ""));
  if (rule?.names === undefined) return null;
  return member === undefined || rule.names.includes(member) ? rule.wish : null;
}

function isInstanceOf({ parent }: ts.Identifier): boolean {
  return ts.isBinaryExpression(parent) &&
    parent.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword;
}

function isNewWithArguments(node: ts.Identifier): boolean {
  const { parent } = node;
  return ts.isNewExpression(parent) && parent.expression === node &&
    (parent.arguments?.length ?? 0) > 0;
}
