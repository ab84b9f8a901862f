import assert from "node:assert/strict";
import { directionOffences } from "./directions.ts";
import { parse, readSources } from "./syntax.ts";

/** Files that keep every rule, so that a planted line is the only thing wrong. */
const HOUSE: Readonly<Record<string, string>> = {
  "main.ts": `import { serve } from "./handlers/commands/serve.ts"; serve();`,
  "handlers/commands/serve.ts":
    `import { HttpApi } from "../../lib/kube/mod.ts"; export const serve = () => new HttpApi();`,
  "handlers/commands/demo.ts":
    `import { Server } from "../../lib/testing/mod.ts"; export const demo = () => new Server();`,
  "handlers/http/deploy.ts": `import { decide } from "../../lib/lease/rules.ts"; decide();`,
  "lib/kube/mod.ts": `export * from "./http_api.ts";`,
  "lib/kube/api.ts": `export interface KubeApi { get(): void }`,
  "lib/kube/http_api.ts": `export class HttpApi { get() { return fetch("https://x"); } }`,
  "lib/testing/mod.ts": `export class Server {}`,
  "lib/records/names.ts":
    `import { sha256 } from "@noble/hashes/sha2.js"; export const h = sha256;`,
  "lib/lease/rules.ts": `import type { KubeApi } from "../kube/api.ts";
    import { h } from "../records/names.ts"; export const decide = (api?: KubeApi) => [h, api];`,
  "lib/records/store.ts": `import type { KubeApi } from "../kube/api.ts";
    export const save = (api: KubeApi) => api.get();`,
  "lib/runtime/clock.ts": `export const tick = 1;`,
};

/** What is planted at the end of a file of the house, and a part of what must be said of it. */
const PLANTED: readonly (readonly [file: string, line: string, said: RegExp])[] = [
  ["lib/records/store.ts", `import "../../handlers/http/deploy.ts";`, /main → handlers → lib/],
  ["lib/records/store.ts", `import type { X } from "../../main.ts";`, /main → handlers → lib/],
  ["handlers/http/deploy.ts", `export * from "../../main.ts";`, /main → handlers → lib/],
  ["handlers/http/deploy.ts", `const m = await import("../../main.ts");`, /main → handlers → lib/],
  ["lib/records/store.ts", `type X = import("../../handlers/http/deploy.ts").X;`, /handlers → lib/],
  ["lib/records/store.ts", `import { x } from "../../tests/x.ts";`, /nothing outside/],
  ["lib/records/store.ts", `import { HttpApi } from "../kube/http_api.ts";`, /take a KubeApi/],
  ["lib/records/store.ts", `import { HttpApi } from "../kube/mod.ts";`, /take a KubeApi/],
  ["handlers/http/deploy.ts", `import { HttpApi } from "../../lib/kube/mod.ts";`, /take a KubeApi/],
  ["lib/records/store.ts", `import { KubeConfig } from "@kubernetes/client-node";`, /types only/],
  ["lib/records/store.ts", `import { Server } from "../testing/mod.ts";`, /tests and the demo/],
  ["handlers/commands/serve.ts", `import "../../lib/testing/mod.ts";`, /tests and the demo/],
  ["lib/records/store.ts", `await fetch("https://x");`, /goes through lib\/kube\/api.ts/],
  ["lib/records/store.ts", `Deno.createHttpClient({});`, /goes through lib\/kube\/api.ts/],
  ["lib/lease/rules.ts", `Deno.readTextFileSync("x");`, /does no I\/O/],
  ["lib/lease/rules.ts", `console.log("x");`, /does no I\/O/],
  ["lib/lease/rules.ts", `import { readFileSync } from "node:fs";`, /does no I\/O/],
  ["lib/lease/rules.ts", `import { Hono } from "hono";`, /does no I\/O/],
  ["lib/lease/rules.ts", `import { connect } from "node:net";`, /does no I\/O/],
  ["lib/lease/rules.ts", `import * as net from "node:net";`, /does no I\/O/],
  ["lib/lease/rules.ts", `import "node:net";`, /does no I\/O/],
  ["lib/records/names.ts", `Deno.exit(1);`, /lib\/lease\/rules\.ts reaches it/],
  ["lib/records/names.ts", `import { decide } from "../lease/rules.ts";`, /in a circle/],
  [
    "lib/records/store.ts",
    `import type { decide } from "../lease/rules.ts";`,
    /rooms in a circle: records → lease → records/,
  ],
  ["lib/records/names.ts", `export { names } from "./names.ts";`, /in a circle/],
];

function houseWith(file: string, line: string) {
  return parse(new Map(Object.entries({ ...HOUSE, [file]: `${HOUSE[file]}\n${line}\n` })));
}

Deno.test("the version and the custom resources are embedded, and no other file from outside", () => {
  const yaml = `import crd from "../../deploy/crds/one.yaml" with { type: "text" };`;
  const json = `import manifest from "../../deno.json" with { type: "json" };`;
  assert.deepEqual(directionOffences(houseWith("handlers/commands/demo.ts", yaml)), []);
  assert.deepEqual(directionOffences(houseWith("handlers/commands/serve.ts", json)), []);
  const other = `import x from "../../deploy/crds/../values.yaml" with { type: "text" };`;
  const [offence] = directionOffences(houseWith("handlers/commands/demo.ts", other));
  assert.match(offence?.message ?? "", /nothing outside/);
});

Deno.test("a house that keeps the rules has no offence", () => {
  const syntax = parse(new Map(Object.entries(HOUSE)));
  assert.deepEqual(directionOffences(syntax), []);
});

Deno.test("every planted import and connection in a wrong direction is found", () => {
  for (const [file, line, said] of PLANTED) {
    const found = directionOffences(houseWith(file, line));
    const hit = found.find((offence) => offence.file === file && said.test(offence.message));
    assert.ok(hit, `not found in ${file}: ${line}\n${JSON.stringify(found)}`);
  }
});

Deno.test("the way into an impure file is found from each pure file that reaches it", () => {
  const found = directionOffences(houseWith("lib/records/names.ts", "Deno.exit(1);"));
  assert.deepEqual(
    found.map((offence) => /pure file (\S+)/.exec(offence.message)?.[1]).sort(),
    ["lib/lease/rules.ts", "lib/records/names.ts"],
  );
});

Deno.test("a type may come from anywhere in lib, and what only computes from the platform", () => {
  for (
    const line of [
      `import type { HttpApi } from "../kube/http_api.ts";`,
      `import { type HttpApi } from "../kube/mod.ts";`,
      `import type { KubeConfig } from "@kubernetes/client-node";`,
      `export type { Server } from "../testing/mod.ts";`,
      `import type { Store } from "../records/store.ts";`,
      `import { isIP } from "node:net";`,
    ]
  ) {
    assert.deepEqual(directionOffences(houseWith("lib/lease/rules.ts", line)), [], line);
  }
});

Deno.test("imports of main, handlers and lib point the right way", async () => {
  const syntax = parse(await readSources("lib", "handlers", "main.ts"));
  assert.ok(syntax.files.length > 20, "the sources were not found");
  assert.deepEqual(directionOffences(syntax), []);
});
