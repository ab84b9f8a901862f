/**
 * A place for the commands that look at a cluster or at the API: the service and its leader on a test clock, and the same
 * cluster and API behind HTTPS, as a command reaches them.
 *
 * @module
 */

import type { StopSignal } from "../../../handlers/commands/system.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../../lib/group/types.ts";
import { LEASES } from "../../../lib/kube/resources.ts";
import { encodeRecord } from "../../../lib/records/record.ts";
import { leaseObject } from "../../../lib/records/lease_object.ts";
import { holdName, slotName } from "../../../lib/records/names.ts";
import type { LeaseRecord } from "../../../lib/records/record.ts";
import { listenHttps } from "../../../lib/testing/https_server.ts";
import { type Authority, createAuthority } from "../../../lib/testing/mod.ts";
import { kubeconfig } from "../../cluster/access.ts";
import { Rig } from "../../controllers/rig.ts";
import { NAMESPACE } from "../../service/in_process.ts";
import { migration } from "../../status/fixtures.ts";
import { type FakeMachine, type FakeSystem, fakeSystem } from "./fake_system.ts";

/** Where the machine's files are. */
const FILES = { kubeconfig: "/kubeconfig", ca: "/ca.crt", token: "/token" };

/** A machine whose user can press Ctrl+C. */
export interface InterruptibleSystem extends FakeSystem {
  /** Sends a signal to the command. */
  signal(name: StopSignal): void;
  /** How many handlers of signals are there. */
  readonly handlers: number;
}

/** The place. */
export class CommandRig implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;

  private constructor(
    readonly rig: Rig,
    readonly authority: Authority,
    readonly clusterUrl: string,
    readonly serviceUrl: string,
    stack: AsyncDisposableStack,
  ) {
    this.#stack = stack;
  }

  /** Opens it. Nobody leads until `rig.start()`. */
  static async open(rig = new Rig()): Promise<CommandRig> {
    await using stack = new AsyncDisposableStack();
    stack.use(rig);
    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    const { certPem: cert, keyPem: key } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
    const { url } = await rig.service.fake.listen({ cert, key });
    const service = await listenHttps(
      ({ url, method, headers }) => rig.service.send(url, { method, headers }),
      { cert, key },
    );
    stack.defer(() => service.close());
    return new CommandRig(rig, authority, url, service.url, stack.move());
  }

  get fake() {
    return this.rig.service.fake;
  }

  /** The machine of an administrator. @param token Whose. @default {the one who may do everything} */
  administrator(machine: FakeMachine = {}, token = this.fake.adminToken): InterruptibleSystem {
    const text = kubeconfig(this.clusterUrl, this.authority.caPem, { token }, NAMESPACE);
    return this.#system({
      ...machine,
      env: { KUBECONFIG: FILES.kubeconfig, ...machine.env },
      files: { [FILES.kubeconfig]: text, ...machine.files },
    });
  }

  /** The machine of a deployment. */
  caller(machine: FakeMachine = {}, serviceAccount = "deployer"): InterruptibleSystem {
    const namespace = "app-ns";
    const audiences = ["bloodraven-deploy"];
    const token = this.fake.tokenFor({ namespace, serviceAccount, audiences });
    return this.#system({
      ...machine,
      env: {
        HOLDFAST_URL: this.serviceUrl,
        HOLDFAST_CA_FILE: FILES.ca,
        HOLDFAST_TOKEN_FILE: FILES.token,
        HOLDFAST_GROUP: "orders",
        ...machine.env,
      },
      files: { [FILES.ca]: this.authority.caPem, [FILES.token]: token, ...machine.files },
    });
  }

  /** Runs work that waits on the test clock and on sockets: time goes on until it is done. */
  async whileTimePasses<T>(work: Promise<T>, stepMs = 50): Promise<T> {
    let over = false;
    const done = work.finally(() => over = true);
    while (!over) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      await this.rig.service.clock.advance(stepMs);
    }
    return await done;
  }

  /** Waits until something is so, while time passes. */
  async until(what: () => boolean): Promise<void> {
    await this.whileTimePasses((async () => {
      const endMs = performance.now() + 10_000;
      while (!what()) {
        if (performance.now() > endMs) throw new Error("Cannot go on as it did not come about");
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    })());
  }

  /** Stores a lease as the service would have granted it. */
  seedLease(change: Partial<LeaseRecord>): void {
    const { uid = "" } = this.group.metadata;
    const record = migration({ ...change });
    const name = record.kind === "migration"
      ? slotName("orders")
      : holdName("orders", record.operationId);
    const group = { name: "orders", uid };
    const nowMs = this.rig.service.clock.wall();
    this.fake.seed(LEASES, leaseObject({ name, namespace: NAMESPACE, group, record, nowMs }));
  }

  /** The group as it is stored. */
  get group(): MysqlFailoverGroup {
    const found = this.fake.read(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "orders" });
    if (found === null) throw new Error("Cannot find the group: it is gone");
    return found;
  }

  /** The states of all leases, by what they are. */
  states(): Record<string, string> {
    return Object.fromEntries(
      this.fake.readAll(LEASES, NAMESPACE).flatMap(({ metadata }) => {
        const text = metadata.annotations?.["bloodraven.shipstream.io/deployment-lease"];
        if (text === undefined) return [];
        const { kind, operationId, state } = JSON.parse(text);
        return [[
          `${kind} ${operationId} ${metadata.name === slotName("orders") ? "slot" : ""}`.trim(),
          state,
        ]];
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #system(machine: FakeMachine): InterruptibleSystem {
    const handlers = new Map<() => void, StopSignal>();
    return Object.assign(fakeSystem(machine), {
      clock: this.rig.service.clock,
      onSignal(name: StopSignal, handler: () => void) {
        handlers.set(handler, name);
        return () => void handlers.delete(handler);
      },
      signal(wanted: StopSignal) {
        for (const [handler, name] of [...handlers]) if (name === wanted) handler();
      },
      get handlers() {
        return handlers.size;
      },
    });
  }
}

/** The text of a record that is none. */
export const BROKEN_RECORD = encodeRecord(migration()).replace("expiresAt", "endsAt");
