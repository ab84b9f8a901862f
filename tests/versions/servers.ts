/**
 * API servers of other versions, built from source into the cache beside the one of the tests.
 *
 * A version is built from the go.mod of its own release, so with the dependencies that it was released with. The store is
 * the etcd of the usual tests: every version of Kubernetes here speaks to it, and what is tested is the API server. So is
 * kubectl.
 *
 * @module
 */

import { z } from "zod";
import {
  type Binaries,
  BinariesError,
  buildMissing,
  cacheFolder,
  ensureBinaries,
  type Environment,
  goCommand,
} from "../cluster/binaries.ts";
import { candidatesIn, moduleFile } from "./choice.ts";

const KUBERNETES = "k8s.io/kubernetes";
const TOOLS = `//go:build tools

package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
`;

/** Where a module of a version came from: what `go mod download -json` says. */
const download = z.object({ GoMod: z.string().optional(), Error: z.string().optional() });

/** Builds API servers. */
export class Servers {
  readonly #environment: Environment;
  readonly #onProgress: (line: string) => void;

  constructor(environment: Environment, onProgress: (line: string) => void) {
    this.#environment = environment;
    this.#onProgress = onProgress;
  }

  /** The versions of 1.32 to 1.37 that Go finds where this machine takes its modules from, oldest first. */
  async candidates(): Promise<string[]> {
    await using scratch = await Scratch.open();
    await scratch.write("go.mod", "module holdfast.test/kubernetes\n\ngo 1.24.0\n");
    const { stdout } = await this.#go(scratch, ["list", "-m", "-versions", KUBERNETES]);
    return candidatesIn(stdout);
  }

  /**
   * The folder with the programs of a version, built where they are missing: some minutes, once.
   *
   * @throws {BinariesError} It cannot be built; the message says why.
   */
  async folderOf(version: string): Promise<string> {
    const usual = await ensureBinaries({
      programs: ["etcd", "kube-apiserver", "kubectl"],
      onProgress: this.#onProgress,
      environment: this.#environment,
    });
    if (usual === null) throw new BinariesError("Cannot build API servers as there is no Go");
    const folder = cacheFolder(this.#environment, version);
    if (version === usual.version) return folder;
    await using scratch = await Scratch.open();
    await scratch.write("go.mod", moduleFile(await this.#goModOf(version, scratch), version));
    await scratch.write("tools.go", TOOLS);
    await buildMissing({
      folder,
      programs: ["kube-apiserver"],
      version,
      environment: this.#environment,
      onProgress: this.#onProgress,
      // No go.sum is kept for it: Go makes one, from the checksums that it verifies.
      module: { folder: scratch.folder, flags: ["-mod=mod"] },
    });
    await linkUsual(usual, folder);
    return folder;
  }

  async #goModOf(version: string, scratch: Scratch): Promise<string> {
    await scratch.write("go.mod", "module holdfast.test/kubernetes\n\ngo 1.24.0\n");
    const args = ["mod", "download", "-json", `${KUBERNETES}@${version}`];
    const { stdout } = await this.#go(scratch, args);
    const { GoMod, Error: fault } = download.parse(JSON.parse(stdout));
    if (GoMod === undefined) {
      throw new BinariesError(`Cannot build ${version} as Go has no source of it: ${fault ?? ""}`);
    }
    return await Deno.readTextFile(GoMod);
  }

  async #go(scratch: Scratch, args: readonly string[]): Promise<{ readonly stdout: string }> {
    const module = { folder: scratch.folder, flags: [] };
    const output = await goCommand(module, args, this.#environment).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    if (!output.success && output.stdout.length === 0) {
      const why = text(output.stderr).trim();
      throw new BinariesError(`Cannot run go ${args.join(" ")}: ${why}`);
    }
    return { stdout: text(output.stdout) };
  }
}

/** Puts store and kubectl of the usual tests beside an API server, as `KUBEBUILDER_ASSETS` wants them. */
async function linkUsual(usual: Binaries, folder: string): Promise<void> {
  for (const program of ["etcd", "kubectl"] as const) {
    await Deno.symlink(usual.path(program), `${folder}/${program}`).catch((error: unknown) => {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    });
  }
}

/** A folder for a Go module of a moment. */
class Scratch implements AsyncDisposable {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async open(): Promise<Scratch> {
    return new Scratch(await Deno.makeTempDir({ prefix: "versions-" }));
  }

  async write(name: string, text: string): Promise<void> {
    await Deno.writeTextFile(`${this.folder}/${name}`, text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}
