/**
 * Revocation that is asked for by the annotation `revoke-deployment-leases` on a group: deploy-api 7.8.
 *
 * While the annotation is there, nothing is granted or renewed. So it is removed last, and only if it is still the one
 * that was served: whatever fails before that leaves it in place, and the next look finishes what this one began. Each look
 * reads the group anew before it revokes, so a removal whose answer was lost never leads to a second revocation.
 *
 * @module
 */

import {
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
  REVOKE_ANNOTATION,
} from "../group/types.ts";
import type { KubeApi, Stored } from "../kube/api.ts";
import { ConflictError } from "../kube/errors.ts";
import type { Adoption } from "../lease/adoption.ts";
import { readForRevocation, revokeGroup } from "../lease/revoke.ts";
import { ContendedError, TRIES, type Turn } from "../lease/turn.ts";
import type { Due, GroupController, GroupSight } from "./group_controller.ts";

/** What a {@linkcode RevocationController} is made of. */
export interface RevocationControllerParts {
  readonly api: KubeApi;
  /** Of the coordinator. */
  readonly adoption: Adoption;
}

/** Serves the annotation. */
export class RevocationController implements GroupController {
  readonly name = "revocation";
  readonly #parts: RevocationControllerParts;

  constructor(parts: RevocationControllerParts) {
    this.#parts = parts;
  }

  /** @throws {ContendedError} Others wrote in between each time. */
  async reconcile(turn: Turn, { group }: GroupSight): Promise<Due | null> {
    if (requested(group) === undefined) return null;
    for (let tries = 0; tries < TRIES; tries++) {
      if (await this.#serve(turn)) return null;
      turn.parts.metrics.retried("revoke");
    }
    throw new ContendedError("serve the revocation");
  }

  /**
   * Revokes, and removes the annotation under the version that was read before: so it was there throughout, and no lease
   * was granted meanwhile. To compare its values would not do, since the same words may be set again.
   *
   * @returns False when the group was written meanwhile: the request may be another one.
   */
  async #serve(turn: Turn): Promise<boolean> {
    const topology = await readForRevocation(turn, this.#parts.adoption);
    if (requested(topology.group) === undefined) return true;
    await revokeGroup(turn, topology, {
      reason: "operator_revoked",
      stillAsked: (group) => requested(group) !== undefined,
    });
    return await this.#remove(turn, topology.group);
  }

  /** Removes exactly this annotation from exactly this version, and touches nothing else. */
  async #remove(turn: Turn, group: Stored<MysqlFailoverGroup>): Promise<boolean> {
    const { namespace, name, uid, resourceVersion } = group.metadata;
    turn.mustLead();
    try {
      await this.#parts.api.patch(MYSQL_FAILOVER_GROUPS, { namespace, name }, {
        type: "merge",
        body: { metadata: { uid, resourceVersion, annotations: { [REVOKE_ANNOTATION]: null } } },
      }, turn.options);
      return true;
    } catch (error) {
      if (error instanceof ConflictError) return false;
      throw error;
    }
  }
}

/** The value of the annotation; any counts, also an empty one. */
function requested({ metadata }: MysqlFailoverGroup): string | undefined {
  return metadata.annotations?.[REVOKE_ANNOTATION];
}
