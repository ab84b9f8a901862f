/**
 * The backups of a group, as far as the PITR cut-off needs them: deploy-api 14 and 15.5.
 *
 * @module
 */

import { z } from "zod";
import type { Resource } from "../kube/api.ts";
import { kubeObject, resource } from "../kube/resources.ts";

/** Label on a backup: the profile by which it was made. */
export const BACKUP_PROFILE_LABEL = "shipstream.io/backup-profile";

const text = z.string().nullish();

const backupSchema = kubeObject.extend({
  status: z.looseObject({ phase: text, completionTime: text }).nullish(),
});

/** A backup of a group. */
export type MysqlBackup = z.infer<typeof backupSchema>;

/** The backups. */
export const MYSQL_BACKUPS: Resource<MysqlBackup> = resource({
  group: "shipstream.io",
  version: "v1alpha1",
  plural: "mysqlbackups",
  kind: "MysqlBackup",
  namespaced: true,
}, backupSchema);

/** A backup does not say what it must, so that no cut-off can be told. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

/**
 * Finds the cut-off of each profile: the oldest completion among the backups that succeeded and are not being deleted.
 * Whatever is older than it cannot be restored to.
 *
 * @param backups The backups of one group.
 * @returns By profile, in UTC with whole seconds. A profile without such a backup is not in it.
 * @throws {BackupError} A backup that counts has a time that cannot be read. To leave it out would name a later time, and
 * whoever deletes logs up to that would delete what the backup needs.
 */
export function cutoffs(backups: readonly MysqlBackup[]): ReadonlyMap<string, string> {
  const oldest = new Map<string, number>();
  for (const { metadata, status } of backups) {
    const profile = metadata.labels?.[BACKUP_PROFILE_LABEL];
    if (profile === undefined || metadata.deletionTimestamp) continue;
    if (status?.phase !== "Succeeded" || !status.completionTime) continue;
    const completedMs = Date.parse(status.completionTime);
    if (Number.isNaN(completedMs)) {
      throw new BackupError("Cannot find the cut-off as a 'completionTime' must be an instant");
    }
    oldest.set(profile, Math.min(oldest.get(profile) ?? Infinity, completedMs));
  }
  return new Map([...oldest].map(([profile, ms]) => [profile, wholeSeconds(ms)]));
}

function wholeSeconds(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
