import assert from "node:assert/strict";
import fc from "fast-check";
import { curlLines, kubectlLines } from "../../../../handlers/commands/demo/hints.ts";
import { wrap } from "../../../../handlers/commands/demo/narrator.ts";
import {
  choosePorts,
  listenError,
  serviceListenError,
} from "../../../../handlers/commands/demo/ports.ts";
import { RefusalError } from "../../../../handlers/commands/options.ts";
import { ListenError } from "../../../../lib/host/listener.ts";

Deno.test("wrapped text keeps its words, and no line with two of them is too wide", () => {
  const words = fc.array(fc.string({ minLength: 1, maxLength: 120 }).filter((w) => !/\s/.test(w)), {
    minLength: 1,
  });
  fc.assert(fc.property(words, fc.constantFrom("", "   "), (list, indent) => {
    const lines = wrap(list.join(" "), indent);
    assert.equal(lines.map((line) => line.slice(indent.length)).join(" "), list.join(" "));
    for (const line of lines) {
      assert.ok(line.startsWith(indent));
      assert.ok(line.length <= 100 || !line.slice(indent.length).includes(" "));
    }
  }));
});

Deno.test("a folder with a space and quotes reaches the shell as it is", async () => {
  const folder = `/tmp/it's a "demo"`;
  const hints = { folder, groupUrl: "https://x", metricsUrl: "http://x" };
  const [first = ""] = curlLines(hints);
  const [exported = ""] = kubectlLines(hints);
  const { stdout } = await new Deno.Command("bash", {
    args: ["-c", `${first}\n${exported}\nprintf '%s|%s' "$D" "$KUBECONFIG"`],
  }).output();
  assert.equal(new TextDecoder().decode(stdout), `${folder}|${folder}/kubeconfig`);
});

Deno.test("the ports follow each other from the first one on, and are free ones without it", () => {
  assert.deepEqual(choosePorts(9443), {
    tls: 9443,
    metrics: 9444,
    probes: 9445,
    auxiliary: 9446,
    apiServer: 9447,
  });
  const free = { tls: 0, metrics: 0, probes: 0, auxiliary: 0, apiServer: 0 };
  assert.deepEqual(choosePorts(undefined), free);
  assert.deepEqual(choosePorts(0), free);
  assert.equal(choosePorts(65_531).apiServer, 65_535);
  assert.throws(() => choosePorts(65_532), {
    name: "RefusalError",
    message: "Cannot use --port 65532 as the demo takes 5 ports from it on: give at most 65531",
  });
});

function messageOf(error: unknown): string {
  assert.ok(error instanceof RefusalError);
  return error.message;
}

Deno.test("a port that cannot be used is told with its number, its use and the option", () => {
  const ports = choosePorts(443);
  assert.match(
    messageOf(listenError({ code: "EACCES" }, "apiServer", ports)),
    /^Cannot listen on port 447 for the API server in memory as this user may not use the port: give another first port with --port/,
  );
  assert.match(
    messageOf(listenError({ code: "EOTHER" }, "tls", choosePorts(0))),
    /^Cannot listen on port 0 for the service as the system refuses it \(EOTHER\): give a first port with --port$/,
  );
  const cause = new ListenError("probes", { host: "127.0.0.1", port: 445 }, "EADDRINUSE");
  const wrapped = new RefusalError(cause.message, { cause });
  assert.match(
    messageOf(serviceListenError(wrapped, ports)),
    /^Cannot listen on port 445 for the service's probes as the port is in use/,
  );
});

Deno.test("an error that is not about a port stays what it is", () => {
  const ports = choosePorts(9443);
  const plain = new Error("x");
  const other = new ListenError("other", { port: 1 }, "EADDRINUSE");
  assert.equal(listenError(plain, "tls", ports), plain);
  assert.equal(serviceListenError(plain, ports), plain);
  assert.equal(serviceListenError(other, ports), other);
});
