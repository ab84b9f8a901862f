import assert from "node:assert/strict";
import { parseDotenv } from "../../../lib/config/dotenv.ts";
import { DemoProcess } from "./demo/demo_process.ts";
import { HoldfastProcess } from "./holdfast_process.ts";

/** A demo whose story is over, and the variables of its file. */
async function openDemo() {
  await using stack = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "holdfast-" });
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const path = `${folder}/demo.env`;
  const demo = stack.use(await DemoProcess.start(["--env-file", path]));
  await demo.ready();
  const env = Object.fromEntries(parseDotenv(path, await Deno.readTextFile(path)));
  const kept = stack.move();
  return { env, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** Takes a lease with the variables alone, as any program could. */
async function grant(env: Readonly<Record<string, string>>, operationId: string): Promise<number> {
  const read = (name: string) => Deno.readTextFile(env[name] ?? "");
  using client = Deno.createHttpClient({ caCerts: [await read("HOLDFAST_CA_FILE")] });
  const url = `${env.HOLDFAST_URL}/deploy/v1/groups/${env.HOLDFAST_GROUP}/leases`;
  const response = await fetch(url, {
    client,
    method: "POST",
    headers: { Authorization: `Bearer ${await read("HOLDFAST_TOKEN_FILE")}` },
    body: JSON.stringify({
      kind: "migration",
      operationId,
      instance: env.HOLDFAST_INSTANCE,
      ttlSeconds: 120,
    }),
  });
  await response.body?.cancel();
  return response.status;
}

Deno.test("with the demo's env file, status and revoke work as in a cluster", async () => {
  await using demo = await openDemo();
  const { env } = demo;
  const admin = { KUBECONFIG: env.DEMO_KUBECONFIG ?? "" };
  assert.equal(await grant(env, "op-1"), 201);

  const caller = await HoldfastProcess.run(["status"], env);
  assert.deepEqual([caller.code, caller.stderr], [0, ""]);
  assert.match(
    caller.stdout,
    /^group database\/orders: active site \w+, generation \d+, stable\nlease database\/orders: migration of operation op-1 for orders-app, 1m \d+s left, expires [^\n]*Z\n$/,
  );

  await using watching = HoldfastProcess.start(["status", "--watch", "--json"], env);
  await watching.printed(/"operationId":"op-1"/);
  const seen = await HoldfastProcess.run(["status"], admin);
  assert.match(seen.stdout, /operation op-1 for orders-app by orders-app\/deployer, age \d+s, 1m /);

  const args = ["revoke", "--group", "orders", "--yes"];
  const { code, stdout, stderr } = await HoldfastProcess.run(args, admin);
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /^revoked: migration of operation op-1 for orders-app\nDone: 1 lease /m);
  await watching.printed(/"leases":\[\][^\n]*\n$/);
  watching.kill("SIGTERM");
  assert.equal((await watching.ended()).code, 0);

  assert.equal(await grant(env, "op-1"), 409);
  const tombstones = await HoldfastProcess.run(["status", "--all"], admin);
  assert.match(tombstones.stdout, /operation op-1 .*revoked: operator_revoked/);
});
