import assert from "node:assert/strict";
import { Registry } from "prom-client";
import { CertificateError } from "../../lib/host/certificate.ts";
import {
  type CertificateRotationOptions,
  type DirectoryWatch,
  startCertificateRotation,
} from "../../lib/host/certificate_rotation.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";
import {
  eventually,
  issueFor,
  realClock,
  recordingLogger,
  testAuthority,
  writePair,
} from "./support.ts";

const authority = await testAuthority();
const first = await issueFor(authority, "first");
const second = await issueFor(authority, "second");
const third = await issueFor(authority, "third");
const REFUSED = "tls certificate refused, the one before stays in use";

async function rotate(
  files: { certFile: string; keyFile: string },
  options: Partial<CertificateRotationOptions> = {},
) {
  const logger = recordingLogger();
  const registry = new Registry();
  const rotation = await startCertificateRotation({
    certFile: files.certFile,
    keyFile: files.keyFile,
    clock: realClock,
    logger,
    registry,
    settleMs: 20,
    ...options,
  });
  const value = async (name: string, result?: string) => {
    const metric = await registry.getSingleMetric(name)?.get();
    return metric?.values.find((sample) => sample.labels.result === result)?.value;
  };
  return {
    rotation,
    lines: logger.lines,
    warnings: () => logger.lines.filter((line) => line.level === "warn"),
    reloads: (result: "success" | "failure") =>
      value("holdfast_tls_certificate_reloads_total", result),
    expiry: () => value("holdfast_tls_certificate_expiry_timestamp_seconds"),
    [Symbol.asyncDispose]: () => rotation[Symbol.asyncDispose](),
  };
}

Deno.test("a pair that cannot be used at the start is an error, and nothing stays open", async () => {
  await using files = await writePair({ certPem: "garbage", keyPem: first.keyPem });
  await assert.rejects(rotate(files), CertificateError);
});

Deno.test("both counters and the expiry are there from the start", async () => {
  await using files = await writePair(first);
  await using rotating = await rotate(files);
  assert.equal(await rotating.reloads("success"), 0);
  assert.equal(await rotating.reloads("failure"), 0);
  assert.equal(await rotating.expiry(), rotating.rotation.current.notAfterMs / 1000);
});

Deno.test("files that are written anew are taken into use", async () => {
  await using files = await writePair(first);
  await using rotating = await rotate(files);
  const applied: string[] = [];
  rotating.rotation.onChange((pair) => applied.push(pair.certPem));
  const unsubscribe = rotating.rotation.onChange(() => assert.fail("it has unsubscribed"));
  unsubscribe();
  await writePair(second, files.directory);
  await eventually(() => rotating.rotation.current.certPem === second.certPem, "the second pair");
  assert.deepEqual(applied, [second.certPem]);
  assert.equal(await rotating.reloads("success"), 1);
  const line = rotating.lines.find((line) => line.message === "tls certificate reloaded");
  assert.equal(line?.fields.file, files.certFile);
});

Deno.test("a mounted Secret is followed through each swap of its link", async () => {
  const directory = await Deno.makeTempDir();
  const mount = async (name: string, pair: typeof first) => {
    await Deno.mkdir(`${directory}/..${name}`);
    await writePair(pair, `${directory}/..${name}`);
    await Deno.symlink(`..${name}`, `${directory}/..data_tmp`);
    await Deno.rename(`${directory}/..data_tmp`, `${directory}/..data`);
  };
  await mount("1", first);
  const files = { certFile: `${directory}/tls.crt`, keyFile: `${directory}/tls.key` };
  await Deno.symlink("..data/tls.crt", files.certFile);
  await Deno.symlink("..data/tls.key", files.keyFile);
  await using rotating = await rotate(files);
  for (const [name, pair] of [["2", second], ["3", third], ["4", first]] as const) {
    await mount(name, pair);
    await eventually(() => rotating.rotation.current.certPem === pair.certPem, `swap ${name}`);
  }
  assert.equal(await rotating.reloads("failure"), 0);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("a bad pair leaves the old one in use, with one warning and one count per change", async () => {
  await using files = await writePair(first);
  await using rotating = await rotate(files, { recheckMs: 30 });
  await Deno.writeTextFile(files.keyFile, second.keyPem);
  await eventually(() => rotating.warnings().length === 1, "the first warning");
  assert.equal(rotating.rotation.current.certPem, first.certPem);
  assert.equal(rotating.warnings()[0]?.message, REFUSED);
  assert.equal(rotating.warnings()[0]?.fields.problem, "key_mismatch");
  await Deno.writeTextFile(files.keyFile, third.keyPem);
  await eventually(() => rotating.warnings().length === 2, "the second warning");
  await Deno.remove(files.certFile);
  await eventually(() => rotating.warnings().length === 3, "the third warning");
  assert.equal(rotating.warnings()[2]?.fields.problem, "unreadable");
  assert.equal(await rotating.reloads("failure"), 3);
  await writePair(second, files.directory);
  await eventually(() => rotating.rotation.current.certPem === second.certPem, "recovery");
  assert.equal(await rotating.reloads("success"), 1);
});

Deno.test("a bad pair that goes back to the one in use is forgotten, and warned of when it comes again", async () => {
  await using files = await writePair(first);
  await using rotating = await rotate(files, { recheckMs: 20 });
  for (const warnings of [1, 2]) {
    await Deno.writeTextFile(files.certFile, "garbage");
    await eventually(() => rotating.warnings().length === warnings, `warning ${warnings}`);
    await Deno.writeTextFile(files.certFile, first.certPem);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(await rotating.reloads("failure"), 2);
  assert.equal(await rotating.reloads("success"), 0);
});

Deno.test("a pair that its user refuses does not become the current one", async () => {
  await using files = await writePair(first);
  await using rotating = await rotate(files);
  rotating.rotation.onChange(() => {
    throw new Error("no");
  });
  await writePair(second, files.directory);
  await eventually(() => rotating.warnings().length === 1, "the warning");
  assert.equal(rotating.warnings()[0]?.fields.problem, "not_applied");
  assert.equal(rotating.rotation.current.certPem, first.certPem);
});

/** Moves the test clock on in steps, for the reading of the files takes real time in between. */
async function advanceUntil(clock: TestClock, condition: () => boolean, what: string) {
  await eventually(async () => {
    await clock.advance(30_000);
    return condition();
  }, what);
}

Deno.test("a change that no watch reports is found by the slow check", async () => {
  await using elsewhere = await writePair(first);
  const directory = await Deno.makeTempDir();
  const files = { certFile: `${directory}/tls.crt`, keyFile: `${directory}/tls.key` };
  await Deno.symlink(elsewhere.certFile, files.certFile);
  await Deno.symlink(elsewhere.keyFile, files.keyFile);
  const clock = new TestClock(Date.now());
  await using rotating = await rotate(files, { clock });
  await writePair(second, elsewhere.directory);
  await clock.advance(59_000);
  assert.equal(rotating.rotation.current.certPem, first.certPem);
  await advanceUntil(clock, () => rotating.rotation.current.certPem === second.certPem, "found");
  await Deno.remove(directory, { recursive: true });
});

Deno.test("a certificate that is not valid yet is taken into use when it is", async () => {
  const start = Date.now();
  const clock = new TestClock(start - 3_600_000);
  // Both begin five minutes before now, or a day before their end where that is earlier.
  const later = await issueFor(authority, "later");
  const older = await authority.issue({ notAfterMs: start + 3_600_000 });
  await using files = await writePair(older);
  await using rotating = await rotate(files, { clock });
  await writePair(later, files.directory);
  await advanceUntil(clock, () => rotating.warnings().length === 1, "the warning");
  assert.equal(rotating.warnings()[0]?.fields.problem, "not_yet_valid");
  await advanceUntil(clock, () => rotating.rotation.current.certPem === later.certPem, "in use");
  assert.equal(rotating.warnings().length, 1);
  assert.equal(await rotating.reloads("failure"), 1);
  assert.equal(await rotating.reloads("success"), 1);
});

/** A watch that breaks down as soon as it is asked for events. */
function brokenWatch(): DirectoryWatch {
  return {
    close() {},
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("overflow")) }),
  };
}

function noWatch(): DirectoryWatch {
  throw new Error("out of watches");
}

for (const [what, watch] of [["cannot begin", noWatch], ["breaks down", brokenWatch]] as const) {
  Deno.test(`a watch that ${what} is warned of once, and the slow check goes on`, async () => {
    await using files = await writePair(first);
    const clock = new TestClock(Date.now());
    await using rotating = await rotate(files, { clock, watch });
    await writePair(second, files.directory);
    await advanceUntil(clock, () => rotating.rotation.current.certPem === second.certPem, "found");
    assert.deepEqual(rotating.warnings(), [{
      level: "warn",
      message: "tls certificate cannot be watched, it is checked at intervals",
      fields: { files: [files.certFile, files.keyFile] },
    }]);
  });
}

Deno.test("a rotation that ended sets no timer and reads no file", async () => {
  await using files = await writePair(first);
  const clock = new TestClock(Date.now());
  const rotating = await rotate(files, { clock });
  await rotating[Symbol.asyncDispose]();
  await rotating[Symbol.asyncDispose]();
  await writePair(second, files.directory);
  await clock.advance(600_000);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(rotating.rotation.current.certPem, first.certPem);
});
