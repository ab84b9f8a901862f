import assert from "node:assert/strict";
import { parse } from "yaml";
import { z } from "zod";
import { manifests } from "../../../../handlers/commands/demo/cast.ts";
import { blocksIn, readDocument } from "../../../docs/markdown.ts";

const rulesSchema = z.array(z.looseObject({ apiGroups: z.array(z.string()) }));

const roleSchema = z.looseObject({
  kind: z.literal("ClusterRole"),
  metadata: z.object({ name: z.string() }),
  rules: rulesSchema,
});

const bindingSchema = z.looseObject({
  kind: z.literal("ClusterRoleBinding"),
  roleRef: z.looseObject({ name: z.string() }),
  subjects: z.array(z.looseObject({ namespace: z.string(), name: z.string() })),
});

function parsedBy<T>(schema: z.ZodType<T>, values: readonly unknown[]): readonly T[] {
  return values.flatMap((value) => {
    const { success, data } = schema.safeParse(value);
    return success ? [data] : [];
  });
}

Deno.test("planned operations get the one rule more that docs/operations.md names, and no other", async () => {
  const blocks = blocksIn(await readDocument("docs/operations.md"));
  const shown = blocks.filter(({ language }) => language === "yaml").map(({ text }) => parse(text));
  const [rules, ...others] = parsedBy(rulesSchema, shown);
  assert.deepEqual(others, [], "one block must be a list of rules");
  const roles = parsedBy(roleSchema, manifests());
  assert.deepEqual(roles.map(({ metadata }) => metadata.name), [
    "holdfast",
    "holdfast-planned-operations",
    "holdfast-auxiliary",
    "holdfast-status-page",
  ]);
  assert.deepEqual(roles[1]?.rules, rules);
});

Deno.test("the roles are bound to the service, and to nobody else", () => {
  const bindings = parsedBy(bindingSchema, manifests());
  assert.deepEqual(
    bindings.map(({ roleRef, subjects }) => [
      roleRef.name,
      subjects.map(({ namespace, name }) => `${namespace}/${name}`),
    ]),
    [
      ["holdfast", ["holdfast/holdfast"]],
      ["holdfast-planned-operations", ["holdfast/holdfast"]],
      ["holdfast-auxiliary", ["holdfast/holdfast"]],
      ["holdfast-status-page", ["holdfast/holdfast"]],
    ],
  );
});
