import assert from "node:assert/strict";
import { KeyringEscrow, KeyringStoreError } from "../../lib/escrow/escrow.ts";
import { KeyringContendedError, KeyringUnreadableError } from "../../lib/escrow/store.ts";
import type {
  CallOptions,
  KubeApi,
  KubeObject,
  ListOptions,
  ObjectName,
  Resource,
} from "../../lib/kube/api.ts";
import { ApiDecorator } from "../../lib/kube/api_decorator.ts";
import { SECRETS } from "../../lib/kube/resources.ts";
import { HttpApi, staticToken } from "../../lib/kube/mod.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { keyringOf, NAMESPACE, seedEscrow, SITE, storedKeyrings, TOKEN } from "./support.ts";

const { signal } = new AbortController();

/** An escrow whose way to the API server is changed. */
function escrowWith(change: (api: KubeApi) => KubeApi = (api) => api) {
  const clock = new TestClock();
  const entropy = seededEntropy(1);
  const fake = new FakeCluster({ clock, entropy, namespaces: ["default", NAMESPACE] });
  seedEscrow(fake);
  const api = new HttpApi({
    baseUrl: "https://fake",
    fetch: fake.fetch,
    credentials: staticToken(fake.adminToken),
    clock,
    entropy,
    defaultNamespace: NAMESPACE,
  });
  const escrow = new KeyringEscrow({
    api: change(api),
    onForbidden: () => {},
    onLeftBehind: () => {},
  });
  const push = { site: SITE, token: TOKEN, keyring: keyringOf("a"), digest: "" };
  return { fake, push: () => escrow.push(push, { signal }) };
}

function fails(fault: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof KeyringStoreError && error.cause instanceof Error &&
    error.cause.name === fault;
}

Deno.test("a name that others take at each of eight tries ends in an error, and not in a loop", async () => {
  const { fake, push } = escrowWith();
  const taken = fake.faults.add({
    verb: "create",
    resource: "secrets",
    fault: { type: "status", code: 409 },
  });
  await assert.rejects(push(), fails("KeyringContendedError"));
  assert.equal(taken.hits, 8);
  assert.match(new KeyringContendedError().message, /8 tries/);
});

/** Shows a version that has no form. */
class Unreadable extends ApiDecorator {
  override async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions) {
    const list = await this.inner.list(resource, options);
    const name = "mysql-orders-iad-keyring-v1";
    return { ...list, undecodable: [{ namespace: NAMESPACE, name, paths: ["data"] }] };
  }
}

Deno.test("while a version cannot be read nothing is decided, so that no number is given twice", async () => {
  const { fake, push } = escrowWith((api) => new Unreadable(api));
  await assert.rejects(push(), fails("KeyringUnreadableError"));
  assert.deepEqual(storedKeyrings(fake), {});
  assert.match(new KeyringUnreadableError().message, /another form/);
});

/** A group that is made anew, or deleted, whenever it is looked at. */
class Unsteady extends ApiDecorator {
  readonly #lives: number;
  #looks = 0;

  constructor(inner: KubeApi, lives: number) {
    super(inner);
    this.#lives = lives;
  }

  override async get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ) {
    const isGroup = resource.plural === "mysqlfailovergroups";
    const looks = isGroup ? ++this.#looks : 0;
    const gone = { ...name, name: looks > this.#lives ? "deleted" : name.name };
    const found = await this.inner.get(resource, gone, options);
    if (!isGroup) return found;
    return { ...found, metadata: { ...found.metadata, uid: `uid-${looks}` } };
  }
}

Deno.test("a group that is made anew at each of three looks ends in an error", async () => {
  const { push } = escrowWith((api) => new Unsteady(api, Infinity));
  await assert.rejects(push(), fails("GroupUnsteadyError"));
});

Deno.test("a group that is deleted while its keyring is stored is not found", async () => {
  const { push } = escrowWith((api) => new Unsteady(api, 1));
  assert.deepEqual(await push(), { type: "group_not_found" });
});

Deno.test("a version that is being deleted is not what is stored, and its number is not given again", async () => {
  const { fake, push } = escrowWith();
  await push();
  const deleting = fake.readAll(SECRETS, NAMESPACE).find(({ metadata }) =>
    metadata.name === "mysql-orders-iad-keyring-v1"
  );
  assert(deleting !== undefined);
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const metadata = { ...deleting.metadata, deletionTimestamp, finalizers: ["example.io/wait"] };
  fake.seed(SECRETS, { ...deleting, metadata });
  const outcome = await push();
  assert(outcome.type === "escrowed");
  assert.equal(outcome.stored.version, 2);
});
