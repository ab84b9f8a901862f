import assert from "node:assert/strict";
import { z } from "zod";
import { manifests } from "../../../../handlers/commands/demo/cast.ts";

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

Deno.test("the service has the generated roles of what the demo switches on, and nobody else has them", () => {
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
