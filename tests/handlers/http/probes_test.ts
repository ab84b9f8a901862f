import assert from "node:assert/strict";
import { createProbes, stuckLeader } from "../../../handlers/http/probes.ts";

Deno.test("both probes answer ok as plain text when all is well", async () => {
  const app = createProbes({ live: () => "", ready: () => "" });
  for (const path of ["/healthz", "/readyz"]) {
    const response = await app.request(path);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), "ok");
    assert.match(response.headers.get("Content-Type") ?? "", /^text\/plain/);
    assert.equal(response.headers.get("Cache-Control"), "no-store");
  }
});

Deno.test("each probe has its own check, is asked each time, and says what is wrong", async () => {
  let live = "";
  let ready = "the group cache is not filled";
  const app = createProbes({ live: () => live, ready: () => Promise.resolve(ready) });
  const ask = async (path: string) => {
    const response = await app.request(path);
    return [response.status, await response.text()];
  };
  assert.deepEqual(await ask("/healthz"), [200, "ok"]);
  assert.deepEqual(await ask("/readyz"), [503, "the group cache is not filled"]);
  live = "leads without a renewal";
  ready = "";
  assert.deepEqual(await ask("/healthz"), [503, "leads without a renewal"]);
  assert.deepEqual(await ask("/readyz"), [200, "ok"]);
});

Deno.test("nothing else is on the port of the probes", async () => {
  const app = createProbes({ live: () => "", ready: () => "" });
  assert.equal((await app.request("/metrics")).status, 404);
  assert.equal((await app.request("/healthz/x")).status, 404);
  assert.equal((await app.request("/healthz", { method: "POST" })).status, 404);
});

Deno.test("a restart is asked for only while a leader has not renewed: no leader, a follower and a good leader are well", () => {
  const leadership = (leading: boolean, isLeader: boolean) => ({
    state: { leading, holder: "me", validUntil: null, draining: false },
    isLeader: () => isLeader,
  });
  assert.equal(stuckLeader(null), "");
  assert.equal(stuckLeader(leadership(false, false)), "");
  assert.equal(stuckLeader(leadership(true, true)), "");
  assert.equal(stuckLeader(leadership(true, false)), "leads and has not renewed in time");
});
