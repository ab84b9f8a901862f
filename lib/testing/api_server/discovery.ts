/**
 * Discovery: what a client like kubectl asks before it asks for objects.
 *
 * @module
 */

import type { JsonObject } from "./json.ts";
import { apiVersionOf, type Kind } from "./kinds.ts";

/** The version of Kubernetes whose rules the server follows. */
export const SERVER_VERSION = {
  major: "1",
  minor: "36",
  gitVersion: "v1.36.3",
  gitCommit: "",
  gitTreeState: "",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: "in-memory",
} as const;

/** What a path answers: an object, or a text. */
export type PathAnswer = JsonObject | string;

/** Answers a path that is not about objects; `null` when there is nothing there. */
export function answerPath(path: string, kinds: readonly Kind[]): PathAnswer | null {
  const trimmed = path.length > 1 ? path.replace(/\/$/, "") : path;
  switch (trimmed) {
    case "/version":
      return SERVER_VERSION;
    case "/healthz":
    case "/livez":
    case "/readyz":
      return "ok";
    case "/":
      return { paths: ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/readyz", "/version"] };
    case "/api":
      return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] };
    case "/apis":
      return { kind: "APIGroupList", apiVersion: "v1", groups: groupsOf(kinds).map(toGroup) };
    default:
      return answerGroup(trimmed, kinds);
  }
}

interface Group {
  readonly name: string;
  readonly versions: readonly string[];
}

function groupsOf(kinds: readonly Kind[]): Group[] {
  const groups = new Map<string, string[]>();
  for (const { group, version } of kinds) {
    if (group === "") continue;
    const versions = groups.get(group) ?? [];
    if (!versions.includes(version)) groups.set(group, [...versions, version]);
  }
  return [...groups].map(([name, versions]) => ({ name, versions }));
}

function toGroup({ name, versions }: Group) {
  const entries = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions: entries, preferredVersion: entries[0] };
}

function answerGroup(path: string, kinds: readonly Kind[]): JsonObject | null {
  const [, root, first, second, ...more] = path.split("/");
  if (more.length > 0) return null;
  if (root === "api" && second === undefined) {
    return first === "v1" ? toResourceList("v1", kinds) : null;
  }
  if (root !== "apis" || first === undefined) return null;
  const group = groupsOf(kinds).find(({ name }) => name === first);
  if (group === undefined) return null;
  if (second === undefined) return { kind: "APIGroup", apiVersion: "v1", ...toGroup(group) };
  return group.versions.includes(second) ? toResourceList(`${first}/${second}`, kinds) : null;
}

function toResourceList(groupVersion: string, kinds: readonly Kind[]): JsonObject {
  const resources = kinds.filter((kind) => apiVersionOf(kind) === groupVersion).flatMap((kind) => [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.namespaced,
      kind: kind.kind,
      verbs: kind.verbs,
      ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
    },
    ...kind.subresources.map((subresource) => ({
      name: `${kind.plural}/${subresource}`,
      singularName: "",
      namespaced: kind.namespaced,
      kind: subresource === "token" ? "TokenRequest" : kind.kind,
      verbs: subresource === "token" ? ["create"] : ["get", "patch", "update"],
    })),
  ]);
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources };
}
