/**
 * The way to the API server that a kubeconfig names.
 *
 * The file is read here: its context, cluster and user, and credentials that are a file or a text. What must be run or
 * negotiated (exec plug-ins, OIDC) is left to the `KubeConfig` of `@kubernetes/client-node`: see `plugin_credentials.ts`.
 *
 * @module
 */

import { dirname, isAbsolute, join } from "node:path";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import type { ClusterAccess, Environment } from "./access.ts";
import { ClusterConfigError } from "./connect_errors.ts";
import type { ClientCertificate, ConnectionOptions, PemSource } from "./connection.ts";
import {
  type Credentials,
  isToken,
  NO_CREDENTIALS,
  type ReadTextFile,
  staticToken,
  TokenFile,
  type TokenFileParts,
} from "./credentials.ts";
import { pathsOf } from "./decode.ts";
import type { PluginUser } from "./plugin_credentials.ts";

const text = z.string().min(1);
const named = z.object({ name: text });

const clusterSchema = z.looseObject({
  server: text,
  "certificate-authority": text.optional(),
  "certificate-authority-data": text.optional(),
  "insecure-skip-tls-verify": z.boolean().optional(),
  "tls-server-name": text.optional(),
  "proxy-url": text.optional(),
});

const userSchema = z.looseObject({
  token: text.optional(),
  tokenFile: text.optional(),
  "client-certificate": text.optional(),
  "client-certificate-data": text.optional(),
  "client-key": text.optional(),
  "client-key-data": text.optional(),
  exec: z.looseObject({ command: text }).nullish(),
  "auth-provider": z.looseObject({ name: text }).nullish(),
});

/** Members of a user that change who the program is, and that are not supported: to skip one would be another identity. */
const UNSUPPORTED = ["username", "password", "as", "as-uid", "as-groups", "as-user-extra"];

const kubeconfigSchema = z.looseObject({
  "current-context": z.string().nullish(),
  contexts: z.array(
    named.extend({
      context: z.looseObject({
        cluster: text,
        user: z.string().nullish(),
        namespace: text.nullish(),
      }),
    }),
  ).nullish(),
  clusters: z.array(named.extend({ cluster: z.unknown() })).nullish(),
  users: z.array(named.extend({ user: z.unknown() })).nullish(),
});

/** One file of the list, read. */
interface Kubeconfig {
  readonly path: string;
  readonly content: z.infer<typeof kubeconfigSchema>;
}

/** A named part of a kubeconfig, and the file that it is from: relative names in it are meant from there. */
interface Entry<T> {
  readonly value: T;
  readonly path: string;
}

/** What the look takes. */
export interface KubeconfigOptions extends Omit<TokenFileParts, "path"> {
  /** Looks up a variable of the environment: `KUBECONFIG`, `HOME`, `HTTPS_PROXY`. */
  readonly env: Environment;
  /** Ends a plug-in's first run. */
  readonly signal: AbortSignal;
  /** The separator of the list in `KUBECONFIG`: `;` on Windows. @default {":"} */
  readonly pathSeparator?: string;
}

/**
 * Finds the kubeconfig and reads how its current context reaches a cluster.
 *
 * `KUBECONFIG` is a list of files; those that are missing are skipped, and of two parts with one name the first counts.
 * When it names files and none is there, that is an error: whoever set it meant a cluster (kubernetes-plugin 8). When it is
 * unset or empty, `~/.kube/config` is read if it is there.
 *
 * @returns How the cluster is reached, or `null` when there is no kubeconfig.
 * @throws {ClusterConfigError} A kubeconfig is there, or was named, and cannot be used.
 */
export async function kubeconfigAccess(options: KubeconfigOptions): Promise<ClusterAccess | null> {
  const files = await readFiles(options);
  return files.length === 0 ? null : await accessOf(files, options);
}

/**
 * Where a kubeconfig is looked for.
 *
 * @returns The files that `KUBECONFIG` lists, and the files to read: these, or `~/.kube/config` when it lists none.
 */
export function kubeconfigPaths(
  env: Environment,
  pathSeparator: string,
): { readonly listed: readonly string[]; readonly paths: readonly string[] } {
  const listed = (env("KUBECONFIG") ?? "").split(pathSeparator).filter((path) => path !== "");
  const home = env("HOME") || env("USERPROFILE");
  const paths = listed.length > 0 ? listed : home ? [join(home, ".kube", "config")] : [];
  return { listed, paths };
}

async function readFiles(options: KubeconfigOptions): Promise<readonly Kubeconfig[]> {
  const { env, readTextFile, logger, pathSeparator = ":" } = options;
  const { listed, paths } = kubeconfigPaths(env, pathSeparator);
  const files: Kubeconfig[] = [];
  for (const path of paths) {
    const content = await readIfThere(path, readTextFile);
    if (content !== null) files.push({ path, content: readKubeconfig(path, content) });
    else if (listed.length > 0) logger.warn("a file of KUBECONFIG does not exist", { file: path });
  }
  if (listed.length > 0 && files.length === 0) {
    throw new ClusterConfigError(
      `Cannot read a kubeconfig as KUBECONFIG must name a file that exists: current value is ${
        listed.join(pathSeparator)
      }`,
    );
  }
  return files;
}

async function readIfThere(path: string, readTextFile: ReadTextFile): Promise<string | null> {
  try {
    return await readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw new ClusterConfigError(`Cannot read the kubeconfig ${path}: it must be a readable file`);
  }
}

function readKubeconfig(path: string, content: string): Kubeconfig["content"] {
  let value: unknown;
  try {
    value = parseYaml(content);
  } catch {
    // The parser's text quotes the file, which holds secrets.
    throw new ClusterConfigError(`Cannot read the kubeconfig ${path}: it must be valid YAML`);
  }
  return checked(kubeconfigSchema, value, path, "");
}

async function accessOf(
  files: readonly Kubeconfig[],
  options: KubeconfigOptions,
): Promise<ClusterAccess> {
  const paths = files.map((file) => file.path).join(", ");
  const current = files.map((file) => file.content["current-context"]).find((name) => name) ?? "";
  const contexts = files.flatMap(({ path, content }) =>
    (content.contexts ?? []).map(({ name, context }) => ({ name, value: context, path }))
  );
  const { value: context } = find(contexts, "context", current, paths);
  const clusters = files.flatMap(({ path, content }) =>
    (content.clusters ?? []).map(({ name, cluster }) => ({ name, value: cluster, path }))
  );
  const rawCluster = find(clusters, "cluster", context.cluster, paths);
  const cluster = {
    ...rawCluster,
    value: checked(clusterSchema, rawCluster.value, rawCluster.path, `cluster ${context.cluster}`),
  };
  const reach = await reachOf(cluster, context.cluster, options);
  const identity = context.user
    ? await identityOf(files, context.user, paths, options)
    : { credentials: NO_CREDENTIALS, runsCommands: false };
  const { clientCertificate, ...who } = identity;
  return {
    mode: "kubeconfig",
    baseUrl: reach.baseUrl,
    namespace: context.namespace ?? "default",
    connection: { ...reach.connection, clientCertificate },
    ...who,
  };
}

/** Where the cluster is and whom its certificate must be from. */
async function reachOf(
  { value: cluster, path }: Entry<z.infer<typeof clusterSchema>>,
  name: string,
  options: KubeconfigOptions,
): Promise<Pick<ClusterAccess, "baseUrl" | "connection">> {
  const refuse = (wish: string) =>
    new ClusterConfigError(`Cannot use cluster ${name} of the kubeconfig ${path}: ${wish}`);
  const server = URL.canParse(cluster.server) ? new URL(cluster.server) : null;
  if (server?.protocol !== "https:" || server.username !== "" || server.password !== "") {
    throw refuse("'server' must be an https URL without user and password");
  }
  if (cluster["insecure-skip-tls-verify"]) {
    throw refuse(
      "'insecure-skip-tls-verify' must be false or left out; name the authority in 'certificate-authority-data'",
    );
  }
  if (cluster["tls-server-name"] !== undefined) {
    throw refuse(
      "'tls-server-name' must be left out, since the connection cannot check another name; put a name of the certificate into 'server'",
    );
  }
  const proxyUrl = cluster["proxy-url"];
  checkProxy(proxyUrl, "'proxy-url'", refuse);
  for (const variable of ["HTTPS_PROXY", "https_proxy"]) {
    if (proxyUrl === undefined) checkProxy(options.env(variable), variable, refuse);
  }
  const authority = await pemOf(cluster, "certificate-authority", path, options);
  return { baseUrl: server.href, connection: { authority, proxyUrl } };
}

/** Proxies that speak HTTP only (kubernetes-plugin 8). */
function checkProxy(
  value: string | undefined,
  from: string,
  refuse: (wish: string) => ClusterConfigError,
): void {
  if (!value) return;
  const scheme = /^([a-z0-9+.-]+):\/\//i.exec(value)?.[1]?.toLowerCase() ?? "http";
  if (scheme !== "http" && scheme !== "https") {
    throw refuse(`${from} must be an HTTP proxy: current scheme is ${scheme}`);
  }
}

/** Who the program is. */
async function identityOf(
  files: readonly Kubeconfig[],
  name: string,
  paths: string,
  options: KubeconfigOptions,
): Promise<
  & Pick<ClusterAccess, "credentials" | "runsCommands" | "onClientCertificate">
  & Pick<ConnectionOptions, "clientCertificate">
> {
  const users = files.flatMap(({ path, content }) =>
    (content.users ?? []).map(({ name, user }) => ({ name, value: user, path }))
  );
  const { value, path } = find(users, "user", name, paths);
  const user = checked(userSchema, value ?? {}, path, `user ${name}`);
  const unsupported = UNSUPPORTED.filter((member) => user[member] !== undefined);
  if (unsupported.length > 0) {
    throw new ClusterConfigError(
      `Cannot use user ${name} of the kubeconfig ${path}: ${
        unsupported.join(", ")
      } must be left out; a token, a client certificate, an exec plug-in or an auth provider is supported`,
    );
  }
  const clientCertificate = await certificateOf(user, name, path, options);
  const plugin = pluginOf(user, name, path);
  if (plugin === null || user.token !== undefined || user.tokenFile !== undefined) {
    const credentials = credentialsOf(user, name, path, options);
    return { credentials, clientCertificate, runsCommands: false };
  }
  const { PluginCredentials } = await import("./plugin_credentials.ts");
  const credentials = new PluginCredentials(plugin);
  const own = await credentials.start(options.signal);
  return {
    credentials,
    clientCertificate: own ?? clientCertificate,
    runsCommands: user.exec !== undefined && user.exec !== null,
    onClientCertificate: (changed) => credentials.onClientCertificate(changed),
  };
}

function credentialsOf(
  { token, tokenFile }: z.infer<typeof userSchema>,
  name: string,
  path: string,
  options: KubeconfigOptions,
): Credentials {
  if (tokenFile !== undefined) {
    return new TokenFile({ ...options, path: resolve(path, tokenFile) });
  }
  if (token === undefined || token === "") return NO_CREDENTIALS;
  if (isToken(token)) return staticToken(token);
  throw new ClusterConfigError(
    `Cannot use user ${name} of the kubeconfig ${path}: its token must be of visible ASCII characters`,
  );
}

function pluginOf(
  user: z.infer<typeof userSchema>,
  name: string,
  path: string,
): PluginUser | null {
  if (!user.exec && !user["auth-provider"]) return null;
  const command = user.exec?.command;
  return {
    name,
    from: path,
    authProvider: user["auth-provider"] ?? undefined,
    // A command with a slash in it is a file beside the kubeconfig, and not one of the PATH.
    exec: user.exec
      ? { ...user.exec, command: command?.includes("/") ? resolve(path, command) : command }
      : undefined,
  };
}

async function certificateOf(
  user: z.infer<typeof userSchema>,
  name: string,
  path: string,
  options: KubeconfigOptions,
): Promise<ClientCertificate | undefined> {
  const certificate = await pemOf(user, "client-certificate", path, options);
  const key = await pemOf(user, "client-key", path, options);
  if (certificate !== undefined && key !== undefined) return { certificate, key };
  if (certificate === undefined && key === undefined) return undefined;
  throw new ClusterConfigError(
    `Cannot use user ${name} of the kubeconfig ${path}: a client certificate and its key must be set together`,
  );
}

/** A text in PEM form that a member `x-data` holds in base64, or that is in the file that a member `x` names. */
async function pemOf(
  members: Readonly<Record<string, unknown>>,
  member: string,
  path: string,
  { readTextFile }: KubeconfigOptions,
): Promise<PemSource | undefined> {
  const data = members[`${member}-data`];
  const from = `${member}-data of the kubeconfig ${path}`;
  if (typeof data === "string") {
    try {
      return { pem: atob(data.replace(/\s/g, "")), from };
    } catch {
      throw new ClusterConfigError(`Cannot use ${from}: it must be base64`);
    }
  }
  const named = members[member];
  if (typeof named !== "string") return undefined;
  const file = resolve(path, named);
  try {
    return { pem: await readTextFile(file), from: file };
  } catch {
    throw new ClusterConfigError(
      `Cannot read ${file}, which the kubeconfig ${path} names as ${member}: it must be a readable file`,
    );
  }
}

/** Finds the first part of that name, as kubectl does when files are put together. */
function find<T>(
  entries: readonly (Entry<T> & { readonly name: string })[],
  what: string,
  name: string,
  paths: string,
): Entry<T> {
  const entry = entries.find((candidate) => candidate.name === name);
  if (entry !== undefined) return entry;
  throw new ClusterConfigError(
    name === ""
      ? `Cannot choose a context of the kubeconfig ${paths}: 'current-context' must be set`
      : `Cannot find ${what} ${name} in the kubeconfig ${paths}: it must be there`,
  );
}

function checked<T>(schema: z.ZodType<T>, value: unknown, path: string, part: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const where = [part, ...pathsOf(parsed.error)].filter((place) => place !== "").join(", ");
  throw new ClusterConfigError(
    `Cannot use the kubeconfig ${path}: it has another form than a kubeconfig at ${
      where || "the top level"
    }`,
  );
}

function resolve(kubeconfigPath: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(kubeconfigPath), path);
}
