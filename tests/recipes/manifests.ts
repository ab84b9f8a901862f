/**
 * The recipes that are manifests and pipelines, read as the cluster and the runner read them.
 *
 * @module
 */

import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { example } from "./recipe_place.ts";

const container = z.looseObject({
  command: z.array(z.string()),
  env: z.array(z.strictObject({ name: z.string(), value: z.string() })),
});

const podTemplate = z.looseObject({
  metadata: z.looseObject({ labels: z.record(z.string(), z.string()) }),
  spec: z.looseObject({
    serviceAccountName: z.string(),
    automountServiceAccountToken: z.literal(false),
    terminationGracePeriodSeconds: z.number().min(30),
    containers: z.array(z.looseObject({})),
    initContainers: z.array(z.looseObject({})).optional(),
    volumes: z.array(z.looseObject({ name: z.string() })),
  }),
});

/** A Job or a Deployment of a recipe. */
export const manifestSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.enum(["Job", "Deployment"]),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string(),
    annotations: z.record(z.string(), z.string()).optional(),
  }),
  spec: z.looseObject({ template: podTemplate }),
});

/** One of the recipes that are manifests. */
export type RecipeManifest = z.infer<typeof manifestSchema>;

/** The recipes that are manifests, by their file. */
export const MANIFESTS = [
  "job/job.yaml",
  "argo-cd/presync.yaml",
  "helm/templates/migrate.yaml",
  "init-container/deployment.yaml",
] as const;

/** Reads a manifest: one document, without anything that a template engine would have to fill in. */
export async function readManifest(path: string): Promise<RecipeManifest> {
  const text = await Deno.readTextFile(example(path));
  if (text.includes("{{")) throw new Error(`Cannot read ${path} as it needs a template engine`);
  const [document, ...more] = parseAllDocuments(text);
  if (document === undefined || more.length > 0) throw new Error(`${path} must be one document`);
  return manifestSchema.parse(document.toJS());
}

/** The container that migrates. */
export function migratingContainer({ spec: { template: { spec } } }: RecipeManifest) {
  const [found] = spec.initContainers ?? spec.containers;
  return container.parse(found);
}

/** What a runner is told: lines for a shell, and variables. */
export interface Pipeline {
  readonly variables: Readonly<Record<string, string>>;
  readonly script: string;
  readonly after: string;
  /** The exit codes after which the runner begins again. */
  readonly retried: readonly number[];
}

/** Reads the GitLab job: its lines run in one shell, one after the other. */
export async function readGitlab(): Promise<Pipeline> {
  const text = await Deno.readTextFile(example("gitlab-ci/.gitlab-ci.yml"));
  const { migrate } = z.strictObject({
    migrate: z.strictObject({
      stage: z.string(),
      tags: z.array(z.string()),
      image: z.string(),
      interruptible: z.literal(false),
      resource_group: z.string(),
      timeout: z.string(),
      retry: z.strictObject({ max: z.number().max(2), exit_codes: z.array(z.number()) }),
      variables: z.record(z.string(), z.string()),
      script: z.array(z.string()),
      after_script: z.array(z.string()),
    }),
  }).parse(parse(text));
  const { variables, script, after_script, retry } = migrate;
  const after = after_script.join("\n");
  return { variables, script: script.join("\n"), after, retried: retry.exit_codes };
}

/** Reads the GitHub job: each step runs in a shell of its own. */
export async function readGithub(): Promise<Pipeline> {
  const text = await Deno.readTextFile(example("github-actions/migrate.yaml"));
  const { jobs: { migrate } } = z.looseObject({
    on: z.unknown(),
    jobs: z.strictObject({
      migrate: z.strictObject({
        "runs-on": z.array(z.string()),
        "timeout-minutes": z.number(),
        concurrency: z.strictObject({ group: z.string(), "cancel-in-progress": z.literal(false) }),
        env: z.record(z.string(), z.string()),
        steps: z.tuple([
          z.strictObject({ name: z.string(), shell: z.literal("bash"), run: z.string() }),
          z.strictObject({ name: z.string(), shell: z.literal("bash"), run: z.string() }),
          z.strictObject({
            name: z.string(),
            if: z.literal("always()"),
            shell: z.literal("bash"),
            run: z.string(),
          }),
        ]),
      }),
    }),
  }).parse(parse(text));
  const [first, second, last] = migrate.steps;
  return {
    variables: migrate.env,
    script: `bash -eo pipefail -c '${quoted(first.run)}'\nexec bash -eo pipefail -c '${
      quoted(second.run)
    }'`,
    after: last.run,
    retried: [],
  };
}

function quoted(text: string): string {
  return text.replaceAll("'", `'\\''`);
}
