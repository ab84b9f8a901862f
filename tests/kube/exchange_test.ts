import assert from "node:assert/strict";
import { type Credentials, LEASES } from "../../lib/kube/mod.ts";
import {
  CredentialsError,
  type KubeError,
  KubeTimeoutError,
  NotFoundError,
  UnauthorizedError,
  UnavailableError,
} from "../../lib/kube/errors.ts";
import { DeadlineExceededError } from "../../lib/runtime/clock.ts";
import {
  type Answerer,
  broken,
  hangs,
  ignoresAbort,
  json,
  lease,
  SECRET_TEXT,
  type Setup,
  setup,
  status,
  Stream,
} from "./support.ts";

const A = { name: "a", namespace: "database" };
const OK: Answerer = json(lease("a", "1"));

const read = ({ api, signal }: Setup, timeoutMs?: number) =>
  api.get(LEASES, A, { signal, timeoutMs });
const write = ({ api, signal }: Setup, timeoutMs?: number) =>
  api.replace(LEASES, lease("a", "1"), { signal, timeoutMs });

/** Waits for a call to fail, and gives its error. */
async function failure<E extends KubeError>(
  call: Promise<unknown>,
  type: new (...args: never[]) => E,
): Promise<E> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof type, `${error}`);
    assert.doesNotMatch(error.message, new RegExp(SECRET_TEXT));
    return error;
  }
  assert.fail("it did not fail");
}

for (
  const [where, answer] of Object.entries({
    "before the head of the answer": hangs,
    "before the head, and does not follow the request": ignoresAbort,
    "in the body of the answer": () => new Response(new ReadableStream()),
    "in the body of an error": () => new Response(new ReadableStream(), { status: 500 }),
  })
) {
  Deno.test(`a server that hangs ${where} is left after the time limit`, async () => {
    const made = setup([answer, answer]);
    const reading = failure(read(made), KubeTimeoutError);
    await made.clock.advance(9_999);
    assert.equal(made.calls.length, 0);
    await made.clock.advance(1);
    assert.equal((await reading).mayHaveLanded, false);
    const writing = failure(write(made, 50), KubeTimeoutError);
    await made.clock.advance(50);
    const error = await writing;
    assert.equal(error.mayHaveLanded, true);
    assert.equal(error.message.endsWith("no answer within 50 ms"), true);
    assert.deepEqual(made.calls.map((call) => call.outcome), ["timeout", "timeout"]);
    assert.equal(made.clock.pendingTimers, 0);
  });

  Deno.test(`a server that hangs ${where} is left when the caller aborts`, async () => {
    const made = setup([answer]);
    const reason = { why: "the caller has gone" };
    const writing = assert.rejects(write(made), (error) => error === reason);
    await made.clock.advance(5);
    made.abort(reason);
    await writing;
    assert.deepEqual(made.calls.map((call) => call.outcome), ["aborted"]);
    assert.equal(made.clock.pendingTimers, 0);
  });
}

Deno.test("the body of an answer that comes after the time limit is given up", async () => {
  const stream = new Stream();
  const made = setup([]);
  let answerLate = () => {};
  made.answer((request) =>
    new Promise((resolve) => answerLate = () => resolve(stream.answer(request)))
  );
  made.answer(() => new Promise((_, reject) => answerLate = () => reject(new Error("late"))));
  const reading = failure(read(made), KubeTimeoutError);
  await made.clock.advance(10_000);
  await reading;
  answerLate();
  await made.clock.advance(0);
  assert.equal(stream.cancelled, true);
  const again = failure(read(made), KubeTimeoutError);
  await made.clock.advance(10_000);
  await again;
  answerLate();
  await made.clock.advance(0);
});

Deno.test("a signal that has aborted sends nothing", async () => {
  const made = setup([]);
  made.abort("over");
  await assert.rejects(read(made), (error) => error === "over");
  assert.equal(made.seen.length, 0);
  assert.equal(made.clock.pendingTimers, 0);
});

Deno.test("the deadline of a caller is that caller's reason, not a time limit of the call", async () => {
  const made = setup([hangs]);
  const reading = assert.rejects(read(made), DeadlineExceededError);
  await made.clock.advance(0);
  made.abort(new DeadlineExceededError(5));
  await reading;
});

Deno.test("a time limit that is not a positive number is refused", async () => {
  const made = setup([]);
  for (const timeoutMs of [0, -1, NaN, Infinity]) {
    await assert.rejects(read(made, timeoutMs), {
      name: "RangeError",
      message: `Cannot get as 'timeoutMs' must be a positive number: current value is ${timeoutMs}`,
    });
  }
});

Deno.test("429, and 503 with Retry-After, are tried again after that time, at most three times", async () => {
  const refusals = [
    status(429, "TooManyRequests", {}, { "retry-after": "1" }),
    status(503, "ServiceUnavailable", {}, { "retry-after": "2" }),
    status(429, "TooManyRequests", { retryAfterSeconds: 1 }),
  ];
  const made = setup([...refusals, OK]);
  const writing = write(made);
  for (const [waitMs, sent] of [[999, 1], [1, 2], [1_999, 2], [1, 3], [999, 3], [1, 4]] as const) {
    await made.clock.advance(waitMs);
    assert.equal(made.seen.length, sent);
  }
  await writing;
  assert.deepEqual(made.observed.map((answer) => answer.status), [429, 503, 429, 200]);
  assert.equal(made.clock.pendingTimers, 0);

  const stubborn = setup([...refusals, status(429, "TooManyRequests", { retryAfterSeconds: 4 })]);
  const failing = failure(write(stubborn), UnavailableError);
  await stubborn.clock.advance(10_000);
  const error = await failing;
  assert.equal(error.retryAfterMs, 4_000);
  assert.equal(error.mayHaveLanded, false);
  assert.equal(stubborn.seen.length, 4);
});

Deno.test("a wait that does not fit into the call's own time is left to the caller", async () => {
  const made = setup([status(429, "TooManyRequests", {}, { "retry-after": "10" })]);
  const error = await failure(read(made), UnavailableError);
  assert.equal(error.retryAfterMs, 10_000);
  assert.equal(made.clock.monotonic(), 0);
  const fits = setup([status(429, "TooManyRequests", {}, { "retry-after": "10" }), OK]);
  const reading = read(fits, 10_001);
  await fits.clock.advance(10_000);
  await reading;
});

Deno.test("an abort ends the wait", async () => {
  const made = setup([status(429, "TooManyRequests", {}, { "retry-after": "5" })]);
  const writing = assert.rejects(write(made), (error) => error === "over");
  await made.clock.advance(1_000);
  made.abort("over");
  await writing;
  assert.equal(made.clock.pendingTimers, 0);
});

Deno.test("a refusal without a time is told at once", async () => {
  const made = setup([status(429, "TooManyRequests"), status(503, "ServiceUnavailable")]);
  assert.equal((await failure(write(made), UnavailableError)).mayHaveLanded, false);
  const error = await failure(write(made), UnavailableError);
  assert.equal(error.mayHaveLanded, true, "a proxy says 503 also after it handed the request on");
  assert.equal(error.status, 503);
});

Deno.test("a read on a connection that had served is sent once more when it breaks", async () => {
  const made = setup([OK, broken, OK, broken, broken]);
  await read(made);
  await read(made);
  assert.equal(made.seen.length, 3);
  const error = await failure(read(made), UnavailableError);
  assert.equal(made.seen.length, 5);
  assert.equal(error.status, null);
  assert.equal(error.mayHaveLanded, false);
  assert.deepEqual(made.calls.map((call) => call.outcome), [
    "ok",
    "unavailable",
    "ok",
    "unavailable",
    "unavailable",
  ]);
});

Deno.test("a read is not sent again where nothing was ever served, or not since the last fault", async () => {
  const made = setup([broken, broken]);
  await failure(read(made), UnavailableError);
  await failure(read(made), UnavailableError);
  assert.equal(made.seen.length, 2);
});

Deno.test("calls at the same time on stale connections are each sent once more", async () => {
  const made = setup([OK, broken, broken, OK, OK]);
  await read(made);
  await Promise.all([read(made), read(made)]);
  assert.equal(made.seen.length, 5);
});

Deno.test("a write that got no answer is never sent again", async () => {
  const made = setup([OK, broken]);
  await read(made);
  const error = await failure(write(made), UnavailableError);
  assert.equal(error.mayHaveLanded, true);
  assert.equal(made.seen.length, 2);
});

Deno.test("a body that breaks off is unavailable, and a write has then perhaps landed", async () => {
  const breaking: Answerer = (request) => {
    const stream = new Stream();
    queueMicrotask(() => stream.break());
    return stream.answer(request);
  };
  const made = setup([breaking, breaking]);
  assert.equal((await failure(read(made), UnavailableError)).mayHaveLanded, false);
  assert.equal((await failure(write(made), UnavailableError)).mayHaveLanded, true);
  assert.equal(made.seen.length, 2);
  assert.equal(made.observed.length, 2);
});

/** Credentials whose token counts how often it was renewed. */
function counting(renewable = true): Credentials & { renewals: number } {
  return {
    renewals: 0,
    headers() {
      return Promise.resolve({ authorization: `Bearer token-${this.renewals}` });
    },
    refresh() {
      this.renewals++;
      return Promise.resolve(renewable);
    },
  };
}

Deno.test("a 401 renews the credentials, and the call is sent once more", async () => {
  const credentials = counting();
  const made = setup([status(401, "Unauthorized"), OK], { credentials });
  await write(made);
  assert.deepEqual(made.seen.map(({ headers }) => headers.get("authorization")), [
    "Bearer token-0",
    "Bearer token-1",
  ]);
});

Deno.test("a second 401 is told, and so is one where nothing can be renewed", async () => {
  const twice = setup([status(401, "Unauthorized"), status(401, "Unauthorized")], {
    credentials: counting(),
  });
  await failure(write(twice), UnauthorizedError);
  assert.equal(twice.seen.length, 2);
  const fixed = setup([status(401, "Unauthorized")], { credentials: counting(false) });
  await failure(write(fixed), UnauthorizedError);
  assert.equal(fixed.seen.length, 1);
});

Deno.test("credentials that cannot be had are an error of their own, and nothing is sent", async () => {
  const fails = () => Promise.reject(new Error(SECRET_TEXT));
  const none = setup([], { credentials: { headers: fails, refresh: fails } });
  const error = await failure(write(none), CredentialsError);
  assert.equal(error.kind, "unauthorized");
  assert.equal(error.mayHaveLanded, false);
  const once = setup([status(401, "Unauthorized")], {
    credentials: { headers: () => Promise.resolve({}), refresh: fails },
  });
  await failure(write(once), CredentialsError);
});

Deno.test("credentials that no header can hold are that error too, and it does not quote them", async () => {
  const headers = () => Promise.resolve({ authorization: `Bearer ${SECRET_TEXT}\n${SECRET_TEXT}` });
  const made = setup([], { credentials: { headers, refresh: () => Promise.resolve(false) } });
  const error = await failure(write(made), CredentialsError);
  assert.equal(error.mayHaveLanded, false);
  assert.ok(!`${error}${error.stack}${error.cause}`.includes(SECRET_TEXT));
});

Deno.test("credentials that hang end with the call's time, and nothing has landed", async () => {
  const never = () => new Promise<never>(() => {});
  const made = setup([], { credentials: { headers: never, refresh: never } });
  const writing = failure(write(made), KubeTimeoutError);
  await made.clock.advance(10_000);
  assert.equal((await writing).mayHaveLanded, false);
  const waiting = assert.rejects(write(made), (error) => error === "over");
  made.abort("over");
  await waiting;
});

Deno.test("a redirect is not followed", async () => {
  const made = setup([
    () => new Response(null, { status: 302, headers: { location: "https://elsewhere.test/" } }),
  ]);
  const error = await failure(read(made), UnavailableError);
  assert.equal(error.status, 302);
  assert.equal(made.seen.length, 1);
});

Deno.test("an error that was decided before the caller aborted stays that error", async () => {
  const made = setup([]);
  made.answer((request) => {
    const answer = status(404, "NotFound")(request);
    return answer;
  });
  await failure(read(made), NotFoundError);
});
