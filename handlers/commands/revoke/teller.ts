/**
 * What `holdfast revoke` says: tables on a terminal, lines in a pipe.
 *
 * @module
 */

import type { LeaseRecord } from "../../../lib/records/record.ts";
import { leaseLine } from "../../../lib/status/lines.ts";
import type { GroupStatus, LeaseStatus } from "../../../lib/status/report.ts";
import { leaseTable, wrap } from "../../../lib/status/table.ts";
import { groupState, shown } from "../../../lib/status/words.ts";
import type { System } from "../system.ts";

/** Tells the user. */
export class Teller {
  readonly #system: System;

  constructor(system: System) {
    this.#system = system;
  }

  /** A sentence, or more. */
  say(text: string): void {
    const { stdout } = this.#system;
    const lines = stdout.isTerminal ? wrap(text, "") : [text];
    stdout.write(`${lines.join("\n")}\n`);
  }

  /** Something that is wrong. */
  warn(text: string): void {
    this.#system.stderr.write(`holdfast: ${text}\n`);
  }

  /** The group, and some of its leases. */
  leases(title: string, { namespace, name }: GroupStatus, leases: readonly LeaseStatus[]): void {
    this.say(title);
    if (this.#system.stdout.isTerminal) {
      for (const line of leaseTable(leases, "cluster")) this.#system.stdout.write(`${line}\n`);
      return;
    }
    for (const lease of leases) this.say(`lease ${namespace}/${name}: ${leaseLine(lease)}`);
  }

  /** How the group is, and what of it cannot be read. */
  group(group: GroupStatus): void {
    const { namespace, name, activeSite, topologyGeneration, problems } = group;
    const site = activeSite === "" ? "no active site" : `active site ${shown(activeSite)}`;
    this.say(
      `group ${namespace}/${name}: ${site}, generation ${topologyGeneration}, ${groupState(group)}`,
    );
    for (const problem of problems) this.warn(`warning: ${shown(problem)}`);
  }

  /** One lease that was revoked. */
  revoked(lease: LeaseStatus | LeaseRecord, late: boolean): void {
    const { kind, operationId, instance } = lease;
    const more = late ? ", which was granted after the list was shown" : "";
    this.say(`revoked: ${kind} of operation ${shown(operationId)} for ${shown(instance)}${more}`);
  }
}

/** A number of leases in words. */
export function countOf(leases: readonly unknown[]): string {
  return leases.length === 1 ? "1 lease" : `${leases.length} leases`;
}
