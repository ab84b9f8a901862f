/**
 * An empty Node project that has the package installed.
 *
 * @module
 */

import assert from "node:assert/strict";
import ts from "typescript";
import { pathOf, ROOT } from "../checks/shell.ts";

/** How a program ended. */
export interface Ending {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What the project needs beside the package: as a user installs it. */
const BESIDE = ["prom-client@15", "undici@6", "@types/node@20"];

/** A folder with a package.json and the installed package. */
export class NodeProject implements AsyncDisposable {
  readonly folder: string;
  /** The tarball. */
  readonly tarball: string;
  readonly #root: string;

  private constructor(root: string, tarball: string) {
    this.#root = root;
    this.folder = `${root}/app`;
    this.tarball = tarball;
  }

  /** Makes the tarball with the task, and installs it. */
  static async create(): Promise<NodeProject> {
    const root = await Deno.makeTempDir({ prefix: "holdfast-package-" });
    const script = pathOf(new URL("deploy/package.ts", ROOT));
    const made = await end(Deno.execPath(), ["run", "-A", script, "--out", `${root}/out`], ".");
    assert.equal(made.code, 0, made.stdout + made.stderr);
    const project = new NodeProject(root, made.stdout.trim());
    await Deno.mkdir(project.folder);
    await project.write("package.json", JSON.stringify({ private: true, type: "module" }));
    const options = ["--prefer-offline", "--no-audit", "--no-fund", "--silent"];
    const installed = await end(
      "npm",
      ["install", ...options, project.tarball, ...BESIDE],
      project.folder,
    );
    assert.equal(installed.code, 0, installed.stdout + installed.stderr);
    return project;
  }

  async write(name: string, text: string): Promise<void> {
    await Deno.writeTextFile(`${this.folder}/${name}`, text);
  }

  /** Runs a module with Node. */
  run(source: string): Promise<Ending> {
    return end("node", ["--input-type=module", "--eval", source], this.folder);
  }

  /** Starts a file with Node. */
  start(file: string, env: Readonly<Record<string, string>>): Deno.ChildProcess {
    return new Deno.Command("node", {
      args: [file],
      cwd: this.folder,
      env: { ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
  }

  /**
   * Compiles a file as a user's strict project does, with the declarations of the package.
   *
   * @returns What the compiler complains about.
   */
  compile(file: string): string[] {
    const options: ts.CompilerOptions = {
      target: ts.ScriptTarget.ES2023,
      lib: ["lib.es2023.d.ts"],
      module: ts.ModuleKind.NodeNext,
      strict: true,
      types: ["node"],
      typeRoots: [`${this.folder}/node_modules/@types`],
      rootDir: this.folder,
      outDir: this.folder,
    };
    const program = ts.createProgram({ rootNames: [`${this.folder}/${file}`], options });
    const { diagnostics } = program.emit();
    return [...diagnostics, ...ts.getPreEmitDiagnostics(program)].map(({ file, messageText }) =>
      `${file?.fileName ?? ""}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#root, { recursive: true });
  }
}

/** Runs a program to its end. */
export async function end(
  program: string,
  args: readonly string[],
  cwd: string,
): Promise<Ending> {
  const { code, stdout, stderr } = await new Deno.Command(program, {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}
