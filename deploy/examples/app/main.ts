/**
 * Runs the example: on the cluster of the kubeconfig or of this pod, or with `--embedded` on an API server in memory.
 *
 * @module
 */

import { productionSystem } from "@holdfast/holdfast/system";
import { parseArgs } from "node:util";
import { createExample } from "./app.ts";
import { createEmbedded } from "./embedded.ts";

const machine = productionSystem();
// The configuration beside this file is used from wherever it is started; the environment may name another folder.
const env = { AUTUMN_MANIFEST_DIR: import.meta.dirname ?? ".", ...machine.env };
const system = { ...machine, env };

const { values } = parseArgs({
  args: Deno.args,
  options: {
    embedded: { type: "boolean", default: false },
    port: { type: "string", default: "3000" },
  },
});

Deno.exit(values.embedded ? await runEmbedded(Number(values.port)) : await run());

async function run(): Promise<number> {
  const { host } = createExample({ system });
  return await host.run();
}

async function runEmbedded(port: number): Promise<number> {
  const { cluster, replicas } = createEmbedded({ system, port });
  const codes = await Promise.all(replicas.map(({ host }) => host.run()));
  await cluster.close();
  return Math.max(...codes);
}
