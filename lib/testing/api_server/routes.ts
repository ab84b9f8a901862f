/**
 * From a URL and a method to a call: which verb, on what.
 *
 * @module
 */

import { selectedName } from "./selectors.ts";

/** A call on a kind of object. */
export interface ResourceRoute {
  readonly type: "resource";
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  /** The name in the URL; empty when there is none. */
  readonly name: string;
  readonly subresource: string;
  /** The name that authorization judges: that of the URL, or the one that a field selector asks for. */
  readonly judgedName: string;
}

/** A call on any other path: discovery, health, version. */
export interface PathRoute {
  readonly type: "path";
  /** The method in lower case, as RBAC names it for paths. */
  readonly verb: string;
  readonly path: string;
}

/** What a request asks for. */
export type Route = ResourceRoute | PathRoute;

/** Reads a request line. Path segments are decoded; one that cannot be is taken as it is. */
export function routeOf(method: string, url: URL): Route {
  const segments = url.pathname.split("/").filter((part) => part !== "").map(decoded);
  const asPath: PathRoute = { type: "path", verb: method.toLowerCase(), path: url.pathname };
  if (segments[0] === "api" && segments.length > 2) {
    return resourceRoute("", segments[1] ?? "", segments.slice(2), method, url);
  }
  if (segments[0] === "apis" && segments.length > 3) {
    return resourceRoute(segments[1] ?? "", segments[2] ?? "", segments.slice(3), method, url);
  }
  return asPath;
}

function resourceRoute(
  group: string,
  version: string,
  segments: readonly string[],
  method: string,
  url: URL,
): ResourceRoute {
  // `/api/v1/namespaces/x` is the namespace x; `/api/v1/namespaces/x/pods` is in it.
  const isInNamespace = segments[0] === "namespaces" && segments.length > 2 &&
    segments[2] !== "status" && segments[2] !== "finalize";
  const [plural = "", name = "", subresource = ""] = isInNamespace ? segments.slice(2) : segments;
  const isNamespace = !isInNamespace && plural === "namespaces";
  const namespace = isInNamespace || isNamespace ? segments[1] ?? "" : "";
  return {
    type: "resource",
    verb: verbOf(method, name, url.searchParams),
    group,
    version,
    plural,
    namespace,
    name,
    subresource,
    judgedName: name || selectedName(url.searchParams.get("fieldSelector") ?? ""),
  };
}

function verbOf(method: string, name: string, query: URLSearchParams): string {
  switch (method) {
    case "GET":
      if (name !== "") return "get";
      return isTrue(query.get("watch")) ? "watch" : "list";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === "" ? "deletecollection" : "delete";
    default:
      return method.toLowerCase();
  }
}

/** As Go reads a switch in a query: all is true but "false", "0" and nothing. */
function isTrue(value: string | null): boolean {
  return value !== null && !["", "0", "false", "False", "FALSE", "f", "F"].includes(value);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
