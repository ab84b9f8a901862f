/**
 * Replicas that store keyrings of one site at the same time, running the shipped code against one API server in memory.
 *
 * Between two calls a replica only computes, so whoever picks the next call chooses the interleaving. A create may also be
 * under way for long: its replica is told that the answer is lost, and it lands whenever it is picked.
 *
 * @module
 */

import { KEYRING_KEY, versionOf } from "../../lib/escrow/names.ts";
import { KEPT_VERSIONS, readPayload } from "../../lib/escrow/keyring.ts";
import { KeyringStore } from "../../lib/escrow/store.ts";
import type {
  DeletePreconditions,
  KubeApi,
  KubeObject,
  ObjectName,
  Resource,
} from "../../lib/kube/api.ts";
import type { CallOptions, WriteOptions } from "../../lib/kube/api.ts";
import { ApiDecorator } from "../../lib/kube/api_decorator.ts";
import { UnavailableError } from "../../lib/kube/errors.ts";
import { HttpApi, staticToken } from "../../lib/kube/mod.ts";
import { type Secret, SECRETS } from "../../lib/kube/resources.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { computed, ScheduledApi, Scheduler } from "../simulation/scheduler.ts";
import { keyringOf, NAMESPACE, SITE } from "./support.ts";

/** Who stores what. */
export interface Cast {
  /** For each replica the keyrings that it is sent, one after the other. */
  readonly replicas: readonly (readonly string[])[];
  /** How many versions are there from the start. @default {0} */
  readonly stored?: number;
  /** The numbers of calls of `create`, from 0, that are under way for long. @default {[]} */
  readonly late?: readonly number[];
  /** Changes the way of a replica, so that it breaks a rule. */
  readonly fault?: (api: KubeApi, replica: number) => KubeApi;
}

/** A version as it was when it landed. */
interface Landed {
  readonly uid: string;
  readonly keyring: string;
  readonly version: number;
}

const signal = new AbortController().signal;

/** A world that begins anew as often as it is asked. */
export class EscrowWorld {
  readonly #clock = new TestClock();
  readonly #cast: Cast;
  #fake = new FakeCluster({ clock: this.#clock, entropy: seededEntropy(1) });
  #scheduler = new Scheduler(() => {});
  #log: string[] = [];
  #creates = 0;
  #landed: Landed[] = [];
  #problem: string | null = null;
  readonly answers: { keyring: string; version: number; created: boolean }[] = [];
  readonly failures: string[] = [];

  constructor(cast: Cast) {
    this.#cast = cast;
  }

  get scheduler(): Scheduler {
    return this.#scheduler;
  }

  /** The versions that are stored, newest first. */
  get stored(): readonly { version: number; keyring: string; uid: string }[] {
    return this.#fake.readAll(SECRETS, NAMESPACE).flatMap(({ metadata, data }) => {
      const version = versionOf(SITE, metadata.name ?? "");
      const keyring = atob(data?.[KEYRING_KEY] ?? "");
      return version === null ? [] : [{ version, keyring, uid: metadata.uid ?? "" }];
    }).sort((a, b) => b.version - a.version);
  }

  async begin(): Promise<void> {
    this.#fake = new FakeCluster({
      clock: this.#clock,
      entropy: seededEntropy(1),
      namespaces: ["default", NAMESPACE],
    });
    this.#log = [];
    this.#creates = 0;
    this.#landed = [];
    this.#problem = null;
    this.answers.length = 0;
    this.failures.length = 0;
    const api = this.#http();
    const before = new KeyringStore({ api: this.#judged(api), ...ignored });
    for (let version = 1; version <= (this.#cast.stored ?? 0); version++) {
      await push(before, `old-${version}`);
    }
    this.#scheduler = new Scheduler((process, label, outcome) => {
      this.#log.push(`${process} ${label} ${summary(outcome)}`);
    });
    for (const [index, keyrings] of this.#cast.replicas.entries()) {
      const inner = new LateApi(this.#judged(api), () => this.#isLate(), this.#scheduler);
      const scheduled = new ScheduledApi(inner, this.#scheduler, `replica-${index}`);
      const way = this.#cast.fault?.(scheduled, index) ?? scheduled;
      void this.#run(new KeyringStore({ api: way, ...ignored }), keyrings);
    }
    await computed();
  }

  async step(choice: number, lost = false): Promise<string> {
    const call = this.#scheduler.choices[choice];
    if (call === undefined) throw new RangeError("Cannot step: there is no such choice");
    await this.#scheduler.step(call, lost);
    return call.label;
  }

  /** What is wrong now; `null` when nothing is. */
  violation(): string | null {
    if (this.#problem !== null) return this.#problem;
    const { stored } = this;
    for (const { keyring, version } of this.answers) {
      if (stored.some((one) => one.version === version && one.keyring === keyring)) continue;
      const at = this.#landed.findIndex((one) =>
        one.version === version && one.keyring === keyring
      );
      const later = new Set(this.#landed.slice(at + 1).map(({ uid }) => uid)).size;
      if (at < 0 || later < KEPT_VERSIONS) {
        return `keyring ${keyring} was told as v${version} and is gone`;
      }
    }
    const told = new Map<number, string>();
    for (const { version, keyring } of this.answers) {
      if ((told.get(version) ?? keyring) !== keyring) {
        return `v${version} was told for two keyrings`;
      }
      told.set(version, keyring);
    }
    return null;
  }

  key(): string {
    return JSON.stringify([this.#log.toSorted(), this.#scheduler.waiting, this.stored]);
  }

  #isLate(): boolean {
    return this.#cast.late?.includes(this.#creates++) ?? false;
  }

  /** The API server, which remembers what landed and judges what is removed. */
  #judged(api: KubeApi): KubeApi {
    return new JudgedApi(api, {
      landed: (one) => this.#landed.push(one),
      removing: (uid) => {
        const rank = this.stored.findIndex((one) => one.uid === uid);
        if (rank >= 0 && rank < KEPT_VERSIONS) {
          this.#problem = `the version of rank ${rank} was removed`;
        }
      },
    });
  }

  async #run(store: KeyringStore, keyrings: readonly string[]): Promise<void> {
    for (const keyring of keyrings) {
      try {
        const { version, created } = await push(store, keyring);
        this.answers.push({ keyring, version, created });
      } catch (error) {
        this.failures.push(String(error));
      }
    }
  }

  #http(): KubeApi {
    return new HttpApi({
      baseUrl: "https://fake",
      fetch: this.#fake.fetch,
      credentials: staticToken(this.#fake.adminToken),
      clock: this.#clock,
      entropy: seededEntropy(2),
      defaultNamespace: NAMESPACE,
    });
  }
}

const ignored = { onLeftBehind: () => {} };

async function push(store: KeyringStore, text: string) {
  const payload = readPayload(keyringOf(text), "");
  if (payload.type !== "ok") throw new TypeError("Cannot push what is no keyring");
  const { keyring, digest } = payload;
  const wish = { site: SITE, groupUid: "uid-1", keyring, digest };
  const stored = await store.store(wish, () => Promise.resolve(true), { signal });
  if (stored === null) throw new TypeError("Cannot go on as the group is another");
  return stored;
}

/** What an answer means to a replica: versions of objects and uids differ from run to run. */
function summary(outcome: unknown): string {
  if (typeof outcome === "string") return outcome;
  if (typeof outcome !== "object" || outcome === null) return "done";
  if ("items" in outcome && Array.isArray(outcome.items)) return outcome.items.map(contents).join();
  return contents(outcome);
}

function contents(object: unknown): string {
  const { metadata, data } = Object(object);
  return `${metadata?.name}=${data?.[KEYRING_KEY] ?? ""}`;
}

class JudgedApi extends ApiDecorator {
  readonly #judge: { landed: (one: Landed) => void; removing: (uid: string) => void };

  constructor(
    inner: KubeApi,
    judge: { landed: (one: Landed) => void; removing: (uid: string) => void },
  ) {
    super(inner);
    this.#judge = judge;
  }

  override async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ) {
    const created = await this.inner.create(resource, object, options);
    const { name = "", uid = "" } = created.metadata;
    const { data }: Secret = SECRETS.parse(created);
    const keyring = atob(data?.[KEYRING_KEY] ?? "");
    this.#judge.landed({ uid, keyring, version: versionOf(SITE, name) ?? 0 });
    return created;
  }

  override async delete<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    preconditions: DeletePreconditions,
    options: CallOptions,
  ) {
    this.#judge.removing(preconditions.uid);
    await this.inner.delete(resource, name, preconditions, options);
  }
}

/** A create that is late is told as lost at once, and waits to land like a process of its own. */
class LateApi extends ApiDecorator {
  readonly #isLate: () => boolean;
  readonly #scheduler: Scheduler;

  constructor(inner: KubeApi, isLate: () => boolean, scheduler: Scheduler) {
    super(inner);
    this.#isLate = isLate;
    this.#scheduler = scheduler;
  }

  override create<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions) {
    const perform = () => this.inner.create(resource, object, options);
    if (!this.#isLate()) return perform();
    const landing = this.#scheduler.wait("network", `lands ${object.metadata.name}`, perform);
    landing.catch(() => {});
    const call = { verb: "create", resource: "secrets", target: "" };
    return Promise.reject(new UnavailableError(call, { mayHaveLanded: true }));
  }
}
