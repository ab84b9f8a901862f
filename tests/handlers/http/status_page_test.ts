import assert from "node:assert/strict";
import fc from "fast-check";
import { createStatusPage, knownPage, renderPart } from "../../../handlers/http/status_page.tsx";
import {
  byWish,
  isWanted,
  newsInWords,
  pauseAfter,
  span as browserSpan,
} from "../../../handlers/http/status_page/browser/rules.js";
import { addChanges } from "../../../lib/status_page/changes.ts";
import { type PageState, placeLeases, placeParts } from "../../../lib/status_page/difference.ts";
import type { PageGroup } from "../../../lib/status_page/model.ts";
import { summaryOf } from "../../../lib/status_page/overview.ts";
import { span } from "../../../lib/status/words.ts";
import { healthyGroup } from "../../group/fixtures.ts";
import { hold, leaseOf, migration, NOW } from "../../status/fixtures.ts";
import { named, pageGroup } from "../../status_page/page_fixtures.ts";

function stateOf(groups: readonly PageGroup[]): PageState {
  return {
    source: { replica: "holdfast-0", sinceMs: Date.UTC(2026, 0, 1) },
    groups: new Map(groups.map((group) => [group.key, group])),
    summary: summaryOf(groups),
    changes: [],
    problems: [],
  };
}

function appOf(state: PageState) {
  const page = { state, version: { epoch: "epoch1", sequence: 4 } };
  return createStatusPage({ page, time: () => NOW });
}

async function htmlOf(state: PageState): Promise<string> {
  return await (await appOf(state).request("/")).text();
}

const held = pageGroup([leaseOf(migration()), leaseOf(hold())]);

Deno.test("the page needs no script to tell all: sites, leases, who, age and time left", async () => {
  const html = await htmlOf(stateOf([held]));
  assert.match(html, /^<!DOCTYPE html><html lang="en"/);
  for (
    const text of [
      "database-ns/",
      "orders",
      "iad",
      "pdx",
      "read-only",
      "op-1",
      "orders-app",
      "Stable",
    ]
  ) {
    assert.ok(html.includes(text), text);
  }
  assert.match(html, /by app-ns\/<wbr>deployer/);
  assert.match(html, /data-until="\d+">20s<\/time>/);
  assert.match(html, /held for <time [^>]*>10s<\/time>/);
  assert.match(html, /As of <time datetime="2026-01-01T00:00:10Z">00:00:10 UTC<\/time>/);
  assert.match(html, /Seen by <strong>holdfast-0<\/strong> since it started/);
  // What needs the script is not there without it.
  assert.match(html, /<form id="controls"[^>]* hidden/);
});

Deno.test("a group that grants nothing says why in plain words, with the operator's word", async () => {
  const closed = pageGroup([], healthyGroup({ status: { conditions: [] } }));
  const html = await htmlOf(stateOf([closed]));
  assert.match(html, /<strong>Not stable<\/strong>, grants no lease: the operator does not report/);
  assert.match(html, /<code>NotReady<\/code>/);
  const pending = { ...held, closedReason: "TopologyPersistencePending", why: "it is changing" };
  assert.match(await htmlOf(stateOf([pending])), /<strong>Stable<\/strong>, grants no lease/);
  const unreadable = { ...closed, readable: false, topologyGeneration: null };
  assert.match(await htmlOf(stateOf([unreadable])), /<strong>Unreadable<\/strong>/);
});

Deno.test("a group whose status lacks everything is shown, and the others with it", async () => {
  const bare = pageGroup([], { ...named("bare"), spec: undefined, status: undefined });
  const html = await htmlOf(stateOf([bare, held]));
  assert.match(html, /<dd ?>none<\/dd>/);
  assert.match(html, /<dd class="unknown">unknown<\/dd>/);
  assert.match(html, /id="group:database-ns\/orders"/);
});

Deno.test("an empty page says that there is nothing, and what the replica cannot see", async () => {
  const problems = ["This replica has not seen the cluster yet"];
  const html = await htmlOf({ ...stateOf([]), problems });
  assert.match(html, /There is no group\./);
  assert.match(html, /<li>This replica has not seen the cluster yet<\/li>/);
});

Deno.test("what others wrote is text and never a part of the page", async () => {
  const evil = `<script>alert(1)</script>"'><img src=x>`;
  const group = {
    ...pageGroup([leaseOf(migration({ operationId: evil, instance: evil, serviceAccount: evil }))]),
    activeSite: evil,
    why: evil,
    closedReason: evil,
    problems: [evil],
    sites: [{
      name: evil,
      active: true,
      state: evil,
      replicating: null,
      lagSeconds: null,
      trouble: evil,
    }],
  };
  const happened = [{ kind: "granted", group: evil, text: evil } as const];
  const html = await htmlOf({
    ...stateOf([group]),
    changes: addChanges([], happened, 0),
    problems: [evil],
  });
  assert.doesNotMatch(html, /<script>|<img/);
  assert.equal(html.match(/<script /g)?.length, 1);
  for (const placed of [...placeParts(group), ...placeLeases(group)]) {
    assert.doesNotMatch(renderPart(placed, () => NOW), /<script|<img/);
  }
});

Deno.test("a part is drawn by itself as it is in the whole page", async () => {
  const html = await htmlOf(stateOf([held]));
  for (const placed of placeParts(held)) {
    assert.ok(html.includes(renderPart(placed, () => NOW)), placed.id);
  }
});

Deno.test("a browser may run the page's own script, use its style and talk to its server, and nothing else", async () => {
  const { headers } = await appOf(stateOf([])).request("/");
  const policy = headers.get("Content-Security-Policy") ?? "";
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /);
  assert.doesNotMatch(policy, /unsafe|nonce|\*|https?:/);
  for (const rule of ["frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]) {
    assert.ok(policy.includes(rule), rule);
  }
  assert.equal(headers.get("Cache-Control"), "no-store");
  assert.equal(headers.get("X-Content-Type-Options"), "nosniff");
  const html = await htmlOf(stateOf([held]));
  assert.doesNotMatch(html, / style=| on[a-z]+=|<style|src="http|href="http|src="\/\//);
});

Deno.test("everything that the page loads is there, with its type, and is not sent twice", async () => {
  const app = appOf(stateOf([held]));
  const html = await (await app.request("/")).text();
  const loaded = [...html.matchAll(/<(?:link|script)[^>]* (?:href|src)="([^"]+)"/g)].map((
    [, path],
  ) => path);
  const script = await (await app.request("/page/page.js")).text();
  const imported = [...script.matchAll(/ from "\.\/([^"]+)"/g)].map(([, name]) => `page/${name}`);
  const types: Record<string, RegExp> = {
    "page/icon.svg": /^image\/svg/,
    "page/page.css": /^text\/css/,
    "page/page.js": /^text\/javascript/,
    "page/rules.js": /^text\/javascript/,
  };
  assert.deepEqual([...loaded, ...imported].toSorted(), Object.keys(types));
  for (const [path, type] of Object.entries(types)) {
    const first = await app.request(`/${path}`);
    assert.equal(first.status, 200);
    assert.match(first.headers.get("Content-Type") ?? "", type);
    assert.notEqual(await first.text(), "");
    const tag = first.headers.get("ETag") ?? "";
    const again = await app.request(`/${path}`, { headers: { "If-None-Match": tag } });
    assert.deepEqual([again.status, await again.text()], [304, ""]);
  }
  assert.equal((await app.request("/page/other.js")).status, 404);
  assert.equal((await app.request("/", { method: "POST" })).status, 404);
});

Deno.test("the query of a page's WebSocket says what the page has, and anything else says nothing", () => {
  assert.deepEqual(knownPage("/ws/page?has=ab12.7.3"), { epoch: "ab12", sequence: 7, change: 3 });
  assert.deepEqual(knownPage("/ws/page?x=1&has=ab12.7.3&y=2")?.sequence, 7);
  for (
    const target of [
      "/ws/page",
      "/ws/page?has=",
      "/ws/page?has=ab.1",
      "/ws/page?has=ab.-1.2",
      "/ws/page?has=ab.1.2.3",
      "/ws/page?has=ab.99999999999999999999.1",
      "/ws/page?has=%00.1.2",
      "/ws/page?had=ab.1.2",
    ]
  ) {
    assert.equal(knownPage(target), null, target);
  }
  fc.assert(fc.property(fc.string(), (text) => {
    knownPage(`/ws/page?${text}`);
  }));
});

Deno.test("the browser writes spans of time as the server does", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 40 * 86_400 }), (seconds) => {
    assert.equal(browserSpan(seconds * 1_000 + 999), span(seconds));
  }));
  assert.equal(browserSpan(-5_000), "0s");
});

/** A group as the browser chooses and sorts it. */
function facts(key: string, more: Partial<Parameters<typeof isWanted>[0]> = {}) {
  return { key, attention: "quiet", expires: Infinity, lag: 0, words: key, ...more };
}

Deno.test("the reader chooses groups by words and by what is about them", () => {
  const closed = facts("database/a", { attention: "closed" });
  const busy = facts("database/b", { attention: "busy", expires: 5 });
  const quiet = facts("database/c", { words: "database/c pdx read-only" });
  const chosen = (find: string, show: string) =>
    [closed, busy, quiet].filter((one) => isWanted(one, { find, show })).map(({ key }) =>
      key.at(-1)
    );
  assert.deepEqual(chosen("", "all"), ["a", "b", "c"]);
  assert.deepEqual(chosen("", "closed"), ["a"]);
  assert.deepEqual(chosen("", "busy"), ["a", "b"]);
  assert.deepEqual(chosen("", "held"), ["b"]);
  assert.deepEqual(chosen("READ-only  pdx", "all"), ["c"]);
  assert.deepEqual(chosen("nothing", "all"), []);
});

Deno.test("groups are sorted by what their reader wants, and by name where that is equal", () => {
  const groups = [
    facts("x/b", { lag: 3, expires: 9 }),
    facts("x/a10", { attention: "held", expires: 4 }),
    facts("x/a9", { attention: "busy", lag: 7 }),
    facts("x/z", { attention: "closed", lag: -1 }),
  ];
  const sorted = (sort: string) => groups.toSorted(byWish(sort)).map(({ key }) => key);
  assert.deepEqual(sorted("attention"), ["x/z", "x/a9", "x/a10", "x/b"]);
  assert.deepEqual(sorted("name"), ["x/a9", "x/a10", "x/b", "x/z"]);
  assert.deepEqual(sorted("expiry"), ["x/a10", "x/b", "x/a9", "x/z"]);
  assert.deepEqual(sorted("lag"), ["x/a9", "x/b", "x/a10", "x/z"]);
  assert.deepEqual(sorted("something else"), sorted("name"));
});

Deno.test("a page tries again soon, then less often, and never all at once", () => {
  fc.assert(fc.property(
    fc.integer({ min: 0, max: 10_000 }),
    fc.double({ min: 0, max: 1, noNaN: true }),
    (failures, chance) => {
      const pause = pauseAfter(failures, chance);
      assert.ok(pause >= 250 && pause <= 10_000);
      assert.ok(pauseAfter(failures + 1, chance) >= pause);
    },
  ));
  assert.ok(pauseAfter(0, 0) < pauseAfter(0, 1));
});

Deno.test("many changes are said in few words", () => {
  assert.equal(newsInWords([]), "");
  assert.equal(newsInWords(["one"]), "one");
  assert.equal(newsInWords(["one", "two"]), "one. two");
  assert.equal(newsInWords(["one", "two", "three"]), "3 changes. Last: three");
});
