import assert from "node:assert/strict";
import fc from "fast-check";
import { parse } from "yaml";
import { compileSchema } from "../../lib/testing/api_server/custom_schema.ts";
import { objectAt } from "../../lib/testing/api_server/json.ts";
import {
  ask,
  fieldsOf,
  JSON_PATCH,
  newFake,
  patch,
  versionOf,
  widget,
  WIDGET_CRD,
  WIDGETS_PATH,
} from "./helpers.ts";

const CRDS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

function withWidgets() {
  const made = newFake();
  made.fake.apply(WIDGET_CRD);
  return made;
}

Deno.test("a CRD that is created through the API makes its kind served, and its removal ends that", async () => {
  const { fake } = newFake();
  assert.equal((await ask(fake, "GET", WIDGETS_PATH)).status, 404);
  const crd = await ask(fake, "POST", CRDS_PATH, WIDGET_CRD);
  assert.equal(crd.status, 201);
  assert.equal((await ask(fake, "POST", WIDGETS_PATH, widget("w"))).status, 201);
  const list = await ask(fake, "GET", WIDGETS_PATH);
  assert.equal(list.body.kind, "WidgetList");
  assert.equal(list.body.items?.[0]?.kind, "Widget");
  await ask(fake, "DELETE", `${CRDS_PATH}/widgets.example.io`);
  assert.equal((await ask(fake, "GET", WIDGETS_PATH)).status, 404);
  await ask(fake, "POST", CRDS_PATH, WIDGET_CRD);
  assert.deepEqual((await ask(fake, "GET", WIDGETS_PATH)).body.items, []);
});

Deno.test("a CRD that is broken is refused", async () => {
  const { fake } = newFake();
  const spec = WIDGET_CRD.spec;
  const fields = async (change: object, name = "widgets.example.io") =>
    fieldsOf(
      await ask(fake, "POST", CRDS_PATH, {
        ...WIDGET_CRD,
        metadata: { name },
        spec: { ...spec, ...change },
      }),
    );
  assert.deepEqual(await fields({}, "x"), ["metadata.name"]);
  assert.deepEqual(await fields({ scope: "" }), ["spec.scope"]);
  assert.deepEqual(await fields({ versions: [] }), ["spec.versions"]);
  const schemaField = "spec.versions[0].schema.openAPIV3Schema";
  assert.deepEqual(await fields({ versions: [{ name: "v1", served: true }] }), [schemaField]);
  const broken = { type: "object", properties: { a: { type: "string", pattern: "(" } } };
  const version = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: broken } };
  assert.deepEqual(await fields({ versions: [version] }), [schemaField]);
});

Deno.test("the CRDs of deploy/crds are served, with what their schemas refuse", async () => {
  const { fake } = newFake();
  for (const file of ["mysqlbackups", "mysqldatabases", "mysqlfailovergroups"]) {
    const url = new URL(`../../deploy/crds/${file}.yaml`, import.meta.url);
    fake.apply(parse(await Deno.readTextFile(url)));
  }
  const path = "/apis/shipstream.io/v1alpha1/namespaces/default/mysqldatabases";
  const database = (deploymentClients: object[], extra: object = {}) => ({
    apiVersion: "shipstream.io/v1alpha1",
    kind: "MysqlDatabase",
    metadata: { name: "app" },
    spec: { groupRef: { name: "orders" }, deploymentClients, ...extra },
  });
  const client = { namespace: "app", serviceAccount: "bot" };
  const twice = await ask(fake, "POST", path, database([client, client]));
  assert.deepEqual(fieldsOf(twice), ["spec.deploymentClients[1]"]);
  const incomplete = await ask(fake, "POST", path, database([{ namespace: "app" }]));
  assert.deepEqual(fieldsOf(incomplete)[0], "spec.deploymentClients[0].serviceAccount");
  const stored = await ask(fake, "POST", path, database([client], { unknown: { kept: true } }));
  assert.deepEqual(stored.body.spec?.unknown, { kept: true });
  const moved = await patch(fake, `${path}/app`, { spec: { groupRef: { name: "other" } } });
  assert.deepEqual(fieldsOf(moved), ["spec.groupRef.name"]);
  const selected = await ask(fake, "GET", `${path}?fieldSelector=spec.groupRef.name=orders`);
  assert.equal(selected.body.items?.length, 1);
});

Deno.test("unknown members go, also in lists, and free-form ones stay", async () => {
  const { fake } = withWidgets();
  const body = widget(
    "w",
    {
      unknown: 1,
      free: { deep: { x: 1 } },
      any: { y: 2 },
      map: { a: "b" },
      list: [{ ns: "n", extra: true }],
      nullable: null,
      n: null,
    },
    {},
    { other: 1 },
  );
  const stored = await ask(fake, "POST", WIDGETS_PATH, body);
  assert.deepEqual(stored.body.spec, {
    ref: { name: "orders" },
    mode: "a",
    free: { deep: { x: 1 } },
    any: { y: 2 },
    map: { a: "b" },
    list: [{ ns: "n" }],
    nullable: null,
  });
  assert.equal(stored.body.other, undefined);
  assert.match(stored.headers.get("warning") ?? "", /spec.unknown.*spec.list\[0\].extra.*other/);
});

Deno.test("each rule of a schema names the field that breaks it", async () => {
  const { fake } = withWidgets();
  const faults = async (spec: object) =>
    (await ask(fake, "POST", WIDGETS_PATH, widget("w", spec))).body.details?.causes ?? [];
  const cases: [object, string, string][] = [
    [{ ref: {} }, "spec.ref.name", "FieldValueRequired"],
    [{ ref: { name: "" } }, "spec.ref.name", "FieldValueInvalid"],
    [{ ref: { name: "UPPER" } }, "spec.ref.name", "FieldValueInvalid"],
    [{ ref: { name: "toolongname" } }, "spec.ref.name", "FieldValueTooLong"],
    [{ n: 0 }, "spec.n", "FieldValueInvalid"],
    [{ n: 6 }, "spec.n", "FieldValueInvalid"],
    [{ n: 1.5 }, "spec.n", "FieldValueTypeInvalid"],
    [{ big: 0 }, "spec.big", "FieldValueInvalid"],
    [{ small: 1 }, "spec.small", "FieldValueInvalid"],
    [{ even: 3 }, "spec.even", "FieldValueInvalid"],
    [{ mode: "z" }, "spec.mode", "FieldValueNotSupported"],
    [{ flag: "yes" }, "spec.flag", "FieldValueTypeInvalid"],
    [{ port: [] }, "spec.port", "FieldValueTypeInvalid"],
    [{ when: "today" }, "spec.when", "FieldValueInvalid"],
    [{ map: { a: 1 } }, "spec.map.a", "FieldValueTypeInvalid"],
    [{ map: "x" }, "spec.map", "FieldValueTypeInvalid"],
    [{ list: [] }, "spec.list", "FieldValueInvalid"],
    [{ list: [{}] }, "spec.list[0].ns", "FieldValueRequired"],
    [{ list: [1, 2, 3, 4] }, "spec.list", "FieldValueTooMany"],
    [{ list: [{ ns: "a" }, { ns: "a" }] }, "spec.list[1]", "FieldValueDuplicate"],
    [{ set: ["a", "b", "a"] }, "spec.set[2]", "FieldValueDuplicate"],
    [{ set: [null] }, "spec.set[0]", "FieldValueTypeInvalid"],
    [{ either: "xx" }, "spec.either", "FieldValueTooLong"],
    [{ n: 3_000_000_000 }, "<nil>", "FieldValueInvalid"],
  ];
  for (const [spec, field, reason] of cases) {
    const causes = await faults(spec);
    assert.ok(
      causes.some((cause) => cause.field === field && cause.reason === reason),
      `${JSON.stringify(spec)}: ${JSON.stringify(causes)}`,
    );
  }
  const good = { n: 5, port: 80, when: "2026-01-01T00:00:00Z", even: 2, big: 1, small: 0.5 };
  assert.equal((await ask(fake, "POST", WIDGETS_PATH, widget("w", good))).status, 201);
});

Deno.test("a missing field or a wrong type keeps rules from being checked, and the answer says so", async () => {
  const { fake } = withWidgets();
  const answer = await ask(fake, "POST", WIDGETS_PATH, widget("w", { ref: {} }));
  assert.deepEqual(fieldsOf(answer), ["spec.ref.name", "<nil>"]);
});

Deno.test("a field with the rule self == oldSelf cannot change", async () => {
  const { fake } = withWidgets();
  await ask(fake, "POST", WIDGETS_PATH, widget("w"));
  const changed = await patch(fake, `${WIDGETS_PATH}/w`, { spec: { ref: { name: "other" } } });
  assert.equal(changed.status, 422);
  assert.match(String(changed.body.message), /spec.ref.name: Invalid value: "other": is immutable/);
});

Deno.test("the kind and version of a custom object have to be named and right", async () => {
  const { fake } = withWidgets();
  const post = (change: object) => ask(fake, "POST", WIDGETS_PATH, { ...widget("w"), ...change });
  assert.equal((await post({ kind: undefined })).status, 400);
  assert.equal((await post({ apiVersion: "example.io/v2" })).status, 400);
  assert.equal((await post({ kind: "Foo" })).status, 422);
  assert.equal((await post({ metadata: { name: "w", labels: { a: 1 } } })).status, 400);
});

Deno.test("a write to the main URL leaves status alone, and one to /status all else", async () => {
  const { fake } = withWidgets();
  const path = `${WIDGETS_PATH}/w`;
  const created = await ask(
    fake,
    "POST",
    WIDGETS_PATH,
    widget("w", {}, {}, { status: { site: "iad" } }),
  );
  assert.equal(created.body.status, undefined);
  const status = await patch(fake, `${path}/status`, {
    status: { site: "iad" },
    spec: { n: 4 },
    metadata: { annotations: { a: "b" }, labels: { a: "b" }, uid: "x" },
  });
  assert.deepEqual(status.body.status, { site: "iad" });
  assert.equal(status.body.spec?.n, undefined);
  assert.equal(status.body.metadata?.annotations, undefined);
  assert.equal(status.body.metadata?.generation, 1);
  const main = await patch(fake, path, { spec: { n: 4 }, status: { site: "pdx" } });
  assert.deepEqual(main.body.status, { site: "iad" });
  assert.equal(main.body.metadata?.generation, 2);
  const ignored = await ask(fake, "PUT", `${path}/status`, {
    ...widget("w", {}, { resourceVersion: versionOf(main), annotations: { a: "b" } }),
    status: { site: "iad" },
  });
  assert.equal(versionOf(ignored), versionOf(main));
  assert.deepEqual((await ask(fake, "GET", `${path}/status`)).body, main.body);
  const invalid = await patch(fake, `${path}/status`, { status: { site: 5 } });
  assert.deepEqual(fieldsOf(invalid)[0], "status.site");
});

Deno.test("/status: a stale version is 409, a patch without one passes, a PUT without one is 422", async () => {
  const { fake } = withWidgets();
  const created = await ask(fake, "POST", WIDGETS_PATH, widget("w"));
  const path = `${WIDGETS_PATH}/w/status`;
  await patch(fake, path, { status: { site: "a" } });
  const stale = versionOf(created);
  const body = { metadata: { resourceVersion: stale }, status: { site: "b" } };
  assert.equal((await patch(fake, path, body)).status, 409);
  const put = (metadata: object) =>
    ask(fake, "PUT", path, widget("w", {}, metadata, { status: { site: "b" } }));
  assert.equal((await put({ resourceVersion: stale })).status, 409);
  assert.equal((await put({})).status, 422);
  assert.equal((await put({ uid: "x" })).status, 409);
  const byTest = await patch(fake, path, [
    { op: "replace", path: "/status/site", value: "c" },
  ], JSON_PATCH);
  assert.deepEqual(byTest.body.status, { site: "c" });
  assert.equal((await patch(fake, `${WIDGETS_PATH}/none/status`, {})).status, 404);
  assert.equal(
    (await ask(fake, "PUT", `${WIDGETS_PATH}/none/status`, widget("none"))).status,
    404,
  );
});

Deno.test("generation counts what is wished, and not labels", async () => {
  const { fake } = withWidgets();
  const path = `${WIDGETS_PATH}/w`;
  await ask(fake, "POST", WIDGETS_PATH, widget("w"));
  const labelled = await patch(fake, path, { metadata: { labels: { a: "b" } } });
  assert.equal(labelled.body.metadata?.generation, 1);
  const wished = await patch(fake, path, { spec: { n: 2 } });
  assert.equal(wished.body.metadata?.generation, 2);
});

Deno.test("a strategic merge patch is refused for custom kinds, and with lists for all", async () => {
  const { fake } = withWidgets();
  const strategic = "application/strategic-merge-patch+json";
  await ask(fake, "POST", WIDGETS_PATH, widget("w"));
  assert.equal((await patch(fake, `${WIDGETS_PATH}/w`, {}, strategic)).status, 415);
  const maps = "/api/v1/namespaces/default/configmaps";
  await ask(fake, "POST", maps, { metadata: { name: "m" }, data: { a: "1", b: "2" } });
  const merged = await patch(fake, `${maps}/m`, { data: { a: null, c: "3" } }, strategic);
  assert.deepEqual(merged.body.data, { b: "2", c: "3" });
  const listed = await patch(fake, `${maps}/m`, { metadata: { finalizers: ["x/y"] } }, strategic);
  assert.equal(listed.status, 415);
  const directive = await patch(fake, `${maps}/m`, { data: { $patch: "replace" } }, strategic);
  assert.equal(directive.status, 415);
});

Deno.test("pruning twice is pruning once, and what is pruned keeps no unknown member", () => {
  const version = WIDGET_CRD.spec.versions[0];
  const json = JSON.parse(JSON.stringify(version?.schema.openAPIV3Schema));
  const schema = compileSchema(json);
  fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (spec) => {
    const object = JSON.parse(JSON.stringify({ apiVersion: "a", kind: "b", spec }));
    const once = schema.prune(object).value;
    const twice = schema.prune(objectAt({ once }, "once"));
    assert.deepEqual(twice, { value: once, unknown: [] });
    for (const key of Object.keys(objectAt(once, "spec"))) {
      assert.ok(key in json.properties.spec.properties);
    }
  }));
});

Deno.test("a schema is compiled once for all clusters, and what was compiled long ago is forgotten", () => {
  const schema = (maxLength: number) => ({ type: "string", maxLength });
  const first = compileSchema(schema(0));
  assert.equal(compileSchema(schema(0)), first);
  for (let others = 1; others <= 64; others++) compileSchema(schema(others));
  assert.notEqual(compileSchema(schema(0)), first);
});
