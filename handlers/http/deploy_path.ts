/**
 * Which call of the deployment API a raw request target means.
 *
 * The target is judged as the client sent it, before any framework folds `/./` or `%2e%2e` or answers HEAD with GET
 * (difference 17).
 *
 * @module
 */

import { isDnsSubdomain } from "../../lib/auth/dns_names.ts";

/** The label of a call in logs and metrics: deploy-api 10. */
export type DeployHandler = "group" | "grant" | "renew" | "release" | "notfound";

/** What a target and a method come to: deploy-api 1.2, steps 4 to 6. */
export type DeployCall =
  | { readonly type: "group" | "grant"; readonly group: string }
  | {
    readonly type: "renew" | "release";
    readonly group: string;
    readonly kind: string;
    readonly operationId: string;
  }
  | { readonly type: "not_found" }
  | {
    readonly type: "method_not_allowed";
    readonly handler: DeployHandler;
    readonly group: string;
    readonly operationId: string;
    /** The value of the `Allow` header. */
    readonly allow: string;
  };

const PREFIX = "/deploy/v1";

/** True when a raw target belongs to the deployment API, and not to another room of the same listener. */
export function isDeployTarget(target: string): boolean {
  const path = pathOf(target);
  return path === PREFIX || path.startsWith(`${PREFIX}/`);
}

/** Reads a call from the raw method and target. The query string is ignored. */
export function parseDeployCall(method: string, target: string): DeployCall {
  const segments = segmentsOf(target);
  const [root, group] = segments ?? [];
  if (segments === null || root !== "groups" || group === undefined || !isDnsSubdomain(group)) {
    return { type: "not_found" };
  }
  if (segments.length === 2) {
    return method === "GET"
      ? { type: "group", group }
      : { type: "method_not_allowed", handler: "group", group, operationId: "", allow: "GET" };
  }
  const [, , leases, kind, operationId] = segments;
  if (leases !== "leases") return { type: "not_found" };
  if (segments.length === 3) {
    return method === "POST"
      ? { type: "grant", group }
      : { type: "method_not_allowed", handler: "grant", group, operationId: "", allow: "POST" };
  }
  if (segments.length !== 5 || kind === undefined || operationId === undefined) {
    return { type: "not_found" };
  }
  if (method === "PUT") return { type: "renew", group, kind, operationId };
  if (method === "DELETE") return { type: "release", group, kind, operationId };
  return { type: "method_not_allowed", handler: "renew", group, operationId, allow: "PUT, DELETE" };
}

function pathOf(target: string): string {
  const end = target.search(/[?#]/);
  return end < 0 ? target : target.slice(0, end);
}

/** The decoded segments behind the prefix, or `null` for a path that is not canonical. */
function segmentsOf(target: string): readonly string[] | null {
  let path: string;
  try {
    path = decodeURIComponent(pathOf(target));
  } catch {
    return null;
  }
  // An encoded slash separates like a plain one, as in the reference, which splits the decoded path.
  if (!path.startsWith(`${PREFIX}/`) || path.includes("//")) return null;
  const segments = path.slice(PREFIX.length + 1).split("/");
  return segments.some((segment) => segment === "." || segment === "..") ? null : segments;
}
