import assert from "node:assert/strict";
import fc from "fast-check";
import { type Lease, LEASES, type Watch, type WatchEvent } from "../../lib/kube/mod.ts";
import { ForbiddenError, KubeTimeoutError, UnavailableError } from "../../lib/kube/errors.ts";
import { pauseAfter, RunningWatch } from "../../lib/kube/watch.ts";
import { DeadlineExceededError } from "../../lib/runtime/clock.ts";
import { seededEntropy } from "../../lib/testing/entropy.ts";
import {
  type Answerer,
  broken,
  hangs,
  json,
  lease,
  listOf,
  SECRET_TEXT,
  type Setup,
  setup,
  status,
  Stream,
} from "./support.ts";

const LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/database/leases";

/** A watch, and its events as they are asked for. */
interface Watching extends Setup {
  readonly watch: Watch<Lease>;
  /** Asks for the next event; time moves on by `afterMs` meanwhile. */
  next(afterMs?: number): Promise<WatchEvent<Lease> | "end">;
  /** The next event in short. */
  short(afterMs?: number): Promise<string>;
  return(): Promise<void>;
}

function watching(answers: Answerer[], idleTimeoutMs?: number): Watching {
  const made = setup(answers);
  const watch = made.api.watch(LEASES, {
    namespace: "database",
    labelSelector: "x=y",
    signal: made.signal,
    idleTimeoutMs,
  });
  const iterator = watch[Symbol.asyncIterator]();
  const next = async (afterMs = 0) => {
    const asked = iterator.next();
    await made.clock.advance(afterMs);
    const { done, value } = await asked;
    return done ? "end" : value;
  };
  return {
    ...made,
    watch,
    next,
    short: async (afterMs) => inShort(await next(afterMs)),
    return: async () => void await iterator.return?.(),
  };
}

function inShort(event: WatchEvent<Lease> | "end"): string {
  if (event === "end") return event;
  switch (event.type) {
    case "initial":
      return `initial ${event.list.resourceVersion}`;
    case "restarted":
      return `restarted ${event.reason} ${event.list.resourceVersion}`;
    case "failed":
      assert.doesNotMatch(event.error.message, new RegExp(SECRET_TEXT));
      return `failed ${event.error.call.verb} ${event.error.kind}`;
    case "undecodable":
      return `undecodable ${event.object.name} ${event.object.paths}`;
    default:
      return `${event.type} ${event.object.metadata.name} ${event.object.metadata.resourceVersion}`;
  }
}

const list = (version: string, ...names: string[]) =>
  json(listOf(version, names.map((name) => lease(name, "1"))));
const added = (name: string, version: string) => ({ type: "ADDED", object: lease(name, version) });
const bookmark = (version: string) => ({
  type: "BOOKMARK",
  object: { kind: "Lease", metadata: { resourceVersion: version } },
});
const gone = {
  type: "ERROR",
  object: { kind: "Status", code: 410, reason: "Expired", message: SECRET_TEXT },
};

Deno.test("a watch tells the state, then what changes, from the version of the state", async () => {
  const stream = new Stream();
  const made = watching([list("10", "a"), stream.answer]);
  assert.equal(made.seen.length, 0, "nothing is sent before it is asked for");
  assert.equal(await made.short(), "initial 10");
  assert.equal(made.seen.length, 1);
  stream.line(added("b", "11"));
  stream.line({ type: "MODIFIED", object: lease("b", "12", { future: 1 }) });
  stream.line({ type: "DELETED", object: lease("b", "13") });
  assert.equal(await made.short(), "added b 11");
  const modified = await made.next();
  assert.deepEqual(modified, { type: "modified", object: lease("b", "12", { future: 1 }) });
  assert.equal(await made.short(), "deleted b 13");
  assert.deepEqual(made.seen.map(({ path }) => path), [
    `${LEASES_PATH}?labelSelector=x%3Dy&limit=500`,
    `${LEASES_PATH}?labelSelector=x%3Dy&watch=true&allowWatchBookmarks=true&resourceVersion=10`,
  ]);
  assert.deepEqual(made.observed.map(({ verb }) => verb), ["list", "watch"]);
  made.abort("over");
  assert.equal(await made.short(), "end");
  assert.equal(stream.cancelled, true);
  assert.equal(made.clock.pendingTimers, 0);
});

Deno.test("a stream that the server ended is resumed from the last version, or a later bookmark", async () => {
  const [first, second, third] = [new Stream(), new Stream(), new Stream()];
  const made = watching([
    list("10"),
    first.answer,
    list("11"),
    second.answer,
    list("20"),
    third.answer,
  ]);
  await made.short();
  first.line(added("a", "11"));
  first.end();
  assert.equal(await made.short(), "added a 11");
  second.line(bookmark("20"));
  second.end();
  third.line(added("b", "21"));
  assert.equal(await made.short(), "added b 21");
  assert.deepEqual(made.seen.map(({ path }) => path.replace(/^.*x%3Dy&/, "")), [
    "limit=500",
    "watch=true&allowWatchBookmarks=true&resourceVersion=10",
    "limit=1",
    "watch=true&allowWatchBookmarks=true&resourceVersion=11",
    "limit=1",
    "watch=true&allowWatchBookmarks=true&resourceVersion=20",
  ]);
  await made.return();
  assert.equal(made.clock.pendingTimers, 0);
});

Deno.test("a stream that breaks is told, and is resumed after a pause", async () => {
  const [first, second] = [new Stream(), new Stream()];
  const made = watching([list("10"), first.answer, list("15"), second.answer]);
  await made.short();
  first.line(added("a", "11"));
  await made.short();
  first.break();
  const failed = await made.next();
  assert.ok(failed !== "end" && failed.type === "failed");
  assert.ok(failed.error instanceof UnavailableError);
  assert.equal(failed.error.call.verb, "watch");
  assert.equal(failed.error.call.target, "database/");
  second.line(added("b", "16"));
  const event = made.short();
  await made.clock.advance(799);
  assert.equal(made.seen.length, 2);
  await made.clock.advance(161);
  assert.equal(await event, "added b 16");
  assert.match(made.seen[3]?.path ?? "", /resourceVersion=11$/);
  await made.return();
});

Deno.test("a version that the server does not keep any more leads to the whole state anew", async () => {
  const [first, second] = [new Stream(), new Stream()];
  const made = watching([
    list("10"),
    first.answer,
    list("30"),
    status(410, "Expired"),
    list("30", "b"),
    second.answer,
    list("50"),
  ]);
  await made.short();
  first.line(added("a", "11"));
  first.end();
  await made.short();
  assert.equal(await made.short(), "restarted gone 30");
  second.line(added("c", "31"));
  assert.equal(await made.short(), "added c 31");
  second.line(gone);
  assert.equal(await made.short(), "restarted gone 50");
  assert.equal(second.cancelled, true);
  assert.equal(made.clock.monotonic(), 0);
  await made.return();
});

Deno.test("a server that keeps nothing at all is not asked in a busy loop", async () => {
  const made = watching([
    list("10"),
    status(410, "Gone"),
    list("11"),
    status(410, "Gone"),
    list("12"),
    status(410, "Gone"),
  ]);
  assert.equal(await made.short(), "initial 10");
  assert.equal(await made.short(), "restarted gone 11");
  assert.equal(await made.short(), "failed watch gone");
  assert.equal(await made.short(960), "restarted gone 12");
  assert.equal(await made.short(), "failed watch gone");
  await made.return();
});

Deno.test("a 410 that comes after a stream that served is not a failure", async () => {
  const [first, second] = [new Stream(), new Stream()];
  const made = watching([list("10"), status(410, "Gone"), list("11"), first.answer, list("12")]);
  made.answer(status(410, "Gone"), list("13"), second.answer);
  await made.short();
  assert.equal(await made.short(), "restarted gone 11");
  const event = made.short();
  await made.clock.advance(1_000);
  first.end();
  assert.equal(await event, "restarted gone 13");
  await made.return();
});

Deno.test("a store that went back is found when a stream is resumed", async () => {
  const stream = new Stream();
  const made = watching([list("100"), stream.answer, list("40"), list("41", "old")]);
  await made.short();
  stream.line(bookmark("120"));
  stream.end();
  assert.equal(await made.short(), "restarted rewound 41");
  await made.return();
});

Deno.test("a store that went back is found by an older version on the stream", async () => {
  const stream = new Stream();
  const made = watching([list("100"), stream.answer, list("41")]);
  await made.short();
  stream.line(added("a", "101"));
  stream.line(added("b", "40"));
  assert.equal(await made.short(), "added a 101");
  assert.equal(await made.short(), "restarted rewound 41");
  assert.equal(stream.cancelled, true);
  await made.return();
});

Deno.test("a list that is older than what was told says so, whatever it was asked for", async () => {
  const [first, second] = [new Stream(), new Stream()];
  const made = watching([list("100"), first.answer, list("99"), second.answer, list("98")]);
  await made.short();
  first.line(gone);
  assert.equal(await made.short(), "restarted rewound 99");
  const event = made.short();
  await made.clock.advance(0);
  made.watch.restart();
  assert.equal(await event, "restarted rewound 98");
  await made.return();
});

Deno.test("versions that are no numbers are never thought to go back", async () => {
  const stream = new Stream();
  const made = watching([list("abc"), stream.answer]);
  await made.short();
  stream.line(added("a", "abb"));
  assert.equal(await made.short(), "added a abb");
  await made.return();
});

Deno.test("restart lists at once: while the stream is silent", async () => {
  const [first, second] = [new Stream(), new Stream()];
  const made = watching([list("10"), first.answer, list("11", "a"), second.answer]);
  await made.short();
  const event = made.short();
  await made.clock.advance(5);
  made.watch.restart();
  assert.equal(await event, "restarted requested 11");
  assert.equal(first.cancelled, true);
  second.line(added("b", "12"));
  assert.equal(await made.short(), "added b 12");
  assert.match(made.seen[3]?.path ?? "", /resourceVersion=11$/);
  await made.return();
});

Deno.test("restart lists at once: while the caller looks at an event of many", async () => {
  const stream = new Stream();
  const made = watching([list("10"), stream.answer, list("13")]);
  await made.short();
  stream.write(
    [added("a", "11"), added("b", "12")].map((line) => `${JSON.stringify(line)}\n`).join(""),
  );
  assert.equal(await made.short(), "added a 11");
  made.watch.restart();
  assert.equal(await made.short(), "restarted requested 13");
  await made.return();
});

Deno.test("restart lists at once: during a pause, and during a list, whose answer is too old then", async () => {
  const made = watching([list("10"), broken, broken, hangs, list("12")]);
  await made.short();
  assert.equal(await made.short(), "failed watch unavailable");
  const event = made.short();
  await made.clock.advance(5);
  made.watch.restart();
  await made.clock.advance(0);
  made.watch.restart();
  assert.equal(await event, "restarted requested 12");
  await made.return();
});

Deno.test("restart before the first list changes nothing", async () => {
  const made = watching([hangs, list("10")]);
  made.watch.restart();
  const event = made.short();
  await made.clock.advance(0);
  made.watch.restart();
  assert.equal(await event, "initial 10");
  await made.return();
});

Deno.test("a silent stream is thought dead after the idle limit, and is resumed", async () => {
  let reason: unknown;
  const [first, second] = [new Stream(), new Stream()];
  const made = watching([list("10"), (request) => {
    request.signal.addEventListener("abort", () => reason = request.signal.reason);
    return first.answer(request);
  }]);
  made.answer(list("12"), second.answer);
  await made.short();
  const event = made.short();
  await made.clock.advance(80_000);
  first.line(bookmark("12"));
  await made.clock.advance(89_999);
  assert.equal(made.seen.length, 2);
  await made.clock.advance(1);
  second.line(added("a", "13"));
  assert.equal(await event, "added a 13");
  assert.match(made.seen[3]?.path ?? "", /resourceVersion=12$/);
  assert.ok(reason instanceof DeadlineExceededError);
  assert.equal(first.cancelled, true);
  await made.return();
  assert.equal(made.clock.pendingTimers, 0);
});

Deno.test("the idle limit can be set, and does not run while nothing is asked for", async () => {
  const [first, second] = [new Stream(), new Stream()];
  const made = watching([list("10"), first.answer, list("12"), second.answer], 1_000);
  await made.short();
  first.line(added("a", "11"));
  await made.short();
  await made.clock.advance(60_000);
  first.line(added("b", "12"));
  assert.equal(await made.short(), "added b 12");
  second.line(added("c", "13"));
  assert.equal(await made.short(1_000), "added c 13");
  await made.return();
});

Deno.test("failures are told with the verb of their call, and the watch goes on", async () => {
  const stream = new Stream();
  const made = watching([
    status(403, "Forbidden"),
    list("10"),
    status(403, "Forbidden"),
    status(500, "InternalError"),
    list("10"),
    stream.answer,
  ]);
  const failed = await made.next();
  assert.ok(failed !== "end" && failed.type === "failed");
  assert.ok(failed.error instanceof ForbiddenError);
  assert.equal(failed.error.call.verb, "list");
  assert.equal(await made.short(1_000), "initial 10");
  assert.equal(await made.short(), "failed watch forbidden");
  assert.equal(await made.short(2_000), "failed list unavailable");
  stream.line(added("a", "11"));
  assert.equal(await made.short(4_000), "added a 11");
  await made.return();
});

Deno.test("the pause doubles up to 30 s, and starts anew after two good minutes", async () => {
  const made = watching([list("10")]);
  await made.short();
  const pauses: number[] = [];
  let stream = new Stream();
  const breakOnce = async () => {
    stream = new Stream();
    const from = made.clock.monotonic();
    let openedAt = 0;
    const own = stream;
    if (made.seen.length > 1) made.answer(list("10"));
    made.answer((request) => {
      openedAt = made.clock.monotonic();
      return own.answer(request);
    });
    const event = made.short();
    await made.clock.advance(40_000);
    pauses.push(openedAt - from);
    own.break();
    assert.equal(await event, "failed watch unavailable");
  };
  for (let count = 0; count < 8; count++) await breakOnce();
  const [first, ...others] = pauses;
  assert.equal(first, 0);
  for (const [index, pauseMs] of others.entries()) {
    const base = Math.min(800 * 2 ** index, 30_000);
    assert.ok(pauseMs >= base && pauseMs <= base * 1.2, `${pauses}`);
  }
  made.answer(list("10"), (request) => stream.answer(request));
  stream = new Stream();
  const event = made.short();
  await made.clock.advance(40_000);
  for (let beat = 0; beat < 3; beat++) {
    stream.line(bookmark("10"));
    await made.clock.advance(50_000);
  }
  stream.break();
  assert.equal(await event, "failed watch unavailable");
  await breakOnce();
  assert.ok((pauses.at(-1) ?? 0) <= 960, `${pauses}`);
  await made.return();
});

Deno.test("a stream that ends at once and brings nothing is a failure, or it would be a busy loop", async () => {
  const ended = new Stream();
  ended.end();
  const made = watching([list("10"), ended.answer, list("10"), () => new Response(null)]);
  await made.short();
  assert.equal(await made.short(), "failed watch unavailable");
  assert.equal(await made.short(960), "failed watch unavailable");
  await made.return();
});

Deno.test("an abort ends the watch without an error, whatever it does", async () => {
  const stream = new Stream();
  const places: Record<string, [Answerer[], number]> = {
    "before the list": [[], 0],
    "in the list": [[hangs], 0],
    "in the start of the stream": [[list("10"), hangs], 1],
    "in the stream": [[list("10"), stream.answer], 1],
    "in a pause": [[status(500, "InternalError")], 1],
  };
  for (const [place, [answers, before]] of Object.entries(places)) {
    const made = watching(answers);
    for (let count = 0; count < before; count++) await made.short();
    if (answers.length === 0) made.abort("over");
    const event = made.short();
    await made.clock.advance(10);
    made.abort("over");
    assert.equal(await event, "end", place);
    assert.equal(await made.short(), "end", place);
    assert.equal(made.clock.pendingTimers, 0, place);
  }
  assert.equal(stream.cancelled, true);
});

Deno.test("a loop that is left leaves no stream and no timer", async () => {
  const stream = new Stream();
  const { api, clock, signal } = setup([list("10"), stream.answer]);
  stream.line(added("a", "11"));
  for await (const event of api.watch(LEASES, { signal })) {
    if (event.type === "added") break;
  }
  assert.equal(stream.cancelled, true);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("lines are read right, however the bytes are cut", async () => {
  const stream = new Stream();
  const made = watching([list("10"), stream.answer]);
  await made.short();
  const named = { type: "ADDED", object: lease("a", "11", { holderIdentity: "zürich-🐘" }) };
  const bytes = new TextEncoder().encode(`${JSON.stringify(named)}\n`);
  for (const byte of bytes) stream.write(new Uint8Array([byte]));
  const event = await made.next();
  assert.ok(event !== "end" && event.type === "added");
  assert.equal(event.object.spec?.holderIdentity, "zürich-🐘");
  await made.return();
});

Deno.test("an object of another form is told as such, and the others go on", async () => {
  const [first, second] = [new Stream(), new Stream()];
  const made = watching([list("10"), first.answer, list("12"), second.answer]);
  await made.short();
  first.line({ type: "ADDED", object: lease("odd", "11", { leaseTransitions: "many" }) });
  first.line(added("a", "12"));
  assert.equal(await made.short(), "undecodable odd spec.leaseTransitions");
  assert.equal(await made.short(), "added a 12");
  first.end();
  second.line({ type: "ADDED", object: lease("odd", "13", { leaseTransitions: "many" }) });
  await made.short();
  await made.return();
});

Deno.test("a line that is no event is told, and the stream is started anew", async () => {
  for (const line of ["{", `"text"`, JSON.stringify({ type: "OTHER", object: {} }), "null"]) {
    const [first, second] = [new Stream(), new Stream()];
    const made = watching([list("10"), first.answer, list("10"), second.answer]);
    await made.short();
    first.write(`${line}\n`);
    assert.equal(await made.short(), "failed watch decode");
    assert.equal(first.cancelled, true);
    second.line(added("a", "11"));
    assert.equal(await made.short(960), "added a 11");
    await made.return();
  }
});

Deno.test("an ERROR event is the error that its Status says", async () => {
  const stream = new Stream();
  const made = watching([list("10"), stream.answer]);
  await made.short();
  stream.line({ type: "ERROR", object: { code: 403 } });
  assert.equal(await made.short(), "failed watch forbidden");
  await made.return();
  const odd = new Stream();
  const other = watching([list("10"), odd.answer]);
  await other.short();
  odd.line({ type: "ERROR", object: SECRET_TEXT });
  assert.equal(await other.short(), "failed watch unavailable");
  await other.return();
});

Deno.test("a start without an answer is a failure after the time limit of a call", async () => {
  const made = watching([list("10"), hangs]);
  await made.short();
  const failed = await made.next(10_000);
  assert.ok(failed !== "end" && failed.type === "failed");
  assert.ok(failed.error instanceof KubeTimeoutError);
  assert.equal(failed.error.call.verb, "watch");
  await made.return();
});

Deno.test("nothing is read from the connection that was not asked for", async () => {
  const stream = new Stream();
  const made = watching([list("10"), stream.answer]);
  await made.short();
  const event = made.short();
  await made.clock.advance(0);
  assert.equal(stream.pulls, 1);
  stream.line(added("a", "11"));
  await event;
  await made.clock.advance(1_000);
  assert.equal(stream.pulls, 1);
  await made.return();
});

Deno.test("a watch is iterated once, and a place that cannot be is refused at once", () => {
  const { api, signal } = setup([]);
  const watch = api.watch(LEASES, { signal });
  watch[Symbol.asyncIterator]();
  assert.throws(() => watch[Symbol.asyncIterator](), TypeError);
  assert.throws(() => api.watch(LEASES, { namespace: "a/b", signal }), TypeError);
});

Deno.test("a fault of our own ends the watch and is not told as one of the cluster", async () => {
  const { clock, signal } = setup([]);
  const watch = new RunningWatch<Lease>({
    call: { verb: "watch", resource: "leases", target: "" },
    list: () => Promise.reject(new RangeError("planted")),
    currentVersion: () => Promise.resolve("1"),
    open: () => Promise.resolve(new Stream().body),
    read: () => ({ type: "bookmark", version: "1" }),
  }, { clock, entropy: seededEntropy(1), signal, idleTimeoutMs: 1 });
  await assert.rejects(Promise.resolve(watch[Symbol.asyncIterator]().next()), RangeError);
});

Deno.test("a pause is 800 ms and more, 36 s and less, and grows with the failures", () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failures, fraction) => {
        const pauseMs = pauseAfter(failures, fraction);
        assert.ok(pauseMs >= 800 && pauseMs <= 36_000);
        assert.ok(pauseAfter(failures + 1, 0) >= pauseAfter(failures, 0));
        assert.ok(pauseMs >= pauseAfter(failures, 0));
      },
    ),
  );
});
