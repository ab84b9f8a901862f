/**
 * The manifests of the recipes: the real API server takes them, and what their containers run keeps the promise.
 */

import assert from "node:assert/strict";
import { Command } from "commander";
import { addRunCommands } from "../../handlers/commands/run/command_line.ts";
import type { RunOptions } from "../../handlers/commands/run/options.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { member } from "../cluster/raw_client.ts";
import { fakeSystem } from "../handlers/commands/fake_system.ts";
import { MANIFESTS, migratingContainer, readManifest } from "./manifests.ts";
import { Program, RecipePlace } from "./recipe_place.ts";

const SETTINGS = ["HOLDFAST_URL", "HOLDFAST_CA_FILE", "HOLDFAST_GROUP", "HOLDFAST_INSTANCE"];

clusterTest("the API server takes each manifest as it is", async (cluster) => {
  await cluster.createNamespace("orders-app");
  for (const path of MANIFESTS) {
    const manifest = await readManifest(path);
    const { apiVersion, kind, metadata: { namespace } } = manifest;
    const url = `/apis/${apiVersion}/namespaces/${namespace}/${kind.toLowerCase()}s`;
    const answer = await cluster.admin("POST", `${url}?dryRun=All&fieldValidation=Strict`, {
      body: manifest,
    });
    assert.equal(answer.status, 201, `${path}: ${JSON.stringify(answer.body)}`);
    assert.equal(answer.headers.get("Warning"), null, path);
    // It kept all: a member in the wrong place would have been refused, and none was put aside.
    assert.deepEqual(
      member(answer.body, "spec", "podFailurePolicy") !== undefined,
      kind === "Job",
      path,
    );
  }
});

Deno.test("each manifest gives the pod a token of our audience, its labels and all settings, and no token of the API server", async () => {
  for (const path of MANIFESTS) {
    const manifest = await readManifest(path);
    const { template } = manifest.spec;
    assert.equal(template.metadata.labels["bloodraven.shipstream.io/deploy-client"], "true");
    assert.equal(
      member(
        template.spec.volumes[0],
        "projected",
        "sources",
        "0",
        "serviceAccountToken",
        "audience",
      ),
      "bloodraven-deploy",
      path,
    );
    const { env } = migratingContainer(manifest);
    assert.deepEqual(env.map(({ name }) => name), SETTINGS);
    if (manifest.kind !== "Job") continue;
    assert.equal(member(template.spec, "restartPolicy"), "Never");
    const rules = member(manifest.spec, "podFailurePolicy", "rules");
    assert.deepEqual(rules, [
      { action: "FailJob", onPodConditions: [{ type: "DisruptionTarget" }] },
      {
        action: "FailJob",
        onExitCodes: { containerName: "migrate", operator: "NotIn", values: [111, 113, 114] },
      },
    ]);
  }
});

Deno.test("the hooks say when they run, and keep the log of the last run", async () => {
  assert.deepEqual((await readManifest("argo-cd/presync.yaml")).metadata.annotations, {
    "argocd.argoproj.io/hook": "PreSync",
    "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation",
  });
  assert.deepEqual((await readManifest("helm/templates/migrate.yaml")).metadata.annotations, {
    "helm.sh/hook": "pre-install,pre-upgrade",
    "helm.sh/hook-weight": "0",
    "helm.sh/hook-delete-policy": "before-hook-creation",
  });
});

Deno.test("what the Jobs run is understood by the command line of run", async () => {
  for (const path of MANIFESTS) {
    const { command } = migratingContainer(await readManifest(path));
    if (command[0] !== "holdfast") continue;
    const runs: RunOptions[] = [];
    const program = new Command("holdfast").exitOverride();
    addRunCommands(program, fakeSystem(), {
      run: (options) => Promise.resolve(runs.push(options)),
      runGuard: () => Promise.resolve(0),
    }, () => {});
    await program.parseAsync(command.slice(1), { from: "user" });
    assert.deepEqual(runs[0]?.command.slice(0, 2), ["sh", "-c"], path);
    assert.match(
      runs[0]?.command[2] ?? "",
      /^echo ddl > "\$HOLDFAST_PHASE_FILE" && exec flyway migrate$/,
    );
  }
});

clusterTest(
  "what the containers run keeps the promise: released after the end, 116 after a loss, signals passed on",
  async (cluster) => {
    await using place = await RecipePlace.open(cluster, "recipe-manifests");
    await place.program("flyway", FLYWAY);
    const [job, argo, helm, init] = await Promise.all(
      MANIFESTS.map(async (path) => migratingContainer(await readManifest(path)).command),
    );
    assert(job !== undefined && init !== undefined);
    assert.deepEqual([argo, helm], [job, job], "The Jobs differ in their annotations alone");
    // Side by side, each on a group of its own: most of the time they wait for a renewal.
    await Promise.all([
      ...[job, init].map((command, at) => endsWell(place, `good-${at}`, command)),
      losesTheLease(place, "lost", job),
      staysWhereDdlWasCutOff(place, "stays", init),
      passesSignalsOn(place, "signals", init),
    ]);
  },
);

async function start(
  place: RecipePlace,
  group: string,
  command: readonly string[],
  flyway: string,
) {
  const { env } = await place.group(group);
  return new Program(command, { env: { ...env, FLYWAY: flyway } });
}

type Case = (place: RecipePlace, group: string, command: readonly string[]) => Promise<void>;

const endsWell: Case = async (place, group, command) => {
  await using run = await start(place, group, command, "good");
  const { code, stdout, stderr } = await run.ended();
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^migrated as [0-9a-f-]{36}$/m);
  assert.deepEqual(await place.held(group), []);
};

const losesTheLease: Case = async (place, group, command) => {
  await using run = await start(place, group, command, "cut");
  await run.said(/^working$/m);
  await place.failOver(group);
  const { code, stderr } = await run.ended();
  assert.equal(code, 116, "The command says that DDL begins");
  assert.match(stderr, /verify the schema by hand/);
};

/** An init container would be started again by the kubelet. */
const staysWhereDdlWasCutOff: Case = async (place, group, command) => {
  await using run = await start(place, group, command, "cut");
  await run.said(/^working$/m);
  await place.failOver(group);
  await run.said(/^Verify the schema by hand, then delete this pod$/m);
  run.kill("SIGTERM");
  assert.equal((await run.ended()).code, 116);
};

const passesSignalsOn: Case = async (place, group, command) => {
  await using run = await start(place, group, command, "long");
  await run.said(/^working$/m);
  run.kill("SIGTERM");
  const { code, stdout } = await run.ended();
  assert.equal(code, 42, "The end of the migration is that of the container");
  assert.match(stdout, /^asked$/m);
  assert.deepEqual(await place.held(group), ["migration"], "Until somebody has looked at it");
};

/** A migration tool that does what the variable says. */
const FLYWAY = `
case "$FLYWAY" in
  good) echo "migrated as $HOLDFAST_OPERATION_ID" ;;
  cut) echo working; sleep 300 ;;
  long) trap 'echo asked; exit 42' TERM; echo working; while :; do sleep 0.1; done ;;
esac`;
