/**
 * The programs of the recipes, with the client in the program itself: under Deno, and under Node from the package.
 */

import assert from "node:assert/strict";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { NodeProject } from "../package/node_project.ts";
import { example, Program, RecipePlace } from "./recipe_place.ts";

/** Stands for the client of the database: it takes long over a file whose name says so. */
const MYSQL = `
case "$2" in
  *long*) trap 'echo asked; exit 1' TERM; echo working; while :; do sleep 0.1; done ;;
  *broken*) exit 3 ;;
  *) echo "$2" ;;
esac`;

clusterTest(
  "the TypeScript and the Node program: files in order, 116 after a loss, 1 after a failure, 111 and 112 with nothing done",
  async (cluster) => {
    await using place = await RecipePlace.open(cluster, "recipe-programs");
    await place.program("mysql", MYSQL);
    await using project = await NodeProject.create();
    await project.write("migrate.js", await Deno.readTextFile(example("node/migrate.js")));
    const folders: Record<string, string> = {};
    for (
      const [name, files] of [["good", ["2.sql", "1.sql", "notes.txt"]], ["long", [
        "1-long.sql",
        "2.sql",
      ]], ["broken", ["1-broken.sql"]]] as const
    ) {
      folders[name] = `${place.caller.folder}/${name}`;
      await Deno.mkdir(folders[name]);
      for (const file of files) await Deno.writeTextFile(`${folders[name]}/${file}`, "");
    }
    const permissions = ["--allow-env", "--allow-net", "--allow-read", "--allow-run=mysql"];
    const programs: Readonly<Record<string, readonly string[]>> = {
      deno: [
        Deno.execPath(),
        "run",
        "-q",
        "--no-prompt",
        ...permissions,
        example("typescript/migrate.ts"),
      ],
      node: ["node", `${project.folder}/migrate.js`],
    };
    await Promise.all(
      Object.entries(programs).flatMap(([name, command]) => {
        const start = async (
          group: string,
          folder: string,
          change: Readonly<Record<string, string>> = {},
        ) => {
          const { env } = await place.group(group);
          return new Program([...command, folders[folder] ?? ""], { env: { ...env, ...change } });
        };
        const cases = [
          async () => {
            const group = `${name}-good`;
            await using run = await start(group, "good");
            const { code, stdout, stderr } = await run.ended();
            assert.equal(code, 0, stderr);
            assert.deepEqual(stdout.trim().split("\n").map((line) => line.split("/").at(-1)), [
              "1.sql",
              "2.sql",
            ]);
            assert.match(stderr, /Holds the leases: active site iad, fence \d+/);
            assert.deepEqual(await place.held(group), []);
          },
          async () => {
            const group = `${name}-lost`;
            await using run = await start(group, "long");
            await run.said(/^working$/m);
            await place.failOver(group);
            const { code, stdout, stderr } = await run.ended();
            assert.equal(code, 116, stderr);
            assert.match(stdout, /^asked$/m);
            assert.doesNotMatch(stderr, /Applied/);
            assert.match(stderr, /Authority is lost after-ddl/);
          },
          async () => {
            const group = `${name}-broken`;
            await using run = await start(group, "broken");
            const { code, stderr } = await run.ended();
            assert.equal(code, 1, stderr);
            assert.match(stderr, /mysql ended with 3/);
            assert.deepEqual(
              await place.held(group),
              ["migration"],
              "Until somebody has looked at it",
            );
          },
          async () => {
            const token = { HOLDFAST_TOKEN_FILE: await place.strangersToken() };
            await using run = await start(`${name}-stranger`, "good", token);
            const { code, stdout, stderr } = await run.ended();
            assert.deepEqual([code, stdout], [112, ""], stderr);
          },
          async () => {
            await using run = await start(`${name}-signal`, "long");
            await run.said(/^working$/m);
            run.kill("SIGTERM");
            const { code, stderr } = await run.ended();
            assert.equal(code, 1, stderr);
            assert.match(stderr, /Stopped by SIGTERM/);
          },
        ];
        // The two differ in how they start a process and hear of signals: what is the same is tried once.
        return cases.filter((_, at) => name === "deno" || at !== 2).map((run) => run());
      }),
    );
  },
);
