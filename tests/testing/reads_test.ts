import assert from "node:assert/strict";
import fc from "fast-check";
import {
  ask,
  lease,
  LEASES_PATH,
  newFake,
  patch,
  widget,
  WIDGET_CRD,
  WIDGETS_PATH,
} from "./helpers.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

function names(answer: { readonly body: { readonly items?: readonly { metadata?: object }[] } }) {
  return (answer.body.items ?? []).map(({ metadata }) => JSON.parse(JSON.stringify(metadata)).name);
}

function withLeases(...leaseNames: readonly string[]) {
  const made = newFake();
  for (const name of leaseNames) made.fake.apply(lease(name, { labels: { app: name, tier: "x" } }));
  return made;
}

Deno.test("a list has the version of the store, and items of built-in kinds do not name their kind", async () => {
  const { fake } = withLeases("b", "a");
  const list = await ask(fake, "GET", LEASES_PATH);
  assert.deepEqual(names(list), ["a", "b"]);
  assert.equal(list.body.metadata?.resourceVersion, String(fake.revision));
  assert.equal(list.body.items?.[0]?.kind, undefined);
});

Deno.test("lists go over all namespaces, or one", async () => {
  const { fake } = withLeases("a");
  fake.apply(lease("a", { namespace: "other" }));
  fake.apply(lease("z", { namespace: "default-2" }));
  assert.deepEqual(names(await ask(fake, "GET", "/apis/coordination.k8s.io/v1/leases")), [
    "z",
    "a",
    "a",
  ]);
  assert.deepEqual(names(await ask(fake, "GET", LEASES_PATH)), ["a"]);
  const none = await ask(fake, "GET", LEASES_PATH.replace("default", "none"));
  assert.deepEqual([none.status, names(none)], [200, []]);
});

Deno.test("pages show one version of the list, whatever is written in between", async () => {
  const { fake } = withLeases("a", "b", "c", "d", "e");
  const first = await ask(fake, "GET", `${LEASES_PATH}?limit=2`);
  assert.deepEqual(names(first), ["a", "b"]);
  assert.equal(first.body.metadata?.remainingItemCount, 3);
  fake.apply(lease("bb"));
  await ask(fake, "DELETE", `${LEASES_PATH}/c`);
  const token = (answer: typeof first) =>
    encodeURIComponent(String(answer.body.metadata?.continue));
  const second = await ask(fake, "GET", `${LEASES_PATH}?limit=2&continue=${token(first)}`);
  assert.deepEqual(names(second), ["c", "d"]);
  const third = await ask(fake, "GET", `${LEASES_PATH}?limit=2&continue=${token(second)}`);
  assert.deepEqual(names(third), ["e"]);
  assert.equal(third.body.metadata?.continue, undefined);
  assert.equal(third.body.metadata?.resourceVersion, first.body.metadata?.resourceVersion);
  const both = await ask(
    fake,
    "GET",
    `${LEASES_PATH}?resourceVersion=5&continue=${token(second)}`,
  );
  assert.equal(both.status, 400);
  fake.compact();
  const late = await ask(fake, "GET", `${LEASES_PATH}?limit=2&continue=${token(first)}`);
  assert.deepEqual([late.status, late.body.reason], [410, "Expired"]);
});

Deno.test("queries that cannot be read are refused as on the real server", async () => {
  const { fake } = withLeases("a");
  const status = async (query: string) =>
    (await ask(fake, "GET", `${LEASES_PATH}?${query}`)).status;
  assert.equal(await status("continue=x"), 400);
  assert.equal(await status("continue=eyJ4IjoxfQ"), 400);
  assert.equal(await status("limit=x"), 400);
  assert.equal(await status("resourceVersion=x"), 400);
  assert.equal(await status("resourceVersion=999999"), 504);
  assert.equal(await status("resourceVersionMatch=Exact"), 422);
  assert.equal(await status("resourceVersion=0"), 200);
  assert.equal(await status("watch=true&resourceVersion=x"), 500);
  assert.equal(await status("watch=true&timeoutSeconds=x"), 400);
  assert.equal(await status("watch=true&continue=x"), 400);
  fake.compact();
  assert.equal(await status("resourceVersion=1&resourceVersionMatch=Exact"), 410);
});

Deno.test("a list at an exact version is the list of then", async () => {
  const { fake } = withLeases("a");
  const then = fake.revision;
  fake.apply(lease("b"));
  await patch(fake, `${LEASES_PATH}/a`, { metadata: { labels: { app: "changed" } } });
  const query = `resourceVersion=${then}&resourceVersionMatch=Exact&labelSelector=app=a`;
  assert.deepEqual(names(await ask(fake, "GET", `${LEASES_PATH}?${query}`)), ["a"]);
});

Deno.test("field selectors: name and namespace for all, selectable fields for custom kinds, 400 for others", async () => {
  const { fake } = withLeases("a", "b");
  fake.apply(WIDGET_CRD);
  fake.apply(widget("w"));
  const get = (path: string, selector: string) =>
    ask(fake, "GET", `${path}?fieldSelector=${encodeURIComponent(selector)}`);
  assert.deepEqual(names(await get(LEASES_PATH, "metadata.name=a")), ["a"]);
  assert.deepEqual(names(await get(LEASES_PATH, "metadata.name!=a,metadata.namespace==default")), [
    "b",
  ]);
  assert.deepEqual(names(await get(WIDGETS_PATH, "spec.ref.name=orders")), ["w"]);
  assert.deepEqual(names(await get(WIDGETS_PATH, "spec.ref.name=none")), []);
  const unsupported = await get(WIDGETS_PATH, "spec.n=1");
  assert.deepEqual([unsupported.status, unsupported.body.message], [
    400,
    "field label not supported: spec.n",
  ]);
  assert.equal((await get(LEASES_PATH, "spec.n=1")).status, 400);
  assert.equal((await get(LEASES_PATH, "spec.n")).status, 400);
  const namespaces = await get("/api/v1/namespaces", "metadata.name=default,status.phase=Active");
  assert.deepEqual(names(namespaces), ["default"]);
});

Deno.test("label selectors in all their forms", async () => {
  const { fake } = newFake();
  fake.apply(lease("one", { labels: { app: "a", n: "1" } }));
  fake.apply(lease("two", { labels: { app: "b", n: "2" } }));
  fake.apply(lease("three"));
  const cases: [string, string[]][] = [
    ["app=a", ["one"]],
    ["app==a", ["one"]],
    ["app!=a", ["three", "two"]],
    ["app", ["one", "two"]],
    ["!app", ["three"]],
    ["app in (a,b)", ["one", "two"]],
    ["app in (a),n", ["one"]],
    ["app notin (a)", ["three", "two"]],
    ["n>1", ["two"]],
    ["n<2", ["one"]],
    ["app=", []],
    ["app in (a,)", ["one"]],
    ["", ["one", "three", "two"]],
    [" app = a , n ", ["one"]],
  ];
  for (const [selector, expected] of cases) {
    const query = `labelSelector=${encodeURIComponent(selector)}`;
    assert.deepEqual(names(await ask(fake, "GET", `${LEASES_PATH}?${query}`)), expected, selector);
  }
  for (
    const wrong of [
      "a in b",
      "a===",
      "a=b c",
      "-a=b",
      "a=b,",
      "a in (b",
      "a in (b c)",
      "a=-",
      "n>x",
      "(a)",
      "a(b",
      "!",
    ]
  ) {
    const query = `labelSelector=${encodeURIComponent(wrong)}`;
    assert.equal((await ask(fake, "GET", `${LEASES_PATH}?${query}`)).status, 400, wrong);
  }
});

Deno.test("an object is in exactly one of a label selector and its opposite", async () => {
  const value = fc.constantFrom("a", "b", "c");
  await fc.assert(
    fc.asyncProperty(fc.option(value), value, async (label, wanted) => {
      const { fake } = newFake();
      fake.apply(lease("one", label === null ? {} : { labels: { app: label } }));
      const count = async (selector: string) =>
        names(
          await ask(fake, "GET", `${LEASES_PATH}?labelSelector=${encodeURIComponent(selector)}`),
        )
          .length;
      assert.equal(await count(`app=${wanted}`) + await count(`app!=${wanted}`), 1);
      assert.equal(await count(`app in (${wanted})`) + await count(`app notin (${wanted})`), 1);
      assert.equal(await count("app") + await count("!app"), 1);
    }),
    { numRuns: 20 },
  );
});

Deno.test("discovery tells the groups, their kinds and subresources", async () => {
  const { fake } = newFake();
  fake.apply(WIDGET_CRD);
  const get = async (path: string) =>
    JSON.parse(JSON.stringify((await ask(fake, "GET", path)).body));
  assert.match((await get("/version")).gitVersion, /^v1\./);
  assert.deepEqual((await get("/api")).versions, ["v1"]);
  const groups = (await get("/apis")).groups.map((group: { name: string }) => group.name);
  assert.ok(groups.includes("example.io") && groups.includes("coordination.k8s.io"));
  assert.equal((await get("/apis/example.io")).preferredVersion.version, "v1");
  const resources = (await get("/apis/example.io/v1")).resources;
  assert.deepEqual(resources.map((one: { name: string }) => one.name), [
    "widgets",
    "widgets/status",
  ]);
  const core = (await get("/api/v1/")).resources.map((one: { name: string }) => one.name);
  assert.ok(core.includes("serviceaccounts/token"));
  assert.equal((await ask(fake, "GET", "/healthz")).body.message, "ok");
  assert.equal((await ask(fake, "GET", "/")).status, 200);
  for (
    const path of [
      "/nope",
      "/api/v2",
      "/apis/none",
      "/apis/example.io/v9",
      "/apis/none/v1/x",
      "/a/b",
    ]
  ) assert.equal((await ask(fake, "GET", path)).status, 404, path);
  assert.equal((await ask(fake, "POST", "/version")).status, 404);
});

Deno.test("methods and paths that a kind does not have are 404 or 405", async () => {
  const { fake } = withLeases("a");
  const status = async (method: string, path: string) =>
    (await ask(fake, method, path, method === "POST" ? {} : undefined)).status;
  assert.equal(await status("POST", `${LEASES_PATH}/a`), 405);
  assert.equal(await status("POST", "/apis/coordination.k8s.io/v1/leases"), 405);
  assert.equal(await status("DELETE", LEASES_PATH), 405);
  assert.equal(await status("OPTIONS", LEASES_PATH), 405);
  assert.equal(await status("GET", `${LEASES_PATH}/a/status`), 404);
  assert.equal(await status("GET", LEASES_PATH.replace("leases", "foos")), 404);
  assert.equal(await status("GET", "/apis/authentication.k8s.io/v1/tokenreviews"), 405);
  assert.equal(await status("GET", `${LEASES_PATH}/%ff`), 404);
});

Deno.test("tables carry the printer columns, with ages on the server's clock", async () => {
  const { fake, clock } = newFake();
  fake.apply(WIDGET_CRD);
  fake.apply(widget("w", { n: 3, list: [{ ns: "x" }, { ns: "y" }] }, {
    labels: { "example.io/owner": "me" },
  }, {
    status: {
      site: "iad",
      seen: "2026-01-01T00:00:00Z",
      conditions: [{ type: "Other", status: "No" }, { type: "Ready", status: "True" }],
    },
  }));
  const cells = async () => {
    const answer = await ask(fake, "GET", WIDGETS_PATH, undefined, { accept: TABLE });
    const table = JSON.parse(JSON.stringify(answer.body));
    assert.equal(table.kind, "Table");
    return table.rows[0].cells;
  };
  assert.deepEqual(await cells(), ["w", "iad", 3, "True", "me", "x,y", "x", "0s", "0s"]);
  const ages: [number, string][] = [[120_000, "2m"], [7_200_000, "2h"], [172_800_000, "2d"]];
  for (const [ms, text] of ages) {
    await clock.advance(ms - clock.monotonic());
    assert.equal((await cells()).at(-1), text);
  }
  fake.apply(lease("a"));
  const one = await ask(fake, "GET", `${LEASES_PATH}/a`, undefined, { accept: TABLE });
  assert.deepEqual(JSON.parse(JSON.stringify(one.body)).rows[0].cells, ["a", "a", "0s"]);
  const bare = widget("bare");
  fake.apply(bare);
  const empty = await ask(fake, "GET", `${WIDGETS_PATH}/bare`, undefined, { accept: TABLE });
  assert.deepEqual(JSON.parse(JSON.stringify(empty.body)).rows[0].cells.slice(1, 4), [
    null,
    null,
    null,
  ]);
});
