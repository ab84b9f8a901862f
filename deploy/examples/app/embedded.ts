/**
 * The example without a cluster: two replicas in this process, on an API server in memory.
 *
 * @module
 */

import { CONFIG_MAPS } from "@holdfast/holdfast/kube";
import { connectTo, FakeCluster } from "@holdfast/holdfast/testing";
import type { HostSystem } from "@holdfast/holdfast";
import { createExample } from "./app.ts";
import { SETTINGS_KEY, SETTINGS_MAP } from "./settings.ts";

/** What {@linkcode createEmbedded} takes. */
export interface EmbeddedOptions {
  readonly system: HostSystem;
  /** The port of the first replica; 0 takes any free ones; `null` listens nowhere. */
  readonly port: number | null;
  /** @default {100} */
  readonly items?: number;
}

/** Makes the cluster and two replicas in it. Nothing starts. */
export function createEmbedded({ system, port, items }: EmbeddedOptions) {
  const { clock, entropy } = system;
  const cluster = new FakeCluster({ clock, entropy });
  const setSettings = (settings: unknown) => {
    const metadata = { name: SETTINGS_MAP, namespace: "default" };
    const data = { [SETTINGS_KEY]: JSON.stringify(settings) };
    cluster.seed(CONFIG_MAPS, { metadata, data });
  };
  setSettings({ greeting: "hello from the ConfigMap", pauseMs: 100 });
  const replicas = ["example-a", "example-b"].map((name, index) =>
    createExample({
      system,
      items,
      listen: port === null ? null : { host: "127.0.0.1", port: port === 0 ? 0 : port + index },
      cluster: {
        api: connectTo(cluster, { clock, entropy }),
        podInfo: { name, namespace: "default", labels: {}, inCluster: true },
      },
    })
  );
  return { cluster, replicas, setSettings };
}
