/**
 * `deno task manifests`: writes what `deploy` has of the service's manifests: all values with their defaults, their JSON
 * schema, and the objects of the example values, as one file and as a folder with a kustomization.
 *
 * @module
 */

import { stringify } from "yaml";
import { manifestsService } from "../handlers/commands/manifests/service.ts";
import { productionSystem } from "../handlers/commands/system.ts";
import { serviceValuesJsonSchema, serviceValuesSchema } from "../lib/manifests/service/values.ts";
import { ROOT } from "./commands.ts";

/** The longest line of a comment. */
const LINE_WIDTH = 100;

const HEAD = `# yaml-language-server: $schema=values.schema.json
#
# The values of \`holdfast manifests service\`, each with its default. Copy those that you change.
# Written by \`deno task manifests\`.
`;

/** The text of `deploy/values.yaml`. */
export function renderValues(): string {
  const lines = linesOf(serviceValuesJsonSchema(), serviceValuesSchema.parse({}), "");
  return `${HEAD}${lines.join("\n")}\n`;
}

/** The text of `deploy/values.schema.json`. */
export function renderSchema(): string {
  return `${JSON.stringify(serviceValuesJsonSchema(), null, 2)}\n`;
}

function linesOf(schema: unknown, values: unknown, indent: string): readonly string[] {
  return Object.entries(Object(Object(schema).properties)).flatMap(([key, child]) => {
    const { description, properties } = Object(child);
    const value: unknown = Object(values)[key];
    return [
      ...(indent === "" ? [""] : []),
      ...(typeof description === "string" ? commentOf(description, `${indent}# `) : []),
      ...(properties === undefined
        ? stringify({ [key]: value }).trimEnd().split("\n").map((line) => `${indent}${line}`)
        : [`${indent}${key}:`, ...linesOf(child, value, `${indent}  `)]),
    ];
  });
}

function commentOf(text: string, start: string): readonly string[] {
  const lines: string[] = [];
  let line = start.trimEnd();
  for (const word of text.split(" ")) {
    const longer = `${line} ${word}`;
    if (longer.length <= LINE_WIDTH) {
      line = longer;
      continue;
    }
    lines.push(line);
    line = `${start}${word}`;
  }
  return [...lines, line];
}

/** Writes all of it into a folder. */
export async function writeManifests(folder: string): Promise<void> {
  await Deno.writeTextFile(`${folder}/values.yaml`, renderValues());
  await Deno.writeTextFile(`${folder}/values.schema.json`, renderSchema());
  await Deno.mkdir(`${folder}/manifests`, { recursive: true });
  const options = {
    valuesFiles: [`${ROOT}deploy/examples/values.yaml`],
    withCrds: false,
    diff: false,
    schema: false,
    system: productionSystem(),
  };
  const outputs = [
    { outputFile: `${folder}/manifests/install.yaml`, outputDir: undefined },
    { outputFile: undefined, outputDir: `${folder}/manifests/kustomize` },
  ];
  for (const output of outputs) {
    const code = await manifestsService({ ...options, ...output });
    if (code !== 0) Deno.exit(code);
  }
}

if (import.meta.main) await writeManifests(`${ROOT}deploy`);
