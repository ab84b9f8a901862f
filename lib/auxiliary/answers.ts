/**
 * What the endpoints of the auxiliary listener answer: deploy-api 14.
 *
 * @module
 */

import type { GroupsView } from "./live_groups.ts";
import { type StatusView, statusView } from "./status_view.ts";

/** A status and a body of JSON. */
export interface JsonAnswer {
  readonly status: 200 | 400 | 404 | 500 | 503;
  readonly body: object;
}

/** A query parameter as it came: absent, or its first value. */
export type Parameter = string | undefined;

/** Which group a query names. */
export interface GroupQuery {
  readonly namespace: Parameter;
  readonly group: Parameter;
}

/** Makes the answer to who asked wrongly, or to whom nothing can be said. */
export function errorAnswer(status: Exclude<JsonAnswer["status"], 200>, error: string): JsonAnswer {
  return { status, body: { error } };
}

/** There is no group, or nothing is known of groups yet. */
const NO_GROUPS = "no active topology managers";

/** Answers `/status`: every group by its key, in the order of the keys. */
export function statusAnswer(groups: GroupsView): JsonAnswer {
  // To say that there are no groups before they were listed would be a lie.
  if (!groups.synced) return errorAnswer(503, NO_GROUPS);
  const views: [string, StatusView][] = groups.keys().flatMap((key) => {
    const sight = groups.sight(key);
    return sight === null ? [] : [[key, statusView(sight.group)]];
  });
  if (views.length === 0) return { status: 200, body: { status: "no active failover groups" } };
  return { status: 200, body: Object.fromEntries(views) };
}

/** Answers `/active-site`. */
export function activeSiteAnswer(groups: GroupsView, query: GroupQuery): JsonAnswer {
  const { namespace, group } = query;
  if (!namespace || !group) {
    return errorAnswer(400, "namespace and group query parameters are required");
  }
  if (groups.keys().length === 0) return errorAnswer(503, NO_GROUPS);
  const sight = groups.sight(`${namespace}/${group}`);
  if (sight === null) return errorAnswer(404, "failover group not found");
  const { activeSite } = sight.group.status ?? {};
  return { status: 200, body: { namespace, group, activeSite: activeSite ?? "" } };
}

/**
 * Answers `/pitr-cutoff`.
 *
 * @param cutoffOf Finds the cut-off; `null` when there is none. What it throws is told to `failed`.
 */
export async function pitrCutoffAnswer(
  groups: GroupsView,
  query: GroupQuery & { readonly profile: Parameter },
  cutoffOf: (namespace: string, group: string, profile: string) => Promise<string | null>,
  failed: (error: unknown) => void,
): Promise<JsonAnswer> {
  const { namespace, group, profile } = query;
  if (!namespace || !group || !profile) {
    return errorAnswer(400, "namespace, group, and profile query parameters are required");
  }
  if (groups.keys().length === 0) return errorAnswer(503, NO_GROUPS);
  try {
    const cutoffTime = await cutoffOf(namespace, group, profile);
    const body = { namespace, group, profile };
    return { status: 200, body: cutoffTime === null ? body : { ...body, cutoffTime } };
  } catch (error) {
    failed(error);
    return errorAnswer(500, "internal error resolving PITR cutoff");
  }
}
