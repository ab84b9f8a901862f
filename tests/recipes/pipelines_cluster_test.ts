/**
 * The pipelines of the recipes: their lines run in a shell as the runner would run them, with a real kubectl.
 */

import assert from "node:assert/strict";
import { ensureBinaries } from "../cluster/binaries.ts";
import { clusterTest, hasCluster } from "../cluster/cluster_test_support.ts";
import { type Pipeline, readGithub, readGitlab } from "./manifests.ts";
import { Program, RecipePlace } from "./recipe_place.ts";

const binaries = hasCluster ? await ensureBinaries({ programs: ["kubectl"] }) : null;

/** A migration tool that does what the variable says. */
const FLYWAY = `
case "$FLYWAY" in
  good) echo "migrated as $HOLDFAST_OPERATION_ID" ;;
  cut) echo working; sleep 300 ;;
esac`;

clusterTest(
  "the lines of GitLab and of GitHub: a good end with the leases released, a loss with 116, and no token left behind",
  async (cluster) => {
    if (binaries === null) throw new Error("Cannot run as there is no kubectl");
    await using place = await RecipePlace.open(cluster, "recipe-pipelines");
    const { folder, namespace } = place.caller;
    await place.program("flyway", FLYWAY);
    await place.program("kubectl", `exec ${binaries.path("kubectl")} "$@"`);
    await Deno.writeTextFile(`${folder}/kubeconfig`, cluster.kubeconfig());
    const pipelines = { gitlab: await readGitlab(), github: await readGithub() };
    await Promise.all(
      Object.entries(pipelines).flatMap(([name, pipeline]) => [
        run(name, pipeline, "good", 0, /^migrated as [0-9a-f-]{36}$/m),
        run(name, pipeline, "cut", 116, /^working$/m),
      ]),
    );

    async function run(
      runner: string,
      { script, after }: Pipeline,
      flyway: string,
      code: number,
      says: RegExp,
    ): Promise<void> {
      const name = `${runner}-${flyway}`;
      const group = await place.group(name);
      const token = `${folder}/token-${name}`;
      const env = {
        ...group.env,
        KUBECONFIG: `${folder}/kubeconfig`,
        DEPLOY_NAMESPACE: namespace,
        HOLDFAST_TOKEN_FILE: token,
        FLYWAY: flyway,
      };
      await using process = new Program(["bash", "-eo", "pipefail", "-c", script], { env });
      await process.said(says);
      assert.equal(
        ((await Deno.stat(token)).mode ?? 0) & 0o077,
        0,
        "Nobody else may read the token",
      );
      if (flyway === "cut") await place.failOver(name);
      const ended = await process.ended();
      assert.equal(ended.code, code, `${name}: ${ended.stderr}`);
      assert.deepEqual(await place.held(name), []);
      await using cleaning = new Program(["bash", "-eo", "pipefail", "-c", after], { env });
      assert.equal((await cleaning.ended()).code, 0);
      await assert.rejects(Deno.stat(token), Deno.errors.NotFound);
    }
  },
);

Deno.test("the pipelines name all settings, wait for each other, and are repeated only where nothing ran", async () => {
  for (const pipeline of [await readGitlab(), await readGithub()]) {
    assert.deepEqual(Object.keys(pipeline.variables).sort(), [
      "DEPLOY_NAMESPACE",
      "HOLDFAST_CA_FILE",
      "HOLDFAST_GROUP",
      "HOLDFAST_INSTANCE",
      "HOLDFAST_TOKEN_FILE",
      "HOLDFAST_URL",
    ]);
    assert.match(pipeline.script, /--audience bloodraven-deploy/);
    assert.match(
      pipeline.script,
      /holdfast run --wait 10m -- [^]*echo ddl > "\$HOLDFAST_PHASE_FILE"/,
    );
  }
  assert.deepEqual((await readGitlab()).retried, [111, 113, 114]);
});
