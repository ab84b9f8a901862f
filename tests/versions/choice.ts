/**
 * Which versions of Kubernetes are tested, and what Go needs to build one. Pure.
 *
 * @module
 */

/** The oldest and the newest minor version that the service is held to. */
export const MINORS = { oldest: 32, newest: 37 } as const;

/** The stable versions of 1.32 to 1.37 in what Go lists of a module, oldest first. */
export function candidatesIn(listed: string): string[] {
  return listed.split(/\s+/).filter((version) => {
    const minor = minorOf(version);
    return minor !== null && minor >= MINORS.oldest && minor <= MINORS.newest;
  }).sort((a, b) => compare(a, b));
}

/** The minor versions of 1.32 to 1.37 that have no candidate. */
export function minorsWithout(candidates: readonly string[]): number[] {
  const there = new Set(candidates.map(minorOf));
  const all = Array.from(
    { length: MINORS.newest - MINORS.oldest + 1 },
    (_, index) => MINORS.oldest + index,
  );
  return all.filter((minor) => !there.has(minor));
}

/**
 * The candidates that a person asked for: versions (`v1.34.2`), or minor versions (`1.34`), of which the newest patch.
 *
 * @throws {RangeError} One is not among the candidates.
 */
export function chosenFrom(candidates: readonly string[], wishes: readonly string[]): string[] {
  return wishes.map((wish) => {
    const found = candidates.findLast((version) =>
      version === wish || version === `v${wish}` ||
      version.startsWith(`v${wish.replace(/^v/, "")}.`)
    );
    if (found === undefined) {
      throw new RangeError(
        `Cannot test '${wish}' as it must be one of the versions that Go finds: ${
          candidates.join(", ") || "none"
        }`,
      );
    }
    return found;
  });
}

/** The version of the staging modules of a version of Kubernetes: `v0.36.3` of `v1.36.3`. */
export function stagingVersion(version: string): string {
  return version.replace(/^v1\./, "v0.");
}

/**
 * Writes the go.mod of a module that builds the programs of a version.
 *
 * Kubernetes' own file replaces its staging modules with folders of its repository, and Go obeys replacements of the main
 * module alone. So ours requires what it requires, and replaces each staging module with its published twin.
 *
 * @param goMod The go.mod of that version of `k8s.io/kubernetes`.
 * @throws {RangeError} It names no version of Go, or replaces no staging module.
 */
export function moduleFile(goMod: string, version: string): string {
  const go = /^go \S+$/m.exec(goMod)?.[0];
  const staging = new Set(
    [...goMod.matchAll(/^\s*(?:replace\s+)?(k8s\.io\/[\w-]+) => \.\/staging\//gm)].map(
      ([, name = ""]) => name,
    ),
  );
  if (go === undefined || staging.size === 0) {
    throw new RangeError(
      `Cannot build ${version} as its go.mod must name a version of Go and replace staging modules`,
    );
  }
  const requires = [...goMod.matchAll(/^require \([\s\S]*?^\)$/gm)].map(([block]) => block);
  return [
    "module holdfast.test/kubernetes",
    go,
    `require k8s.io/kubernetes ${version}`,
    ...requires,
    "replace (",
    ...[...staging].sort().map((name) => `\t${name} => ${name} ${stagingVersion(version)}`),
    ")",
    "",
  ].join("\n");
}

/** The tests that failed, by the lines that the runner writes. */
export function failedIn(output: string): string[] {
  const lines = output.replace(COLORS, "").split("\n");
  const failed = lines.flatMap((line) => /^(.*?) \.\.\. FAILED\b/.exec(line)?.[1] ?? []);
  return [...new Set(failed)];
}

const COLORS = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, "g");

function minorOf(version: string): number | null {
  const minor = /^v1\.(\d+)\.\d+$/.exec(version)?.[1];
  return minor === undefined ? null : Number(minor);
}

function compare(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.slice(1).split(".").map(Number));
  for (const [index, number] of (left ?? []).entries()) {
    const difference = number - (right?.[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
