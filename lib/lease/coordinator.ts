/**
 * The deployment leases of all groups: the door between the HTTP room and the rules.
 *
 * Every call waits for its turn in its group, reads, decides, writes, looks again, and answers with a value. What is
 * thrown is a fault (503), an absent permission, or a lead that was lost.
 *
 * @module
 */

import type { Access } from "../auth/access.ts";
import { Adoption } from "./adoption.ts";
import { grant, type Granted, type GrantInput } from "./grant.ts";
import {
  type HolderInput,
  release,
  type Released,
  renew,
  type Renewed,
  type RenewInput,
} from "./holder_requests.ts";
import type { LeaseRecord, RevocationReason } from "../records/record.ts";
import { readForRevocation, revokeGroup, revokeOperation } from "./revoke.ts";
import type { GroupIdentity } from "../records/store.ts";
import { type CoordinatorParts, inGroupTurn, inRequestTurn, type Refused } from "./turn.ts";
import { view, type Viewed } from "./view.ts";

/** Coordinates deployments. One per process; several processes stay safe beside each other. */
export class LeaseCoordinator {
  /** Which groups' leases carry our label: what else looks at leases by that label shares it. */
  readonly adoption: Adoption = new Adoption();
  readonly #parts: CoordinatorParts;

  constructor(parts: CoordinatorParts) {
    this.#parts = parts;
  }

  /** Begins a term of leadership: forgets what another leader may have changed meanwhile. */
  beginTerm(): void {
    this.adoption.reset();
    this.#parts.topology.forget();
  }

  /** Ends a term: a leader that was deposed shows no leases. */
  endTerm(): void {
    this.#parts.metrics.forget();
  }

  /** Reads a group: deploy-api 2.1. */
  view(access: Access, signal: AbortSignal): Promise<Viewed | Refused> {
    return inRequestTurn(this.#parts, access, signal, (turn) => view(turn, this.adoption));
  }

  /** Grants a lease: deploy-api 2.2. */
  grant(access: Access, input: GrantInput, signal: AbortSignal): Promise<Granted | Refused> {
    return inRequestTurn(this.#parts, access, signal, (turn) => grant(turn, input));
  }

  /** Renews a lease: deploy-api 2.3. */
  renew(access: Access, input: RenewInput, signal: AbortSignal): Promise<Renewed | Refused> {
    return inRequestTurn(this.#parts, access, signal, (turn) => renew(turn, input));
  }

  /** Releases a lease: deploy-api 2.4. */
  release(access: Access, input: HolderInput, signal: AbortSignal): Promise<Released | Refused> {
    return inRequestTurn(this.#parts, access, signal, (turn) => release(turn, input));
  }

  /**
   * Revokes every active lease of a group, or all that one operation has (difference 22): deploy-api 7.8.
   *
   * @returns What was revoked, as it is stored; `null` when the group has no record of the operation.
   * @throws {GroupNotFoundError} @throws {ContendedError}
   */
  revoke(
    group: Pick<GroupIdentity, "namespace" | "name">,
    { reason, operationId }: {
      readonly reason: RevocationReason;
      /** @default {all operations} */
      readonly operationId?: string;
    },
    signal: AbortSignal,
  ): Promise<readonly LeaseRecord[] | null> {
    return inGroupTurn(this.#parts, group, signal, async (turn) => {
      const topology = await readForRevocation(turn, this.adoption);
      if (operationId !== undefined) {
        return await revokeOperation(turn, topology, operationId, reason);
      }
      return await revokeGroup(turn, topology, { reason });
    });
  }
}
