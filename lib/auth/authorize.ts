/**
 * What a caller may do: coordinate the deployments of the databases that name it. deploy-api 4.
 *
 * @module
 */

import type { MysqlDatabase } from "../group/types.ts";

/** A service account that has shown a valid token. */
export interface Caller {
  readonly namespace: string;
  readonly serviceAccount: string;
}

/** What becomes of an authorization. */
export type Authorization =
  | {
    readonly outcome: "authorized";
    /** The namespace of the databases, and so of the group. */
    readonly namespace: string;
    /** The names of the databases that name the caller, in the order of the list; one at least. */
    readonly instances: readonly string[];
  }
  | { readonly outcome: "forbidden" };

/**
 * Finds the databases of a group that name a caller.
 *
 * A database counts when it is not being deleted, belongs to the group, and lists the caller's service account. Where they
 * lie in several namespaces it is not clear which group is meant: forbidden.
 *
 * @param databases Any databases, also of other groups.
 * @param group The name of the group in the path.
 * @param instance For a grant: the name of the one database that counts.
 */
export function authorize(
  databases: readonly MysqlDatabase[],
  caller: Caller,
  group: string,
  instance?: string,
): Authorization {
  const matches = naming(databases, caller, group).filter(({ metadata }) =>
    instance === undefined || metadata.name === instance
  );
  const namespaces = new Set(matches.map((database) => database.metadata.namespace));
  const [namespace] = namespaces;
  if (namespaces.size !== 1 || namespace === undefined) return { outcome: "forbidden" };
  return {
    outcome: "authorized",
    namespace,
    instances: matches.flatMap((database) => database.metadata.name ?? []),
  };
}

/** The databases of a group that name a caller, in all namespaces, and are not being deleted. */
export function naming<T extends MysqlDatabase>(
  databases: readonly T[],
  caller: Caller,
  group: string,
): readonly T[] {
  return databases.filter(({ metadata, spec }) =>
    !metadata.deletionTimestamp &&
    spec?.groupRef?.name === group &&
    (spec.deploymentClients ?? []).some((client) =>
      client.namespace === caller.namespace && client.serviceAccount === caller.serviceAccount
    )
  );
}
