/**
 * `holdfast manifests service`: what the service needs in a cluster, as text, as files, or as a difference.
 *
 * @module
 */

import { LineCounter, parseDocument } from "yaml";
import { z } from "zod";
import type { Manifest } from "../../../lib/manifests/service/objects.ts";
import { readServiceValues, ValuesError } from "../../../lib/manifests/service/read_values.ts";
import { renderService } from "../../../lib/manifests/service/render.ts";
import { serviceValuesJsonSchema } from "../../../lib/manifests/service/values.ts";
import { renderYaml } from "../../../lib/manifests/yaml.ts";
import { openCluster } from "../administrator.ts";
import { build } from "../build.ts";
import { readDefinitions } from "../demo/crds.ts";
import { CommandFault, explain, FAILED, USAGE } from "../faults.ts";
import type { System } from "../system.ts";
import type { ServiceManifestsOptions } from "./arguments.ts";
import { changesIn, refuseForeignDefinitions } from "./cluster.ts";
import { writeFile, writeFolder } from "./output.ts";

/**
 * Writes the manifests.
 *
 * @returns The exit code: 0 written, or no difference; 1 refused or failed, or there is a difference; 2 values that cannot
 * be used; 111 the cluster cannot be reached; 112 it does not allow it.
 */
export async function manifestsService(options: ServiceManifestsOptions): Promise<number> {
  const { system } = options;
  try {
    return await run(options);
  } catch (error) {
    const fault = error instanceof ValuesError
      ? { message: error.message, exitCode: USAGE }
      : explain(error);
    if (fault === null) throw error;
    for (const line of fault.message.split("\n")) system.stderr.write(`holdfast: ${line}\n`);
    return fault.exitCode;
  }
}

async function run(options: ServiceManifestsOptions): Promise<number> {
  const { system, valuesFiles, outputDir, outputFile, withCrds, diff, schema } = options;
  if (schema) {
    system.stdout.write(`${JSON.stringify(serviceValuesJsonSchema(), null, 2)}\n`);
    return 0;
  }
  const values = readServiceValues(valuesFiles.map((file) => readYaml(system, file)));
  const { objects: rendered, warnings } = renderService(values, { version: build.version });
  for (const warning of warnings) system.stderr.write(`holdfast: warning: ${warning}\n`);
  const objects = withCrds ? [...definitions(), ...rendered] : rendered;

  if (withCrds || diff) {
    const { signal } = new AbortController();
    using cluster = await openCluster(system, signal);
    if (withCrds) await refuseForeignDefinitions(cluster.api, definitions(), signal);
    if (diff) {
      const changes = await changesIn(cluster.api, objects, signal);
      system.stdout.write(changes.map((line) => `${line}\n`).join(""));
      return changes.length === 0 ? 0 : FAILED;
    }
  }
  if (outputDir !== undefined) await writeFolder(outputDir, filesOf(objects, values.namespace));
  else if (outputFile !== undefined) await writeFile(outputFile, renderYaml(objects));
  else system.stdout.write(renderYaml(objects));
  return 0;
}

const definitionSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
});

/** The definitions of `deploy/crds`. */
function definitions(): readonly Manifest[] {
  return readDefinitions().map((definition) => definitionSchema.parse(definition));
}

/** One file for each object. Of two namespaces, the name of the file says which is not that of the service. */
function filesOf(objects: readonly Manifest[], own: string): ReadonlyMap<string, string> {
  return new Map(objects.map((object) => {
    const { kind, metadata: { name, namespace = own } } = object;
    const place = namespace === own ? [] : [namespace];
    return [`${[kind.toLowerCase(), ...place, name].join("-")}.yaml`, renderYaml([object])];
  }));
}

/** Reads a file of values. @throws {ValuesError} It does not exist, or is not YAML. */
function readYaml(system: System, file: string): unknown {
  const text = readText(system, file);
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { prettyErrors: false, lineCounter });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lineCounter.linePos(error.pos[0]);
    throw new ValuesError([
      `Cannot read ${file} as line ${line}, column ${col} is not valid YAML (${error.code})`,
    ]);
  }
  try {
    return document.toJS() ?? {};
  } catch {
    throw new ValuesError([`Cannot read ${file} as its aliases cannot be resolved`]);
  }
}

function readText(system: System, file: string): string {
  let text: string | undefined;
  try {
    text = system.readTextFile(file);
  } catch (error) {
    const why = error instanceof Error ? error.name : "it failed";
    throw new CommandFault(`Cannot read ${file} (${why}): name a file of values`, USAGE, {
      cause: error,
    });
  }
  if (text === undefined) {
    throw new CommandFault(
      `Cannot read ${file} as it does not exist: name a file of values`,
      USAGE,
    );
  }
  return text;
}
