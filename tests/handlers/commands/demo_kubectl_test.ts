import assert from "node:assert/strict";
import { CURL_TITLE, KUBECTL_TITLE, PLANNED_TITLE } from "../../../handlers/commands/demo/hints.ts";
import { ensureBinaries, printLine } from "../../cluster/binaries.ts";
import { TextLineStream } from "../../service/text_lines.ts";
import { DemoProcess } from "./demo/demo_process.ts";

const binaries = await ensureBinaries({ programs: ["kubectl"] });
const kubectl = binaries?.path("kubectl") ?? "";
if (binaries === null) {
  printLine(
    "The test of the demo with kubectl is skipped: there is no kubectl, and no Go to build it",
  );
}

/** Runs lines in a shell where `kubectl` is the real one. */
function shell(demo: DemoProcess, script: string): Deno.Command {
  return new Deno.Command("bash", {
    args: ["-e", "-o", "pipefail", "-c", `kubectl() { "${kubectl}" "$@"; }\n${script}`],
    // Its cache of what the server serves goes with the demo's folder.
    env: { HOME: demo.folder },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

async function output(demo: DemoProcess, script: string): Promise<string> {
  const { code, stdout, stderr } = await shell(demo, script).output();
  assert.deepEqual([code, new TextDecoder().decode(stderr)], [0, ""], script);
  return new TextDecoder().decode(stdout);
}

/** The line that begins with these words. */
function lineOf(lines: readonly string[], beginning: string): string {
  const found = lines.find((line) => line.startsWith(beginning));
  assert.ok(found, beginning);
  return found;
}

Deno.test({
  name: "the printed kubectl lines work: get, get lease -w, and annotate, which revokes the lease",
  ignore: binaries === null,
  async fn() {
    await using demo = await DemoProcess.start([]);
    await demo.ready();
    const lines = demo.between(KUBECTL_TITLE, PLANNED_TITLE);
    const curl = demo.between(CURL_TITLE, KUBECTL_TITLE);
    const kubeconfig = lineOf(lines, "export KUBECONFIG=");
    const place = lineOf(curl, "D=");
    const annotate = lineOf(lines, "kubectl annotate ");

    const seen = await output(demo, `${kubeconfig}\n${lineOf(lines, "kubectl get mysqlf")}`);
    assert.match(seen, /^mysqlfailovergroup\.shipstream\.io\/orders +pdx +8 +True/m);
    assert.match(seen, /^mysqldatabase\.shipstream\.io\/billing-app +orders /m);
    assert.match(seen, /^lease\.coordination\.k8s\.io\/bloodraven-deploy-orders-migration /m);

    const watching = shell(demo, `${kubeconfig}\nexec "${kubectl}" get lease -w`).spawn();
    const rows = watching.stdout.pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream())[Symbol.asyncIterator]();
    const rowWith = async (pattern: RegExp) => {
      for (;;) {
        const { done, value } = await rows.next();
        assert.ok(!done, `The watch ended without ${pattern}`);
        if (pattern.test(value)) return;
      }
    };
    try {
      await rowWith(/^bloodraven-deploy-orders-migration +billing-release-18 /);
      const take = curl.slice(curl.findIndex((line) => line.startsWith("# 2."))).slice(1, 3);
      const renew = lineOf(curl.slice(curl.findIndex((line) => line.startsWith("# 4."))), "curl");
      const answers = await output(
        demo,
        [place, kubeconfig, ...take, renew, annotate, renew].join("\n"),
      );
      await rowWith(/^bloodraven-deploy-orders-migration +curl-1 /);
      const statuses = answers.split("\n").filter((line) => /^\d{3}$/.test(line));
      assert.deepEqual(statuses, ["201", "200", "409"]);
      assert.match(answers, /"error":"revoked","reason":"operator_revoked"/);
      assert.match(answers, /^mysqlfailovergroup\S* annotated$/m);
    } finally {
      watching.kill("SIGTERM");
      await rows.return?.();
      await watching.stderr.cancel();
      await watching.status;
    }
    // The service removes the annotation when all is revoked: then the next deployment gets its turn.
    const next = lineOf(curl.slice(curl.findIndex((line) => line.startsWith("# 3."))), "curl");
    const patience =
      `for _ in $(seq 50); do A=$(${next}); [ "\${A##*[!0-9]}" = 423 ] || break; sleep 0.1; done`;
    assert.match(await output(demo, `${place}\n${patience}; echo "$A"`), /^201$/m);
  },
});

Deno.test({
  name:
    "the printed lines of a planned failover work, there and back: deferred, released, moved, revoked",
  ignore: binaries === null,
  async fn() {
    await using demo = await DemoProcess.start([]);
    await demo.ready();
    const setUp = [
      lineOf(demo.between(CURL_TITLE, KUBECTL_TITLE), "D="),
      lineOf(demo.between(KUBECTL_TITLE, PLANNED_TITLE), "export KUBECONFIG="),
    ];
    for (const [target, generation] of [["iad", 9], ["pdx", 10]] as const) {
      const shown = await output(demo, [...setUp, ...demo.between(PLANNED_TITLE)].join("\n"));
      const statuses = shown.split("\n").filter((line) => /^\d{3}$/.test(line));
      assert.deepEqual(statuses, ["201", "201", "200", "423", "204", "409"]);
      assert.match(
        shown,
        new RegExp(`"Planned failover to ${target} is held by the deployment curl-`),
      );
      assert.match(
        shown,
        new RegExp(`"reason":"topology_changed","topologyGeneration":${generation}`),
      );
      assert.match(shown, /PlannedFailoverDeferred/);
    }
  },
});
