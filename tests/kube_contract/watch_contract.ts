/**
 * How an API server tells of changes, and what the product's client makes of it.
 *
 * @module
 */

import assert from "node:assert/strict";
import {
  type KubeObject,
  LEASES,
  type ObjectList,
  type Resource,
  type SendRequest,
  type WatchEvent,
} from "../../lib/kube/mod.ts";
import { pause } from "../cluster/keeper.ts";
import { member, type RawAnswer } from "../cluster/raw_client.ts";
import {
  type Assertion,
  createLease,
  group,
  GROUPS,
  MERGE,
  NEVER,
  type Scope,
  versionOf,
  withQuery,
} from "./scope.ts";

/** What an event says, in short: its type and the names that it is about. */
function brief<T extends KubeObject>(event: WatchEvent<T>): string {
  switch (event.type) {
    case "initial":
      return ["initial", ...listed(event.list)].join(" ");
    case "restarted":
      return ["restarted", event.reason, ...listed(event.list)].join(" ");
    case "failed":
      return `failed ${event.error.kind}`;
    default:
      return `${event.type} ${"metadata" in event.object ? event.object.metadata.name : "?"}`;
  }
}

function listed<T extends KubeObject>(list: ObjectList<T>): string[] {
  return list.items.map(({ metadata }) => metadata.name);
}

/** Runs a watch that `body` pulls from; the watch ends with it. */
async function watching(
  scope: Scope,
  resource: Resource,
  options: { readonly labelSelector?: string; readonly fieldSelector?: string },
  send: SendRequest,
  body: (next: () => Promise<string>) => Promise<void>,
): Promise<void> {
  const ending = new AbortController();
  const watch = scope.admin.api({ send }).watch(resource, {
    namespace: scope.namespace,
    signal: ending.signal,
    ...options,
  });
  const events = watch[Symbol.asyncIterator]();
  const next = async () => {
    const { done, value } = await events.next();
    return done ? "end" : brief(value);
  };
  try {
    await body(next);
  } finally {
    ending.abort();
    await events.return?.();
  }
}

/** The watches that a client starts, in a hand that can break them. */
interface Tampered {
  readonly send: SendRequest;
  /** The version from which each watch was asked for. */
  readonly starts: readonly string[];
  /** Ends the running watch, as a proxy would that closes idle connections. */
  cut(): void;
}

/** @param change Changes the query of a watch, after the client made it. */
function tamper(
  send: SendRequest,
  change: (query: URLSearchParams, start: number) => void = () => {},
): Tampered {
  const starts: string[] = [];
  let end: () => void = () => {};
  return {
    starts,
    cut: () => end(),
    async send(request) {
      const url = new URL(request.url);
      if (!url.searchParams.has("watch")) return await send(request);
      starts.push(url.searchParams.get("resourceVersion") ?? "");
      change(url.searchParams, starts.length);
      const stopping = new AbortController();
      const signal = AbortSignal.any([request.signal, stopping.signal]);
      const response = await send(new Request(url, { headers: request.headers, signal }));
      if (response.body === null) return response;
      const body = response.body.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          start(controller) {
            end = () => {
              controller.terminate();
              stopping.abort();
            };
          },
        }),
      );
      return new Response(body, response);
    },
  };
}

/** The lines of a watch, decoded, until the server ends it. `meanwhile` runs once the watch has started. */
async function watchLines(
  { admin }: Scope,
  path: string,
  query: Readonly<Record<string, string>>,
  meanwhile: () => Promise<unknown> = () => Promise.resolve(),
): Promise<unknown[]> {
  const response = await admin.open(withQuery(path, { watch: "true", ...query }), NEVER);
  assert.equal(response.status, 200);
  assert.match(response.headers.get("date") ?? "", / GMT$/);
  const [text] = await Promise.all([response.text(), meanwhile()]);
  return text.split("\n").filter((line) => line !== "").map((line): unknown => JSON.parse(line));
}

function briefLine(line: unknown): string {
  return `${member(line, "type")} ${member(line, "object", "metadata", "name") ?? ""}`.trimEnd();
}

/** Facts of watching. */
export const WATCHES: readonly Assertion[] = [
  {
    name: "a watch tells the state first and then each change in its order",
    async check(scope) {
      await createLease(scope, "a");
      await watching(scope, LEASES, {}, scope.admin.send, async (next) => {
        assert.equal(await next(), "initial a");
        await createLease(scope, "b");
        assert.equal(await next(), "added b");
        await scope.raw("PATCH", `${scope.leases}/a`, {
          body: { spec: { leaseDurationSeconds: 99 } },
          contentType: MERGE,
        });
        assert.equal(await next(), "modified a");
        await scope.raw("DELETE", `${scope.leases}/b`);
        assert.equal(await next(), "deleted b");
      });
    },
  },
  {
    name:
      "a watch by label tells of an object that comes to match as added, and of one that stops as deleted",
    async check(scope) {
      await createLease(scope, "a", { labels: { state: "active" } });
      await createLease(scope, "b");
      const label = (name: string, state: string | null) =>
        scope.raw("PATCH", `${scope.leases}/${name}`, {
          body: { metadata: { labels: { state } } },
          contentType: MERGE,
        });
      await watching(
        scope,
        LEASES,
        { labelSelector: "state=active" },
        scope.admin.send,
        async (next) => {
          assert.equal(await next(), "initial a");
          await label("a", "expired");
          assert.equal(await next(), "deleted a");
          await label("b", "active");
          assert.equal(await next(), "added b");
          await createLease(scope, "c");
          await label("b", null);
          assert.equal(await next(), "deleted b");
        },
      );
    },
  },
  {
    name: "a watch by name tells of that name alone",
    async check(scope) {
      await watching(
        scope,
        LEASES,
        { fieldSelector: "metadata.name=mine" },
        scope.admin.send,
        async (next) => {
          assert.equal(await next(), "initial");
          await createLease(scope, "other");
          await createLease(scope, "mine");
          assert.equal(await next(), "added mine");
        },
      );
    },
  },
  {
    name: "a watch that broke goes on where it was, and misses nothing",
    async check(scope) {
      await createLease(scope, "a");
      const line = tamper(scope.admin.send);
      await watching(scope, LEASES, {}, line.send, async (next) => {
        assert.equal(await next(), "initial a");
        const pending = next();
        const created = await createLease(scope, "b");
        assert.equal(await pending, "added b");
        line.cut();
        await createLease(scope, "c");
        await scope.raw("DELETE", `${scope.leases}/a`);
        assert.equal(await next(), "added c");
        assert.equal(await next(), "deleted a");
        assert.deepEqual(line.starts.slice(1), [versionOf(created)]);
      });
    },
  },
  {
    name: "a watch from a version that the server does not keep any more lists anew and says so",
    async check(scope) {
      const line = tamper(scope.admin.send, (query, start) => {
        if (start === 2) query.set("resourceVersion", "1");
      });
      await watching(scope, GROUPS, {}, line.send, async (next) => {
        assert.equal(await next(), "initial");
        const pending = next();
        await scope.raw("POST", scope.groups, { body: group("orders") });
        assert.equal(await pending, "added orders");
        line.cut();
        await scope.raw("POST", scope.groups, { body: group("billing") });
        scope.forgetFirstVersions();
        assert.equal(await next(), "restarted gone billing orders");
        const later = next();
        await scope.raw("DELETE", `${scope.groups}/billing`);
        assert.equal(await later, "deleted billing");
      });
    },
  },
  {
    name: "a watch that nothing happens on is told how far it is, and goes on from there",
    async check(scope) {
      const quiet = { fieldSelector: "metadata.name=mine", timeoutSeconds: "4" };
      const line = tamper(scope.admin.send, (query) => query.set("timeoutSeconds", "4"));
      await watching(
        scope,
        LEASES,
        { fieldSelector: quiet.fieldSelector },
        line.send,
        async (next) => {
          assert.equal(await next(), "initial");
          const list = await scope.raw("GET", scope.leases);
          const pending = next();
          const others: RawAnswer[] = [];
          const lines = await watchLines(scope, scope.leases, {
            ...quiet,
            allowWatchBookmarks: "true",
            resourceVersion: versionOf(list),
          }, async () => others.push(await createLease(scope, "other")));
          const [other] = others;
          assert(other !== undefined);
          const bookmark = lines.at(-1);
          assert(lines.length > 0 && lines.every((each) => member(each, "type") === "BOOKMARK"));
          assert.equal(member(bookmark, "object", "kind"), "Lease");
          assert.equal(member(bookmark, "object", "apiVersion"), "coordination.k8s.io/v1");
          const version = member(bookmark, "object", "metadata", "resourceVersion");
          assert(BigInt(String(version)) >= BigInt(versionOf(other)));

          while (line.starts.length < 2) await pause(20);
          assert(BigInt(line.starts[1] ?? "") >= BigInt(versionOf(other)));
          await createLease(scope, "mine");
          assert.equal(await pending, "added mine");
        },
      );
    },
  },
  {
    name: "a watch without a version begins with what is there, and ends when its time is over",
    async check(scope) {
      await createLease(scope, "a");
      const lines = await watchLines(
        scope,
        scope.leases,
        { timeoutSeconds: "1" },
        () => createLease(scope, "b"),
      );
      assert.deepEqual(lines.map(briefLine), ["ADDED a", "ADDED b"]);
    },
  },
  {
    name: "a watch from a version tells what came after it and nothing else",
    async check(scope) {
      await createLease(scope, "a");
      const second = await createLease(scope, "b");
      await createLease(scope, "c");
      await scope.raw("DELETE", `${scope.leases}/a`);
      const lines = await watchLines(scope, scope.leases, {
        timeoutSeconds: "1",
        resourceVersion: versionOf(second),
      });
      assert.deepEqual(lines.map(briefLine), ["ADDED c", "DELETED a"]);
      const [added, deleted] = lines.map((each) =>
        BigInt(String(member(each, "object", "metadata", "resourceVersion")))
      );
      assert(added !== undefined && deleted !== undefined && deleted > added);
    },
  },
  {
    name: "a watch from a version that is still to come is silent, and no error",
    async check(scope) {
      const list = await scope.raw("GET", scope.leases);
      const lines = await watchLines(scope, scope.leases, {
        timeoutSeconds: "1",
        resourceVersion: String(BigInt(versionOf(list)) + 1_000_000n),
      }, () => createLease(scope, "a"));
      assert.deepEqual(lines, []);
    },
  },
  {
    name: "a watch from too old a version is answered with one error, and ends",
    async check(scope) {
      scope.forgetFirstVersions();
      const lines = await watchLines(scope, scope.groups, {
        resourceVersion: "1",
        timeoutSeconds: "5",
      });
      assert.equal(lines.length, 1);
      assert.equal(member(lines[0], "type"), "ERROR");
      assert.equal(member(lines[0], "object", "kind"), "Status");
      assert.equal(member(lines[0], "object", "code"), 410);
      assert.equal(member(lines[0], "object", "reason"), "Expired");
    },
  },
];
