/**
 * Calls of the API server as bare as `fetch` allows: what any implementation would have to pay.
 *
 * @module
 */

import { z } from "zod";
import { gateName, slotName } from "../../lib/records/names.ts";
import type { Cluster } from "../cluster/cluster.ts";

const object = z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string() }) });

/** Where the calls go. */
export interface BareTarget {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly group: string;
  /** The one database of the group that names the caller. */
  readonly database: string;
  /** The token of the service's own account, so that the server does the same work for both. */
  readonly token: string;
}

/** The calls of one user on one keep-alive client. */
export class BareCalls implements Disposable {
  readonly #target: BareTarget;
  readonly #client: Deno.HttpClient;

  constructor(target: BareTarget) {
    this.#target = target;
    this.#client = Deno.createHttpClient({ caCerts: [target.cluster.caPem], http2: false });
  }

  /** The three rounds that a renewal needs: design 9. The object is written with a new time. */
  async renewalRounds(): Promise<void> {
    const { namespace, group, database } = this.#target;
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const groupPath = this.#groupPath();
    const gate = `${leases}/${gateName(group)}`;
    const slot = `${leases}/${slotName(group)}`;
    const [, , , lease] = await Promise.all([
      this.#get(`/apis/shipstream.io/v1alpha1/namespaces/${namespace}/mysqldatabases/${database}`),
      this.#get(groupPath),
      this.#get(gate),
      this.#get(slot),
    ]);
    await this.#put(slot, lease);
    await Promise.all([this.#get(gate), this.#get(groupPath)]);
  }

  /** What the reference does for a renewal, one call after the other: deploy-api 17.1. */
  async referenceRenewal(): Promise<void> {
    const { namespace, group } = this.#target;
    const slot = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${slotName(group)}`;
    await this.#get(this.#databases());
    await this.#get(this.#groupPath());
    await this.#get(this.#groupPath());
    await this.#put(slot, await this.#get(slot));
    await this.#get(this.#groupPath());
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }

  #databases(): string {
    return "/apis/shipstream.io/v1alpha1/mysqldatabases";
  }

  #groupPath(): string {
    const { namespace, group } = this.#target;
    return `/apis/shipstream.io/v1alpha1/namespaces/${namespace}/mysqlfailovergroups/${group}`;
  }

  async #get(path: string): Promise<unknown> {
    return await this.#call("GET", path);
  }

  async #put(path: string, read: unknown): Promise<void> {
    const lease = object.parse(read);
    const spec = {
      ...Object(lease.spec),
      renewTime: new Date().toISOString().replace("Z", "000Z"),
    };
    await this.#call("PUT", path, JSON.stringify({ ...lease, spec }));
  }

  async #call(method: string, path: string, body?: string): Promise<unknown> {
    const { cluster, token } = this.#target;
    const response = await fetch(`${cluster.url}${path}`, {
      method,
      body,
      client: this.#client,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    });
    const answer: unknown = await response.json();
    if (!response.ok) throw new Error(`Cannot go on as ${method} ${path} is ${response.status}`);
    return answer;
  }
}
