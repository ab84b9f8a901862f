import { Ajv2020 } from "ajv/dist/2020.js";
import assert from "node:assert/strict";
import { z } from "zod";
import { DESCRIPTION, renderDescription } from "../../../deploy/openapi.ts";
import { describeDeployApi } from "../../../handlers/http/openapi.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../../lib/group/types.ts";
import { formatTime } from "../../../lib/records/record.ts";
import { annotate, changeGate, REVOKE, setStatus } from "../../conformance/support.ts";
import type { Answer } from "../../service/deployment_client.ts";
import { InProcessService, NAMESPACE } from "../../service/in_process.ts";

const schema = z.record(z.string(), z.unknown());
const response = z.strictObject({
  description: z.string().min(1),
  headers: z.record(z.string(), z.object({ schema })),
  content: z.object({ "application/json": z.object({ schema }) }).optional(),
});
const operation = z.object({
  requestBody: z.object({ content: z.object({ "application/json": z.object({ schema }) }) })
    .optional(),
  responses: z.record(z.string(), response),
});
const description = z.object({
  paths: z.object({
    "/groups/{group}": z.object({ get: operation }),
    "/groups/{group}/leases": z.object({ post: operation }),
    "/groups/{group}/leases/{kind}/{operationId}": z.object({ put: operation, delete: operation }),
  }),
}).parse(describeDeployApi("1.2.3"));

const one = description.paths["/groups/{group}/leases/{kind}/{operationId}"];
const operations = {
  observe: description.paths["/groups/{group}"].get,
  grant: description.paths["/groups/{group}/leases"].post,
  renew: one.put,
  release: one.delete,
};
type Operation = keyof typeof operations;

/** The same schema, with nothing more in it than it names: what we answer today. */
function exact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(exact);
  if (typeof value !== "object" || value === null) return value;
  const inner = Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, exact(member)]),
  );
  return inner.type === "object" ? { ...inner, additionalProperties: false } : inner;
}

const ajv = new Ajv2020({ strict: true, allErrors: true });

/** What an answer is against what the document says of it; its status when all is well. */
function judge(name: Operation, { status, headers, text }: Answer): string {
  const described = operations[name].responses[status];
  assert.ok(described, `${name} ${status} ${text}`);
  for (const [header, { schema }] of Object.entries(described.headers)) {
    const value = headers.get(header);
    assert.ok(value !== null, `${name} ${status} has no ${header}`);
    const known = schema.type === "integer" ? Number(value) : value;
    assert.ok(ajv.validate(schema, known), `${name} ${status} ${header}: ${value}`);
  }
  const body = described.content?.["application/json"].schema;
  if (body === undefined) assert.equal(text, "");
  else {
    assert.ok(
      ajv.validate(Object(exact(body)), JSON.parse(text)),
      `${name} ${status} ${text}: ${ajv.errorsText()}`,
    );
  }
  return `${name} ${status}`;
}

Deno.test("docs/openapi.json is what the code says (else: deno task openapi)", async () => {
  assert.equal(await Deno.readTextFile(DESCRIPTION), renderDescription());
});

Deno.test("every answer that the description names is given, in its form, and no other one", async () => {
  const seen = new Set<string>();
  const see = (name: Operation, answer: Answer) => void seen.add(judge(name, answer));
  using service = new InProcessService();
  const client = service.client();
  const stranger = client.with({
    token: service.fake.tokenFor({
      namespace: NAMESPACE,
      serviceAccount: "stranger",
      audiences: ["bloodraven-deploy"],
    }),
  });
  const nobody = client.with({ token: "none" });
  const large = { body: " ".repeat(4_097) };

  see("grant", await client.grant("op-1", "tenant"));
  const regrant = await client.grant("op-1", "tenant");
  see("grant", regrant);
  const token = String(regrant.body.token);
  see("observe", await client.observe());
  see("grant", await client.grant("op-2", "tenant"));
  see("renew", await client.renew("op-1", token));
  for (const bad of ["?", "[]", '{"ttlSeconds":"30"}', '{"more":1}']) {
    see("grant", await client.call("POST", "/leases", { body: bad }));
    see("renew", await client.call("PUT", "/leases/migration/op-1", { body: bad }));
  }
  see("release", await client.release("op-1", token, { kind: "other" }));
  see("grant", await client.call("POST", "/leases", large));
  see("renew", await client.call("PUT", "/leases/migration/op-1", large));
  see("renew", await client.renew("op-1", "wrong"));
  see("release", await client.release("op-1", "wrong"));
  see("renew", await client.renew("op-3", token));
  for (const caller of [stranger, nobody]) {
    see("observe", await caller.observe());
    see("grant", await caller.grant("op-1", "tenant"));
    see("renew", await caller.renew("op-1", token));
    see("release", await caller.release("op-1", token));
  }
  setStatus(service, { updatePhase: "Rolling" });
  see("grant", await client.grant("op-4", "tenant"));
  setStatus(service, { updatePhase: "" });
  const pending = { since: formatTime(service.clock.wall()), by: "operator" };
  changeGate(service, { pending });
  see("observe", await client.observe());
  see("renew", await client.renew("op-1", token));
  changeGate(service, { pending: null });
  annotate(service, REVOKE, "stop");
  see("renew", await client.renew("op-1", token));
  see("grant", await client.grant("op-1", "tenant"));
  see("release", await client.release("op-1", token));

  const broken = new InProcessService({ fake: service.fake, clock: service.clock, seed: 2 });
  using _broken = broken;
  const away = service.fake.faults.add({
    resource: "leases.coordination.k8s.io",
    fault: { type: "status", code: 500 },
  });
  const other = broken.client();
  for (const state of ["unavailable", "not_leader"]) {
    broken.leads = state === "unavailable";
    const answers = {
      observe: await other.observe(),
      grant: await other.grant("op-5", "tenant"),
      renew: await other.renew("op-5", token),
      release: await other.release("op-5", token),
    };
    for (const [name, answer] of Object.entries(answers)) {
      assert.equal(answer.body.error, state);
      seen.add(judge(z.enum(["observe", "grant", "renew", "release"]).parse(name), answer));
    }
  }
  away.remove();
  service.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "orders" });
  see("observe", await client.observe());
  see("grant", await client.grant("op-6", "tenant"));
  see("renew", await client.renew("op-6", token));

  const named = Object.entries(operations).flatMap(([name, { responses }]) =>
    Object.keys(responses).map((status) => `${name} ${status}`)
  );
  assert.deepEqual([...seen].sort(), named.sort());
});

Deno.test("what the description says of a body is what the service takes and refuses", async () => {
  using service = new InProcessService();
  const client = service.client();
  const grant = ajv.compile(
    Object(operations.grant.requestBody?.content["application/json"].schema),
  );
  const good = { kind: "migration", operationId: "op", instance: "tenant", ttlSeconds: 30 };
  for (
    const body of [
      good,
      { ...good, ttlSeconds: undefined },
      { ...good, ttlSeconds: "30" },
      { ...good, ttlSeconds: 1.5 },
      { ...good, more: 1 },
      { ...good, operationId: 1 },
    ]
  ) {
    const sent = JSON.stringify(body);
    const { status } = await client.call("POST", "/leases", { body: sent });
    assert.equal(grant(JSON.parse(sent)), status !== 400, sent);
  }
});

Deno.test("an answer that is not described, or has not its form, is seen", () => {
  const headers = new Headers();
  const answer = { status: 418, headers, text: "{}", body: {} };
  assert.throws(() => judge("observe", answer));
  assert.throws(() => judge("grant", { ...answer, status: 200, text: '{"token":"x"}' }));
  assert.throws(() => judge("observe", { ...answer, status: 401, text: '{"error":"other"}' }));
  const more = '{"error":"unauthorized","more":1}';
  assert.throws(() => judge("observe", { ...answer, status: 401, text: more }));
});
