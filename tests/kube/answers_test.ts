import assert from "node:assert/strict";
import fc from "fast-check";
import {
  errorOfAnswer,
  type Intent,
  readHttpDate,
  readRetryAfter,
  readStatus,
} from "../../lib/kube/answers.ts";
import { READS } from "../../lib/kube/calls.ts";
import { InvalidError } from "../../lib/kube/errors.ts";

const call = { verb: "update", resource: "leases.coordination.k8s.io", target: "ns/a" };
const WRITES: Intent = { writes: true, createsByName: false, fence: "members" };
const answer = (code: number, status: unknown, retryAfterMs: number | null = null) => ({
  status: code,
  body: typeof status === "string" ? status : JSON.stringify(status),
  retryAfterMs,
});

Deno.test("each status is an error of its own", () => {
  const kinds = [400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504]
    .map((code) => {
      const error = errorOfAnswer(call, WRITES, answer(code, {}));
      assert.equal(error.status, code);
      return `${code} ${error.name} ${error.kind} ${error.mayHaveLanded}`;
    });
  assert.deepEqual(kinds, [
    "400 InvalidError invalid false",
    "401 UnauthorizedError unauthorized false",
    "403 ForbiddenError forbidden false",
    "404 NotFoundError not_found false",
    "405 InvalidError invalid false",
    "408 InvalidError invalid false",
    "409 ConflictError conflict false",
    "410 GoneError gone false",
    "413 InvalidError invalid false",
    "415 InvalidError invalid false",
    "422 InvalidError invalid false",
    "429 UnavailableError unavailable false",
    "500 UnavailableError unavailable true",
    "502 UnavailableError unavailable true",
    "503 UnavailableError unavailable true",
    "504 UnavailableError unavailable true",
  ]);
});

Deno.test("a read never lands, and a 503 that says when to come back was not run", () => {
  assert.equal(errorOfAnswer(call, READS, answer(500, {})).mayHaveLanded, false);
  assert.equal(errorOfAnswer(call, WRITES, answer(503, {}, 1_000)).mayHaveLanded, false);
  assert.equal(errorOfAnswer(call, WRITES, answer(504, {}, 1_000)).mayHaveLanded, true);
});

Deno.test("a forbidden call says which rule the Role lacks", () => {
  assert.equal(
    errorOfAnswer(call, WRITES, answer(403, {})).message,
    'Cannot update leases.coordination.k8s.io ns/a: the Role does not allow it; add the verb "update" on "leases.coordination.k8s.io" to it',
  );
});

Deno.test("no text of the server gets into a message, whatever the answer is", () => {
  const secret = "s3cr3t value";
  const text = fc.constantFrom(secret, `spec.${secret}`);
  const anything = fc.record({
    kind: text,
    reason: text,
    message: text,
    code: fc.oneof(fc.integer(), text),
    details: fc.oneof(
      text,
      fc.constant(null),
      fc.record({
        name: text,
        causes: fc.array(fc.record({ field: text, message: text, reason: text })),
        retryAfterSeconds: fc.oneof(fc.integer(), text),
      }),
    ),
  });
  fc.assert(fc.property(
    fc.integer({ min: 300, max: 599 }),
    fc.oneof(anything, text, fc.constant(null), fc.array(text)),
    fc.constantFrom(READS, WRITES),
    (code, body, intent) => {
      const error = errorOfAnswer(call, intent, answer(code, body));
      assert.doesNotMatch(`${error.message}`, /s3cr3t/);
      if (error instanceof InvalidError) assert.doesNotMatch(error.fields.join(), /s3cr3t/);
    },
  ));
});

Deno.test("the fields that the server names are kept, sentences in their place are not", () => {
  const causes = [
    { field: "spec.leaseDurationSeconds" },
    { field: "metadata.labels[app.kubernetes.io/name]" },
    { field: "this is not a field" },
    {},
    ...Array.from({ length: 20 }, (_, index) => ({ field: `spec.x[${index}]` })),
  ];
  const error = errorOfAnswer(call, WRITES, answer(422, { details: { causes } }));
  assert.ok(error instanceof InvalidError);
  assert.equal(error.fields.length, 10);
  assert.deepEqual(error.fields.slice(0, 3), [
    "spec.leaseDurationSeconds",
    "metadata.labels[app.kubernetes.io/name]",
    "spec.x[0]",
  ]);
});

Deno.test("a wrong uid among other faults is not a conflict", () => {
  const causes = [{ field: "metadata.uid" }, { field: "spec.x" }];
  const error = errorOfAnswer(call, WRITES, answer(422, { details: { causes } }));
  assert.equal(error.kind, "invalid");
});

Deno.test("the header wins over the time in the Status", () => {
  const status = { details: { retryAfterSeconds: 3 } };
  assert.equal(errorOfAnswer(call, READS, answer(429, status)).retryAfterMs, 3_000);
  assert.equal(errorOfAnswer(call, READS, answer(429, status, 1_000)).retryAfterMs, 1_000);
  assert.equal(readStatus({ details: { retryAfterSeconds: 0 } }).retryAfterMs, null);
});

Deno.test("Retry-After is seconds, or a date against the server's own", () => {
  const date = "Thu, 01 Jan 2026 00:00:07 GMT";
  const now = Date.UTC(2026, 0, 1, 0, 0, 2);
  assert.equal(readRetryAfter("3", null), 3_000);
  assert.equal(readRetryAfter(" 0 ", null), 0);
  assert.equal(readRetryAfter(date, now), 5_000);
  assert.equal(readRetryAfter(date, now + 60_000), 0);
  assert.equal(readRetryAfter(date, null), null);
  for (const header of [null, "", "-1", "1.5", "soon", "99999999999", "2026-01-01"]) {
    assert.equal(readRetryAfter(header, now), null);
  }
});

Deno.test("a date is read as HTTP writes it, and as nothing else", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 4_000_000_000 }), (seconds) => {
    assert.equal(readHttpDate(new Date(seconds * 1_000).toUTCString()), seconds * 1_000);
  }));
  for (const text of [null, "", "2026-01-01T00:00:00Z", "Thu, 32 Jan 2026 00:00:00 GMT", "1"]) {
    assert.equal(readHttpDate(text), null);
  }
});
