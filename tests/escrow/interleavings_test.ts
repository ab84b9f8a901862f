/**
 * Keyrings that are stored by several replicas at once: whatever the order of their calls, whatever answer is lost, nothing
 * that was told as stored is lost, no two keyrings get one version, and none of the newest five is ever removed.
 *
 * `HOLDFAST_SOAK=true` walks further.
 *
 * @module
 */

import assert from "node:assert/strict";
import type {
  KubeApi,
  KubeObject,
  ListOptions,
  Resource,
  WriteOptions,
} from "../../lib/kube/api.ts";
import { ApiDecorator } from "../../lib/kube/api_decorator.ts";
import { AlreadyExistsError } from "../../lib/kube/errors.ts";
import { exploreAll, exploreRandom, type Opening, type Walk } from "../simulation/explorer.ts";
import { type Cast, EscrowWorld } from "./escrow_world.ts";

const soak = Deno.env.get("HOLDFAST_SOAK") === "true";

function mustHold({ violation }: Walk): void {
  assert.equal(violation, null, `${violation?.what}:\n${violation?.trace.join("\n")}`);
}

for (
  const [what, cast] of [
    ["two replicas with different keyrings", { replicas: [["a"], ["b"]] }],
    ["two replicas with the same keyring", { replicas: [["a"], ["a"]] }],
    ["two replicas where old versions go", { replicas: [["a"], ["b"]], stored: 5 }],
    ["a replica whose write lands late", { replicas: [["a"], ["b"]], late: [0] }],
  ] satisfies readonly (readonly [string, Cast])[]
) {
  Deno.test(`in every interleaving of ${what} nothing is lost, crashes at any step included`, async () => {
    const walk = await exploreAll(new EscrowWorld(cast), 5_000);
    mustHold(walk);
    assert.equal(walk.complete, true);
    assert(walk.count > 20, `only ${walk.count} states`);
  });
}

const crowd: Cast = { replicas: [["a", "b", "c"], ["d", "e", "f"], ["g", "a"]], stored: 4 };

Deno.test("in many interleavings of eight pushes at three replicas nothing is lost", async () => {
  const world = new EscrowWorld(crowd);
  for (let seed = 0; seed < (soak ? 3_000 : 40); seed++) {
    mustHold(await exploreRandom(world, { runs: 1, seed }));
    assert.deepEqual(world.failures, []);
    assert.equal(world.answers.length, 8);
    assert.equal(world.stored.length, 5);
  }
});

Deno.test("nothing is lost when answers are lost after their calls were served", async () => {
  mustHold(
    await exploreRandom(new EscrowWorld(crowd), { runs: soak ? 3_000 : 40, seed: 1, loss: 0.1 }),
  );
});

Deno.test("nothing is lost when writes land late, after newer ones came and their number was cleared away", async () => {
  const cast = { replicas: [["a", "b"], ["c", "d", "e", "f", "g", "h"]], stored: 1, late: [0, 3] };
  mustHold(await exploreRandom(new EscrowWorld(cast), { runs: soak ? 3_000 : 60, seed: 2 }));
});

Deno.test("of two replicas that push different keyrings each wins in some interleaving, and both are always stored", async () => {
  const world = new EscrowWorld({ replicas: [["a"], ["b"]] });
  const firsts = new Set<string>();
  for (let seed = 0; seed < 30; seed++) {
    await exploreRandom(world, { runs: 1, seed });
    assert.deepEqual(world.stored.map(({ keyring }) => keyring).toSorted(), ["a", "b"]);
    assert.deepEqual(world.answers.map(({ version }) => version).toSorted(), [1, 2]);
    firsts.add(world.answers.find(({ version }) => version === 1)?.keyring ?? "");
  }
  assert.deepEqual([...firsts].toSorted(), ["a", "b"]);
});

Deno.test("a keyring that both replicas push at once becomes one version, or none that is lost", async () => {
  const world = new EscrowWorld({ replicas: [["a"], ["a"]] });
  const counts = new Set<number>();
  for (let seed = 0; seed < 30; seed++) {
    await exploreRandom(world, { runs: 1, seed });
    counts.add(world.stored.length);
    assert.equal(world.answers.length, 2);
  }
  assert.deepEqual([...counts], [1]);
});

/** Writes over what has the name, as a PUT without a version does. */
class Overwriting extends ApiDecorator {
  override async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ) {
    try {
      return await this.inner.create(resource, object, options);
    } catch (error) {
      if (!(error instanceof AlreadyExistsError)) throw error;
      const name = { name: object.metadata.name ?? "", namespace: object.metadata.namespace ?? "" };
      const { uid, resourceVersion } = (await this.inner.get(resource, name, options)).metadata;
      await this.inner.delete(resource, name, { uid, resourceVersion }, options);
      return await this.inner.create(resource, object, options);
    }
  }
}

/** Lists the oldest versions first in number: each as the newest. So the newest are cleared away. */
class UpsideDown extends ApiDecorator {
  override async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions) {
    const list = await this.inner.list(resource, options);
    const metadatas = list.items.map(({ metadata }) => metadata).reverse();
    const items = list.items.map((item, index) => {
      const other = metadatas[index] ?? item.metadata;
      const { uid, resourceVersion } = other;
      return { ...item, metadata: { ...item.metadata, uid, resourceVersion } };
    });
    return { ...list, items };
  }
}

/** Shows each replica, after a create, what it wishes to see: that version alone. */
class Blind extends ApiDecorator {
  #created: KubeObject | null = null;

  override async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ) {
    const created = await this.inner.create(resource, object, options);
    this.#created = created;
    return created;
  }

  override async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions) {
    const list = await this.inner.list(resource, options);
    const uid = this.#created?.metadata.uid;
    this.#created = null;
    return uid === undefined
      ? list
      : { ...list, items: list.items.filter(({ metadata }) => metadata.uid === uid) };
  }
}

// A replica that stands between its list and its create while another one stores seven versions, and an eighth after it.
const overtaken = { replicas: [["a"], ["b", "c", "d", "e", "f", "g", "h", "i"]], stored: 1 };
const overtaking: Opening = [
  ["replica-0", "list secrets"],
  ["replica-1", "create secrets mysql-orders-iad-keyring-v8"],
  ["replica-1", "delete secrets mysql-orders-iad-keyring-v3"],
  ["replica-0", "create secrets mysql-orders-iad-keyring-v2"],
];

Deno.test("a replica that was overtaken until its number was free again stores its keyring under a new one", async () => {
  const world = new EscrowWorld(overtaken);
  const walk = await exploreRandom(world, { runs: 20, seed: 1, opening: overtaking });
  mustHold(walk);
  assert(world.answers.some(({ keyring, version }) => keyring === "a" && version > 7));
  assert(world.stored.some(({ keyring }) => keyring === "a"));
});

Deno.test("the check fails without the rule that a version counts only when it is among those that are kept", async () => {
  const cast: Cast = {
    ...overtaken,
    fault: (api, replica) => replica === 0 ? new Blind(api) : api,
  };
  const options = { runs: 200, seed: 1, opening: overtaking };
  const walk = await exploreRandom(new EscrowWorld(cast), options);
  assert.notEqual(walk.violation, null);
});

for (
  const [rule, cast] of [
    ["a name that is taken stays as it is", {
      replicas: [["a"], ["b"]],
      fault: (api: KubeApi) => new Overwriting(api),
    }],
    ["the oldest versions go", {
      replicas: [["a"], ["b"]],
      stored: 5,
      fault: (api: KubeApi) => new UpsideDown(api),
    }],
  ] satisfies readonly (readonly [string, Cast])[]
) {
  Deno.test(`the check fails without the rule that ${rule}`, async () => {
    const walk = await exploreRandom(new EscrowWorld(cast), { runs: 200, seed: 1 });
    assert.notEqual(walk.violation, null);
  });
}
