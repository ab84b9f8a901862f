/**
 * What happens before any command: the cluster's own address is kept from the proxy, and the permissions that the command
 * does not need are given back (design 6).
 *
 * A compiled binary holds the union of what all commands need. What is given back is given back whole: to give back one
 * name under a broad grant changes nothing.
 *
 * @module
 */
import { delimiter, join } from "node:path";
import { z } from "zod";
import { parse } from "yaml";

/** A kind of permission. */
export type PermissionKind = "env" | "ffi" | "net" | "read" | "run" | "sys" | "write";

/** All kinds, those first that do the most harm. */
const ALL_KINDS: readonly PermissionKind[] = ["run", "write", "ffi", "sys", "net", "env", "read"];

/** What each command needs. A command that is not here prints help or an error, and needs what `config` needs. */
const NEEDS: Readonly<Record<string, readonly PermissionKind[]>> = {
  demo: ["env", "net", "read", "write"],
  run: ["env", "net", "read", "run", "write"],
  "run-guard": ["env", "net", "read", "run", "write"],
  serve: ["env", "net", "read"],
  status: ["env", "net", "read"],
  revoke: ["env", "net", "read"],
  doctor: ["env", "net", "read"],
  manifests: ["env", "net", "read", "write"],
};

/** The commands that sign in to the cluster of a kubeconfig. */
const SIGN_IN: ReadonlySet<string | undefined> = new Set([
  "serve",
  "status",
  "revoke",
  "doctor",
  "manifests",
]);

const LEAST_NEEDS: readonly PermissionKind[] = ["env", "read"];

/**
 * The kinds of permission that a command gives back.
 *
 * @param command The first argument of the command line. It is the command's name, since no option comes before it.
 */
export function permissionsToGiveBack(command: string | undefined): readonly PermissionKind[] {
  const needs = (command !== undefined && Object.hasOwn(NEEDS, command) && NEEDS[command]) ||
    LEAST_NEEDS;
  return ALL_KINDS.filter((kind) => !needs.includes(kind));
}

/** Where `demo` serves its own API server. */
const LOOPBACK = "127.0.0.1";

/**
 * The value of `NO_PROXY` with the API server of the command in it: that of this pod, and of the demo its own. `undefined`
 * when neither is there.
 *
 * The HTTP client obeys `HTTPS_PROXY` always, and a proxy seldom reaches a cluster's service addresses, and never this
 * machine's own. The client reads `no_proxy` only where `NO_PROXY` is not set, so the two are joined here.
 *
 * @param command The first argument of the command line.
 * @param env The environment of the process.
 */
export function noProxyFor(
  command: string | undefined,
  env: Readonly<Record<string, string>>,
): string | undefined {
  const host = command === "demo" ? LOOPBACK : env.KUBERNETES_SERVICE_HOST ?? "";
  if (host === "") return undefined;
  const listed = (env.NO_PROXY ?? env.no_proxy ?? "").split(",").map((entry) => entry.trim());
  return [...new Set([...listed, host])].filter((entry) => entry !== "").join(",");
}

/**
 * The kubeconfig files that would be used: the list in `KUBECONFIG`, else `~/.kube/config` (kubernetes-plugin 8).
 *
 * @param env The environment of the process.
 */
export function kubeconfigPaths(env: Readonly<Record<string, string>>): readonly string[] {
  const listed = (env.KUBECONFIG ?? "").split(delimiter).filter((path) => path !== "");
  if (listed.length > 0) return listed;
  return env.HOME === undefined || env.HOME === "" ? [] : [join(env.HOME, ".kube", "config")];
}

const Named = z.object({ name: z.string() });

const Kubeconfig = z.object({
  "current-context": z.string().nullish(),
  contexts: z.array(Named.extend({ context: z.object({ user: z.string() }) })).nullish(),
  users: z.array(Named.extend({ user: z.object({ exec: z.unknown().optional() }).nullish() }))
    .nullish(),
});

/**
 * Says whether the current context of kubeconfig files signs in by running a program.
 *
 * @param texts The files' texts. Of a name that is there twice, the first counts, as in kubectl. A file that does not
 * parse counts as empty here: whoever connects tells what is wrong with it.
 */
export function usesExecPlugin(texts: readonly string[]): boolean {
  const files = readKubeconfigs(texts);
  const user = currentUser(files);
  const entry = files.flatMap((file) => file.users ?? []).find(({ name }) => name === user);
  return entry?.user?.exec !== undefined && entry.user.exec !== null;
}

/** What kubeconfig files call the user of their current context; `undefined` when they name none. */
export function kubeconfigUser(texts: readonly string[]): string | undefined {
  return currentUser(readKubeconfigs(texts));
}

function readKubeconfigs(texts: readonly string[]): readonly z.infer<typeof Kubeconfig>[] {
  return texts.flatMap((text) => {
    try {
      const parsed = Kubeconfig.safeParse(parse(text));
      return parsed.success ? [parsed.data] : [];
    } catch {
      return [];
    }
  });
}

function currentUser(files: readonly z.infer<typeof Kubeconfig>[]): string | undefined {
  const current = files.map((file) => file["current-context"]).find((name) => name);
  return files.flatMap((file) => file.contexts ?? []).find(({ name }) => name === current)
    ?.context.user;
}

/** The platform's permissions, as far as they are needed here. */
export interface Permissions {
  /** Says whether the process has all or a part of this kind. */
  has(kind: PermissionKind): boolean;
  /** Gives all of this kind back. */
  giveBack(kind: PermissionKind): void;
}

/** What {@linkcode giveBackPermissions} works on. */
export interface Bootstrap {
  /** The first argument of the command line. */
  readonly command: string | undefined;
  /** The environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** The permissions of the process. */
  readonly permissions: Permissions;
  /** The text of a file, or `undefined` where there is none. */
  readonly readTextFile: (path: string) => string | undefined;
  /** Tells the user something, in one line. */
  readonly warn: (message: string) => void;
}

/**
 * Gives back every permission that the command does not need.
 *
 * A command that signs in to a cluster keeps the one to run programs when its kubeconfig needs it to, and says so.
 */
export function giveBackPermissions(bootstrap: Bootstrap): void {
  const { command, permissions } = bootstrap;
  for (const kind of permissionsToGiveBack(command)) {
    if (kind === "run" && SIGN_IN.has(command) && permissions.has("run") && signsInByProgram()) {
      bootstrap.warn(
        "The kubeconfig signs in by running a program, so this process keeps the permission to run programs",
      );
      continue;
    }
    permissions.giveBack(kind);
  }

  function signsInByProgram(): boolean {
    return usesExecPlugin(
      kubeconfigPaths(bootstrap.env).flatMap((path) => {
        try {
          return bootstrap.readTextFile(path) ?? [];
        } catch {
          // Whoever connects tells why the file cannot be read.
          return [];
        }
      }),
    );
  }
}
