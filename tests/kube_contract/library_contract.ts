/**
 * What the library's own parts make of an API server: the Lease of an election, ConfigMaps that are followed, Events, and a
 * watch that is not allowed.
 *
 * @module
 */

import assert from "node:assert/strict";
import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { LeaseStore } from "../../lib/election/lease_store.ts";
import {
  AlreadyExistsError,
  CONFIG_MAPS,
  ConflictError,
  EVENTS,
  ForbiddenError,
  LEASES,
  NotFoundError,
} from "../../lib/kube/mod.ts";
import { watchConfigMaps } from "../../lib/plugin/config_map_watch.ts";
import { ConfigMapStore } from "../../lib/plugin/config_maps.ts";
import { PluginMetrics } from "../../lib/plugin/metrics.ts";
import { createPodEvents } from "../../lib/plugin/pod_events.ts";
import { silentLogger } from "../../lib/runtime/log.ts";
import { createServiceAccount, requestToken } from "../cluster/access.ts";
import { eventually } from "../host/support.ts";
import { type Assertion, NEVER, type Scope } from "./scope.ts";

const call = { signal: NEVER };

/** What an election writes. */
const spec = {
  holder: "me",
  durationMs: 15_000,
  acquiredMicros: 1_767_225_600_000_001,
  renewedMicros: 1_767_225_600_000_002,
  transitions: 0,
};

/** Somebody who may do nothing in the namespace. */
async function stranger(scope: Scope) {
  const subject = { namespace: scope.namespace, serviceAccount: "stranger" };
  await createServiceAccount(scope.raw, subject.namespace, subject.serviceAccount);
  return scope.caller(await requestToken(scope.raw, subject)).api();
}

/** Facts of the library. */
export const LIBRARY: readonly Assertion[] = [
  {
    name:
      "library: the Lease of an election is created once, written under what was seen, and never created by a renewal",
    async check({ api, namespace }) {
      const store = new LeaseStore(api, namespace, "app");
      assert.equal(await store.read(call), null);
      const created = await store.create(spec, call);
      assert.deepEqual([created.holder, created.acquiredMicros], ["me", spec.acquiredMicros]);
      await assert.rejects(store.create(spec, call), AlreadyExistsError);
      const name = { name: "app", namespace };
      const labels = { metadata: { labels: { team: "a" }, annotations: { note: "b" } } };
      await api.patch(LEASES, name, { type: "merge", body: labels }, call);
      await assert.rejects(store.write(spec, created, call), ConflictError);
      const seen = await store.read(call);
      assert.ok(seen);
      const written = await store.write({ ...spec, holder: "", transitions: 1 }, seen, call);
      assert.deepEqual([written.holder, written.transitions], ["", 1]);
      const stored = await api.get(LEASES, name, call);
      assert.deepEqual(
        [stored.metadata.labels, stored.metadata.annotations],
        [{ team: "a" }, { note: "b" }],
      );
      const { uid, resourceVersion } = stored.metadata;
      await api.delete(LEASES, name, { uid, resourceVersion }, call);
      await assert.rejects(store.write(spec, written, call), NotFoundError);
      assert.equal(await store.read(call), null);
    },
  },
  {
    name:
      "library: a ConfigMap that is followed is missing, created, updated and deleted, and another one is not seen",
    async check({ api, namespace }) {
      const stop = new AbortController();
      const store = new ConfigMapStore(["settings"]);
      const metrics = new PluginMetrics();
      const { signal } = stop;
      const parts = { api, namespace, store, metrics, signal };
      const watching = watchConfigMaps({ ...parts, clock: systemClock, logger: silentLogger });
      try {
        await eventually(() => store.isSynced("settings"), "it is known to be missing");
        assert.equal(store.get("settings"), undefined);
        const create = (name: string) =>
          api.create(CONFIG_MAPS, { metadata: { name, namespace }, data: { a: "1" } }, call);
        await create("other");
        await create("settings");
        await eventually(() => store.value("settings", "a") === "1", "it is created");
        const name = { name: "settings", namespace };
        const body = { data: { a: "2" } };
        const { metadata: { uid, resourceVersion } } = await api.patch(
          CONFIG_MAPS,
          name,
          { type: "merge", body },
          call,
        );
        await eventually(() => store.value("settings", "a") === "2", "it is updated");
        await api.delete(CONFIG_MAPS, name, { uid, resourceVersion }, call);
        await eventually(() => store.get("settings") === undefined, "it is deleted");
        assert.deepEqual(store.names, ["settings"]);
      } finally {
        stop.abort();
        await watching;
      }
      assert.equal(store.get("other"), undefined);
    },
  },
  {
    name: "library: an Event on a pod is written, and its repeat is counted in it",
    async check({ api, namespace }) {
      const metrics = new PluginMetrics();
      const events = createPodEvents({
        api,
        clock: systemClock,
        entropy: systemEntropy,
        logger: silentLogger,
        figures: metrics.events,
        namespace,
        podInfo: { name: "web-1", uid: "u-1", labels: {}, inCluster: true },
      });
      assert.ok(events);
      events.started("custom");
      events.started("custom");
      await events.stopping();
      const { items } = await api.list(EVENTS, { namespace, ...call });
      const [started, stopping] = items.toSorted((a, b) =>
        (a.reason ?? "") < (b.reason ?? "") ? -1 : 1
      );
      assert.equal(items.length, 2);
      assert.deepEqual([started?.reason, stopping?.reason], ["Started", "Stopping"]);
      assert.equal(started?.reportingController, "autumn-plugin-kubernetes");
      assert.equal(started?.reportingInstance, "web-1");
      assert.equal(started?.regarding?.name, "web-1");
      assert.equal(started?.series?.count, 2);
      assert.equal(stopping?.series, undefined);
    },
  },
  {
    name:
      "library: a watch that is not allowed fails with Forbidden, more than once, and stays open",
    async check(scope) {
      const api = await stranger(scope);
      const stop = new AbortController();
      const watch = api.watch(CONFIG_MAPS, {
        namespace: scope.namespace,
        fieldSelector: "metadata.name=settings",
        signal: stop.signal,
      });
      const verbs: string[] = [];
      for await (const event of watch) {
        assert.ok(event.type === "failed" && event.error instanceof ForbiddenError);
        verbs.push(/add the verb "(\w+)" on "configmaps"/.exec(event.error.message)?.[1] ?? "");
        // It ends when it is told to, and by nothing else.
        if (verbs.length === 2) stop.abort();
      }
      assert.deepEqual(verbs, ["list", "list"]);
    },
  },
];
