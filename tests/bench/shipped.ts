/**
 * What ships, to be measured: the bundle as the image runs it, under the conditions of the compiled program.
 *
 * A compiled program knows the imports of its modules, and Deno by itself learns them at the first start and remembers them.
 * So the first start is not measured. The program of the image has no cache of compiled code, so there is none here.
 *
 * @module
 */

import { PERMISSIONS } from "../deploy/bundles.ts";
import { mount, openImage } from "../deploy/image.ts";
import type { ServiceProcess } from "../service/service_process.ts";
import type { Workplace } from "../service/workplace.ts";

/** The way to start what ships. */
export interface Shipped extends AsyncDisposable {
  /** Starts a service; it ends with its place. */
  start(): Promise<ServiceProcess>;
}

/** Lays what ships, and starts it once. */
export async function openShipped(place: Workplace): Promise<Shipped> {
  await mount(place.serviceOptions());
  const image = await openImage();
  const memory = await Deno.makeTempDir({ prefix: "bench-" });
  await Deno.chmod(memory, 0o777);
  const program = image.program({ flags: [...PERMISSIONS, "--no-code-cache"], args: ["serve"] });
  const start = () => place.startService({ HOME: "", DENO_DIR: memory }, program);
  const first = await start();
  first.kill("SIGTERM");
  await first.ended();
  return {
    start,
    async [Symbol.asyncDispose]() {
      await image[Symbol.asyncDispose]();
      await Deno.remove(memory, { recursive: true });
    },
  };
}
