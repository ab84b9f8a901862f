import assert from "node:assert/strict";
import { ClusterConfigError } from "../../lib/kube/connect_errors.ts";
import {
  NO_CREDENTIALS,
  staticToken,
  TOKEN_FILE_AGE_MS,
  TokenFile,
} from "../../lib/kube/credentials.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { type Logger, silentLogger } from "../../lib/runtime/log.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";
import { json, lease, SECRET_TEXT, setup, status } from "./support.ts";

const { signal } = new AbortController();

/** A token file that a test writes. */
function tokenFile(first: string | Error) {
  const clock = new TestClock();
  const warnings: unknown[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (message, fields) => void warnings.push([message, fields]),
  };
  const file = { content: first, reads: 0 };
  const readTextFile = async (path: string) => {
    assert.equal(path, "/token");
    file.reads++;
    await Promise.resolve();
    if (file.content instanceof Error) throw file.content;
    return file.content;
  };
  const credentials = new TokenFile({ path: "/token", clock, logger, readTextFile });
  const token = async () => (await credentials.headers()).authorization;
  return { clock, warnings, file, credentials, token };
}

Deno.test("a token file is read once for many calls, without the spaces around the token", async () => {
  const { file, token } = tokenFile(" one\n");
  assert.deepEqual(await Promise.all([token(), token()]), ["Bearer one", "Bearer one"]);
  assert.equal(await token(), "Bearer one");
  assert.equal(file.reads, 1);
});

Deno.test("a token that the kubelet wrote anew is used well within a minute", async () => {
  const { file, token, clock } = tokenFile("one");
  await token();
  file.content = "two";
  await clock.advance(TOKEN_FILE_AGE_MS - 1);
  assert.equal(await token(), "Bearer one");
  await clock.advance(1);
  assert.equal(await token(), "Bearer two");
  assert.equal(file.reads, 2);
  assert.ok(TOKEN_FILE_AGE_MS <= 60_000);
});

Deno.test("a file that cannot be read leaves the last token in use, with one warning each time", async () => {
  const { file, token, clock, warnings } = tokenFile("one");
  await token();
  file.content = new Error(SECRET_TEXT);
  await clock.advance(60_000);
  assert.equal(await token(), "Bearer one");
  assert.equal(await token(), "Bearer one");
  assert.deepEqual(warnings, [[
    "kubernetes token file cannot be read; its last token stays in use",
    { file: "/token" },
  ]]);
  file.content = "  ";
  await clock.advance(60_000);
  assert.equal(await token(), "Bearer one", "the kubelet may be about to write");
  file.content = "two";
  await clock.advance(60_000);
  assert.equal(await token(), "Bearer two");
});

Deno.test("a file that never held a token is an error that names it", async () => {
  const noToken = [`${SECRET_TEXT}\n${SECRET_TEXT}`, `${SECRET_TEXT} x`, `${SECRET_TEXT}é`, "a\0b"];
  for (const content of ["", "\n", ...noToken, new Error(SECRET_TEXT)]) {
    const { token, credentials } = tokenFile(content);
    const fault = (error: unknown) => {
      assert.ok(error instanceof ClusterConfigError);
      assert.equal(
        error.message,
        "Cannot read a token from /token: it must be a readable file that holds one, of visible ASCII characters",
      );
      return true;
    };
    await assert.rejects(token(), fault);
    await assert.rejects(credentials.refresh(), fault);
  }
});

Deno.test("a 401 reads the file once more, and the call is sent again with what it holds", async () => {
  const { file, credentials } = tokenFile("old");
  const { api, seen } = setup([status(401, "Unauthorized"), json(lease("a", "1"))], {
    credentials,
  });
  await credentials.headers();
  file.content = "new";
  await api.get(LEASES, { name: "a", namespace: "b" }, { signal });
  assert.deepEqual(seen.map(({ headers }) => headers.get("authorization")), [
    "Bearer old",
    "Bearer new",
  ]);
});

Deno.test("a static token is sent as it is, and cannot be renewed", async () => {
  assert.deepEqual(await staticToken("t").headers(signal), { authorization: "Bearer t" });
  assert.equal(await staticToken("t").refresh(signal), false);
  assert.deepEqual(await NO_CREDENTIALS.headers(signal), {});
  assert.equal(await NO_CREDENTIALS.refresh(signal), false);
});
