/**
 * The service as its image runs it, as far as that goes without the image: Deno and the bundle in a folder that cannot be
 * written, as nobody's user, without a home.
 *
 * @module
 */

import { ENGINE_FLAG } from "../../deploy/engine_flags.ts";
import { ISOLATED, layBundle } from "./bundles.ts";
import type { Program, ServiceProcessOptions } from "../service/service_process.ts";

/** The user and group of the image. */
export const NOBODY = 65_534;

/** The folders that {@linkcode openImage} makes. */
export interface Image extends AsyncDisposable {
  /** Where program and bundle lie. Nobody may write there. */
  readonly folder: string;
  /** The way to start it. */
  program(options: ImageOptions): Program;
}

/** What {@linkcode Image.program} takes. */
export interface ImageOptions {
  /** The permissions, and what else goes to Deno. */
  readonly flags: readonly string[];
  /** The command line of the service. */
  readonly args: readonly string[];
}

/** True when this process may become another user. Without that the tests run it as the user that they are. */
export const mayBeNobody: boolean = Deno.uid() === 0;

/** Lays program and bundle into a folder, and closes it. */
export async function openImage(): Promise<Image> {
  const folder = await Deno.makeTempDir({ prefix: "image-" });
  const entry = await layBundle(folder);
  // A copy, since the folders above the program may be closed to others.
  const deno = `${folder}/deno`;
  await Deno.copyFile(Deno.execPath(), deno);
  await Deno.chmod(deno, 0o555);
  await Deno.chmod(folder, 0o555);
  return {
    folder,
    program({ flags, args }) {
      const run = ["run", "-q", ENGINE_FLAG, ...ISOLATED, ...LAZY, ...flags, entry, ...args];
      const isolated = ["--reuid", `${NOBODY}`, "--regid", `${NOBODY}`, "--clear-groups"];
      const bare = ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"];
      return mayBeNobody
        ? { command: "setpriv", args: [...isolated, ...bare, deno, ...run], folder }
        : { command: deno, args: run, folder };
    },
    async [Symbol.asyncDispose]() {
      await Deno.chmod(folder, 0o755);
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/** Lets the user of the image read what Kubernetes would mount: the certificate, and who the service is. */
export async function mount(
  { kubeconfig, certFile, keyFile }: ServiceProcessOptions,
): Promise<void> {
  for (const file of [kubeconfig, certFile, keyFile]) await Deno.chmod(file, 0o444);
  await Deno.chmod(kubeconfig.slice(0, kubeconfig.lastIndexOf("/")), 0o755);
}

/** A compiled program has its modules in it and reads each when it is imported. Deno by itself reads all at the start. */
const LAZY = ["--unstable-lazy-dynamic-imports"];
