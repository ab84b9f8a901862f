import assert from "node:assert/strict";
import { compositionRootOffences, isInjected } from "./composition_root.ts";
import { parse, readSources } from "./syntax.ts";

const PLANTED: readonly string[] = [
  "setTimeout(() => {}, 1);",
  "const id = setInterval(() => {}, 1);",
  "setImmediate(() => {});",
  "globalThis.setTimeout(() => {}, 1);",
  `globalThis["setTimeout"](() => {}, 1);`,
  "const later = setTimeout;",
  "const { setTimeout: later } = globalThis;",
  "export const parts = { setTimeout };",
  "const now = Date.now();",
  "const now = Date.now;",
  "const { now } = Date;",
  "const today = new Date();",
  "const today = new Date;",
  "const today = Date();",
  "const Clock = Date;",
  "class Clock extends Date {}",
  "const t = Temporal.Now.instant();",
  "const t = performance.now();",
  "const p = performance;",
  "const r = Math.random();",
  "const { random } = Math;",
  "const id = crypto.randomUUID();",
  "export const parts = { crypto };",
  "const s = AbortSignal.timeout(5);",
  "const { timeout } = AbortSignal;",
  "const t = process.hrtime.bigint();",
  `import { setTimeout } from "node:timers";`,
  `import { setTimeout as sleep } from "node:timers/promises";`,
  `import timers from "timers";`,
  `export * from "node:timers";`,
  `const timers = await import("node:timers/promises");`,
  `import { performance } from "node:perf_hooks";`,
  `import { randomUUID as id } from "node:crypto";`,
  `import { createHash, randomBytes } from "node:crypto";`,
  `import * as nodeCrypto from "node:crypto"; nodeCrypto.randomBytes(1);`,
  `import nodeCrypto from "node:crypto"; const { randomUUID } = nodeCrypto;`,
  `import process from "node:process"; process.hrtime();`,
  `export * from "node:crypto";`,
  `const nodeCrypto = await import("node:crypto");`,
];

const ALLOWED: readonly string[] = [
  "const text = new Date(0).toISOString();",
  "const ms = Date.parse('2026-01-01') + Date.UTC(2026, 0);",
  "const yes = ({} as unknown) instanceof Date;",
  "type Made = Date | AbortSignal | typeof performance;",
  "interface Parts { readonly now: Date; setTimeout(): void; crypto: Crypto }",
  "export function f(crypto: Crypto, signal: AbortSignal) { return [crypto.subtle, signal]; }",
  "export function f({ setTimeout }: { setTimeout: () => void }) { setTimeout(); }",
  "const parts = { performance: 1, setTimeout: 2 }; parts.setTimeout;",
  "const both = AbortSignal.any([AbortSignal.abort()]);",
  "const most = Math.max(1, Math.PI);",
  "class K { setTimeout() {} } new K().setTimeout();",
  `import { createHash } from "node:crypto";`,
  `import type { Timer } from "node:timers";`,
  `import process from "node:process"; process.cpuUsage();`,
  `import * as nodeCrypto from "node:crypto"; nodeCrypto.createHash("sha256");`,
  `import { setTimeout } from "./own.ts"; setTimeout();`,
];

function offences(path: string, text: string) {
  return compositionRootOffences(parse(new Map([[path, text]])));
}

Deno.test("every planted clock, timer or source of randomness is found on its line", () => {
  for (const line of PLANTED) {
    const found = offences("lib/lease/planted.ts", `// first line\n${line}\nexport {};\n`);
    assert.ok(found.length > 0, `not found: ${line}`);
    assert.deepEqual(found.map((offence) => offence.line), found.map(() => 2), line);
  }
});

Deno.test("what only looks like a clock, a timer or randomness is let through", () => {
  for (const line of ALLOWED) {
    assert.deepEqual(offences("handlers/http/planted.ts", `${line}\nexport {};\n`), [], line);
  }
});

Deno.test("the rule holds for lib and handlers, and not for handlers/commands", () => {
  const [line = ""] = PLANTED;
  assert.equal(offences("lib/plugin/mod.ts", line).length, 1);
  assert.equal(offences("handlers/http/middleware/deadline.ts", line).length, 1);
  assert.deepEqual(offences("handlers/commands/serve.ts", line), []);
  assert.deepEqual(offences("main.ts", line), []);
});

Deno.test("lib and handlers use no clock, timer or randomness of their own", async () => {
  const sources = await readSources("lib", "handlers", "main.ts");
  assert.ok([...sources.keys()].filter(isInjected).length > 10, "the sources were not found");
  assert.deepEqual(compositionRootOffences(parse(sources)), []);
});
