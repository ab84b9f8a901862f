/**
 * A client of the cluster in memory.
 *
 * @module
 */

import type { KubeApi } from "../kube/api.ts";
import { staticToken } from "../kube/credentials.ts";
import { HttpApi } from "../kube/http_api.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { FakeCluster } from "./fake_cluster.ts";

/** What {@linkcode connectTo} takes. */
export interface FakeClientOptions {
  /** Counts the limits of calls: that of the caller. */
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** Who calls. @default {the administrator} */
  readonly token?: string;
  /** The namespace of the credentials. @default {"default"} */
  readonly namespace?: string;
}

/**
 * Makes a client of a cluster in memory: the one of production, without sockets.
 *
 * ```ts
 * import { LEASES } from "@holdfast/holdfast/kube";
 * import { FakeCluster, seededEntropy, TestClock } from "@holdfast/holdfast/testing";
 *
 * const parts = { clock: new TestClock(), entropy: seededEntropy(1) };
 * await using fake = new FakeCluster(parts);
 * const api = connectTo(fake, parts);
 * const signal = new AbortController().signal;
 * const { items } = await api.list(LEASES, { namespace: "default", signal });
 * ```
 */
export function connectTo(fake: FakeCluster, options: FakeClientOptions): KubeApi {
  const { clock, entropy, token = fake.adminToken, namespace = "default" } = options;
  return new HttpApi({
    baseUrl: "https://fake",
    fetch: fake.fetch,
    credentials: staticToken(token),
    defaultNamespace: namespace,
    clock,
    entropy,
  });
}
