/** The npm package as its users have it: packed, installed in an empty project, and run by Node. */

import assert from "node:assert/strict";
import { z } from "zod";
import manifest from "../../deno.json" with { type: "json" };
import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { LEASES } from "../../lib/kube/mod.ts";
import { createAuthority, FakeCluster } from "../../lib/testing/mod.ts";
import { blocksIn, readDocument } from "../docs/markdown.ts";
import { TextLineStream } from "../service/text_lines.ts";
import { end, NodeProject } from "./node_project.ts";

const ISOLATED = new URL("isolated_program.js", import.meta.url);
const PACKAGE = "node_modules/@holdfast/holdfast";
const sourceMap = z.object({
  sources: z.tuple([z.string()]),
  sourcesContent: z.tuple([z.string().min(1)]),
});

/** The quick start, as the page shows it: its two files. */
async function quickStart(): Promise<readonly [string, string]> {
  const blocks = blocksIn(await readDocument("docs/election.md"));
  const campaign = blocks.find(({ language }) => language === "ts")?.text;
  const main = blocks.find(({ language }) => language === "js")?.text;
  assert.ok(campaign !== undefined && main !== undefined);
  return [campaign, main];
}

Deno.test("the package has each export with its declarations, each module with its source, and no more", async (context) => {
  await using project = await NodeProject.create();

  await context.step("every module has declarations and a source map with its text", async () => {
    const { stdout } = await end("tar", ["-tzf", project.tarball], project.folder);
    const files = stdout.trim().split("\n").map((name) => name.replace(/^package\//, ""));
    const modules = files.filter((name) => name.endsWith(".js"));
    const expected = modules.flatMap((name) => [name, `${name}.map`, name.replace(/js$/, "d.ts")]);
    assert.ok(modules.includes("lib/election/mod.js"));
    assert.deepEqual(
      files.sort(),
      [...expected, "LICENSE", "README.md", "package.json"].sort(),
    );
    for (const name of modules) {
      const text = await Deno.readTextFile(`${project.folder}/${PACKAGE}/${name}.map`);
      assert.match(sourceMap.parse(JSON.parse(text)).sourcesContent[0], /\w/, name);
    }
  });

  await context.step("Node loads every export, without the optional package", async () => {
    const names = Object.keys(manifest.exports).map((door) => door.replace(".", manifest.name));
    const imports = names.map((name) => `Object.keys(await import("${name}")).length`).join(", ");
    const { code, stdout, stderr } = await project.run(
      `console.log(JSON.stringify([process.versions.node, ${imports}]))`,
    );
    assert.equal(code, 0, stderr);
    const [version, ...counts] = z.tuple([z.string()]).rest(z.number()).parse(JSON.parse(stdout));
    assert.ok(Number.parseInt(version) >= 20, version);
    assert.equal(counts.length, names.length);
    assert.ok(counts.every((count) => count > 0), stdout);
  });

  const [campaign, main] = await quickStart();
  await context.step("a strict project compiles against the declarations", async () => {
    const planted = "import { Elector } from '@holdfast/holdfast/election'; new Elector(1);";
    await project.write("planted.ts", planted);
    const complaints = project.compile("planted.ts");
    assert.equal(complaints.length, 1);
    assert.match(complaints[0] ?? "", /'number' is not assignable .*'ElectorOptions'/);
    await project.write("campaign.ts", campaign);
    assert.deepEqual(project.compile("campaign.ts"), []);
  });

  await context.step(
    "the quick start leads, over TLS of a private authority, and releases",
    async () => {
      await project.write("main.js", main);
      await using cluster = new FakeCluster({
        clock: systemClock,
        entropy: systemEntropy,
        namespaces: ["app"],
      });
      const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
      const { keyPem, certPem } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
      const server = await cluster.listen({ key: keyPem, cert: certPem });
      await project.write("ca.crt", authority.caPem);
      await project.write("namespace", "app");
      const token = cluster.tokenFor({ namespace: "app", serviceAccount: "default" });
      await project.write("token", `${token}\n`);

      const env = { API_SERVER: server.url, SERVICE_ACCOUNT: project.folder, HOSTNAME: "pod-1" };
      const child = project.start("main.js", env);
      const lines: string[] = [];
      const text = child.stdout.pipeThrough(new TextDecoderStream());
      for await (const line of text.pipeThrough(new TextLineStream())) {
        lines.push(line);
        if (line.startsWith("leads with token ")) {
          const lease = cluster.read(LEASES, { namespace: "app", name: "report" });
          assert.match(lease?.spec?.holderIdentity ?? "", /^pod-1-[0-9a-f]{8}$/);
          assert.equal(line, `leads with token ${lease?.metadata?.resourceVersion}`);
          child.kill("SIGTERM");
        }
      }
      const { code } = await child.status;
      assert.equal(code, 0, lines.join("\n"));
      assert.ok(lines.includes("stops"), lines.join("\n"));
      const lease = cluster.read(LEASES, { namespace: "app", name: "report" });
      assert.equal(lease?.spec?.holderIdentity, undefined);
      assert.ok(!lines.join("\n").includes(token));
    },
  );

  await context.step("isolated tasks run in the threads of Node", async (steps) => {
    await project.write("isolated.js", await Deno.readTextFile(ISOLATED));
    const run = async (task: string) => {
      const { code, stdout, stderr } = await end("node", ["isolated.js", task], project.folder);
      return { code, lines: stdout.trim().split("\n"), stderr };
    };
    await steps.step(
      "a task that computes holds up nobody, and sees the end of its term",
      async () => {
        const { code, lines, stderr } = await run("computes");
        assert.equal(code, 0, stderr);
        assert.ok(Number(/^(\d+) turns$/.exec(lines[0] ?? "")?.[1]) >= 5, lines.join("; "));
        assert.deepEqual(lines.slice(1), ["computed", "done"]);
      },
    );
    await steps.step("a task that overruns and answers is ended with its timers", async () => {
      const warning = "A leader task did not stop in time, so its worker is ended";
      // On a machine that is too busy to let the thread answer within 100 ms the process ends, and rightly so.
      for (let attempt = 1;; attempt++) {
        const { code, lines, stderr } = await run("deaf");
        if (code === 1 && attempt < 5) continue;
        assert.equal(code, 0, stderr);
        assert.deepEqual(lines.slice(1), [warning, "done"]);
        break;
      }
    });
    await steps.step(
      "a task whose thread crashes, or ends itself, fails and not the program",
      async () => {
        for (const [task, why] of [["crashes", "out of nowhere"], ["exits", "it ended with 3"]]) {
          const { code, lines, stderr } = await run(task ?? "");
          assert.equal(code, 0, stderr);
          assert.ok(
            lines.includes(`failed: Cannot go on as the worker of the task failed: ${why}`),
            lines.join("; "),
          );
        }
      },
    );
  });
});

Deno.test("the task refuses an option that it does not know", async () => {
  const script = new URL("../../deploy/package.ts", import.meta.url).pathname;
  const { code, stdout } = await end(Deno.execPath(), ["run", "-A", script, "--odd"], ".");
  assert.equal(code, 1);
  assert.equal(stdout, "Cannot make the package as the only option is '--out FOLDER'\n");
});
