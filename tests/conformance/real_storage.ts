/**
 * The service of a test, without sockets, over the storage of a real API server: time stays in the hand of the test.
 *
 * @module
 */

import type { SendRequest } from "../../lib/kube/exchange.ts";
import { TestClock } from "../../lib/testing/mod.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { DeploymentClient } from "../service/deployment_client.ts";
import { AUDIENCE, InProcessService } from "../service/in_process.ts";
import { seedOrders } from "../service/orders.ts";

/** Where the requests of {@linkcode InProcessService} go. */
const FAKE_URL = "https://fake";
/** Seconds: a test that moves its clock on by a day must not outlive its token. */
const TOKEN_SECONDS = 3 * 24 * 3600;

/** A group on a real API server. */
export interface RealGroup {
  readonly cluster: Cluster;
  /** The namespace of the group, its databases and its callers. */
  readonly namespace: string;
  readonly clock: TestClock;
}

/** Makes a namespace with the group `orders`, its databases, and the account `deployer`. */
export async function openRealGroup(cluster: Cluster, name: string): Promise<RealGroup> {
  const namespace = `${name}-${crypto.randomUUID().slice(0, 8)}`;
  await cluster.createNamespace(namespace);
  await cluster.createServiceAccount(namespace, "deployer");
  const clients = [{ namespace, serviceAccount: "deployer" }];
  await seedOrders(cluster.adminApi, {
    namespace,
    databases: { tenant: clients, billing: clients },
    signal: new AbortController().signal,
  });
  return { cluster, namespace, clock: new TestClock(Date.now()) };
}

/** A service of its own over a group: several of them are several leaders. */
export function serviceOver(
  { cluster, clock }: RealGroup,
  { seed = 1, wrap = (send: SendRequest) => send } = {},
): InProcessService {
  const toCluster: SendRequest = (request) => {
    const copy = new Request(request.url.replace(FAKE_URL, cluster.url), request);
    // The administrator's certificate says who calls; the token is one of the fake.
    copy.headers.delete("authorization");
    return cluster.adminCaller.send(copy);
  };
  return new InProcessService({ clock, seed, send: () => wrap(toCluster) });
}

/** A client of a service, with a token of the API server. */
export async function clientOf(
  service: InProcessService,
  { cluster, namespace }: RealGroup,
): Promise<DeploymentClient> {
  const token = await cluster.token({
    namespace,
    serviceAccount: "deployer",
    audiences: [AUDIENCE],
    expirationSeconds: TOKEN_SECONDS,
  });
  return new DeploymentClient({
    url: "https://service",
    token,
    // Each namespace has a group of this name: a caller is authorized in its own alone.
    group: "orders",
    send: service.send,
  });
}
