/**
 * A newer version of this program: the present source with a member more in records and one more in the gate, which the
 * newer version counts with each of its own writes.
 *
 * It keeps the rules of docs/upgrade.md: a new member may be absent, and whoever does not know it does no harm.
 *
 * @module
 */

import type { SourceTexts } from "../checks/syntax.ts";

/** The member of a record that the newer version adds: how often the lease was renewed by it. */
export const RECORD_MEMBER = "renewals";
/** The member of the gate that the newer version adds: how often the gate was written by it. */
export const GATE_MEMBER = "writes";

/** A text that stands in a file exactly once, and what takes its place. */
interface Edit {
  readonly file: string;
  readonly old: string;
  readonly now: string;
}

const EDITS: readonly Edit[] = [
  {
    file: "lib/records/record.ts",
    old: "  readonly reason?: RevocationReason;\n}",
    now: `  readonly reason?: RevocationReason;\n  readonly ${RECORD_MEMBER}?: number;\n}`,
  },
  {
    file: "lib/records/record.ts",
    old: `  reason: z.enum(["topology_changed", "operator_revoked"]).optional(),\n`,
    now: `  reason: z.enum(["topology_changed", "operator_revoked"]).optional(),\n` +
      `  ${RECORD_MEMBER}: z.number().int().nonnegative().optional(),\n`,
  },
  {
    file: "lib/lease/rules.ts",
    old: `      state: "active",\n    },\n    archive:`,
    now: `      state: "active",\n` +
      `      ${RECORD_MEMBER}: regrant ? target.${RECORD_MEMBER} ?? 0 : 0,\n    },\n    archive:`,
  },
  {
    file: "lib/lease/rules.ts",
    old: `record: { ...record, expiresAt } };`,
    now:
      `record: { ...record, expiresAt, ${RECORD_MEMBER}: (record.${RECORD_MEMBER} ?? 0) + 1 } };`,
  },
  {
    file: "lib/group/gate_lease.ts",
    old: "  readonly planned: PlannedAdmission | null;\n}",
    now: `  readonly planned: PlannedAdmission | null;\n  readonly ${GATE_MEMBER}?: number;\n}`,
  },
  {
    file: "lib/group/gate_lease.ts",
    old: "const gateSchema = z.looseObject({\n",
    now: `const gateSchema = z.looseObject({\n  ${GATE_MEMBER}: count.optional(),\n`,
  },
  {
    file: "lib/group/gate_lease.ts",
    old: "return { ...record, seq: record.seq + 1 };",
    now: "return { ...record, seq: record.seq + 1, " +
      `${GATE_MEMBER}: (record.${GATE_MEMBER} ?? 0) + 1 };`,
  },
];

/**
 * Makes the source of the newer version.
 *
 * @throws {RangeError} A place that is edited is not there exactly once: the source has changed, so must the edit.
 */
export function newerSource(texts: SourceTexts): SourceTexts {
  const newer = new Map(texts);
  for (const { file, old, now } of EDITS) {
    const parts = newer.get(file)?.split(old) ?? [];
    if (parts.length !== 2) {
      throw new RangeError(
        `Cannot make a newer version as '${file}' must have the text once: ${JSON.stringify(old)}`,
      );
    }
    newer.set(file, parts.join(now));
  }
  return newer;
}
