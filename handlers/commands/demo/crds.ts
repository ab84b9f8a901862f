/**
 * The custom resource definitions of `deploy/crds`, as a part of the program: the bundle is one file, and has them too.
 *
 * @module
 */

import { parse } from "yaml";
import backups from "../../../deploy/crds/mysqlbackups.yaml" with { type: "text" };
import databases from "../../../deploy/crds/mysqldatabases.yaml" with { type: "text" };
import groups from "../../../deploy/crds/mysqlfailovergroups.yaml" with { type: "text" };

/** The definitions as manifests. */
export function readDefinitions(): readonly unknown[] {
  return [groups, databases, backups].map((text): unknown => parse(text));
}
