import assert from "node:assert/strict";
import { parse } from "yaml";
import { z } from "zod";
import { manifests } from "../../handlers/commands/demo/cast.ts";
import { serviceRoles } from "../../lib/manifests/service/roles.ts";
import { configKeys } from "../../lib/config/schema.ts";
import { blocksIn, readDocument } from "./markdown.ts";

const roleSchema = z.looseObject({
  kind: z.literal("ClusterRole"),
  rules: z.array(z.record(z.string(), z.array(z.string()))),
});

Deno.test("the ClusterRole of docs/operations.md is the one that the demo runs with", async () => {
  const blocks = blocksIn(await readDocument("docs/operations.md"));
  const shown = blocks.filter(({ language }) => language === "yaml").map(({ text }) => parse(text))
    .find((manifest) => roleSchema.safeParse(manifest).success);
  const used = manifests().find((manifest) => roleSchema.safeParse(manifest).success);
  assert.deepEqual(roleSchema.parse(shown).rules, roleSchema.parse(used).rules);
});

const ruleList = z.array(z.strictObject({
  apiGroups: z.array(z.string()),
  resources: z.array(z.string()),
  verbs: z.array(z.string()),
}));

Deno.test("the further rules of docs/operations.md are those of the generated roles", async () => {
  const blocks = blocksIn(await readDocument("docs/operations.md"));
  const shown = blocks.filter(({ language }) => language === "yaml").flatMap(({ text }) =>
    ruleList.safeParse(parse(text)).data ?? []
  );
  const generated = serviceRoles({
    deployApi: false,
    plannedOperations: true,
    keyringEscrow: "everywhere",
    auxiliary: true,
    statusPage: true,
    own: {},
  }).flatMap(({ rules }) => rules);
  const sorted = (rules: readonly unknown[]) => rules.map((rule) => JSON.stringify(rule)).sort();
  assert.deepEqual(sorted(shown), sorted(generated));
});

/** What looks like a key of the configuration, in code marks. */
const KEY = /`((?:listen|tls|deploy_api|auxiliary|kubernetes|host|log)\.[a-z_.]+)`/g;

Deno.test("every key of the configuration that a page names exists", async () => {
  const { keys, sections } = configKeys;
  for (
    const path of [
      "docs/api.md",
      "docs/auxiliary.md",
      "docs/operations.md",
      "docs/metrics.md",
      "SECURITY.md",
    ]
  ) {
    const names = [...(await readDocument(path)).matchAll(KEY)].map(([, name = ""]) => name);
    const unknown = names.filter((name) => !keys.has(name) && !sections.has(name));
    assert.deepEqual(unknown, [], path);
  }
});
