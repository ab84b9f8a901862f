/**
 * What can go wrong for a client, one class for each outcome that a caller may want to tell apart.
 *
 * No message holds a token or a text of another program.
 *
 * @module
 */

import type { Holder } from "./answers.ts";
import type { LossReason } from "./rules.ts";

/** The parent of all errors of this room. */
export abstract class HoldfastError extends Error {}

/** An option or a variable cannot be used. Nothing was sent. */
export class ClientSettingsError extends HoldfastError {
  override readonly name = "ClientSettingsError";
}

/** The bearer token could not be read. Nothing was sent. */
export class CredentialError extends HoldfastError {
  override readonly name = "CredentialError";

  constructor(options?: ErrorOptions) {
    super(
      "Cannot call the service as the service account token cannot be read: mount a projected token for the service's audience and name its file in HOLDFAST_TOKEN_FILE",
      options,
    );
  }
}

/** Why no useful answer came. */
export type UnreachableReason =
  | "connection"
  | "not_leader"
  | "timeout"
  | "unavailable"
  | "unexpected";

const unreachable: Readonly<Record<UnreachableReason, string>> = {
  connection: "the connection failed",
  not_leader: "no replica of it leads",
  timeout: "it did not answer in time",
  unavailable: "it answers that it is not available",
  unexpected: "what answers is not the deployment API",
};

/** The service did not answer, or could not. Trying again later may help. */
export class UnreachableError extends HoldfastError {
  override readonly name = "UnreachableError";
  /** What happened at the last try. */
  readonly reason: UnreachableReason;
  /** A grant was sent and its answer got lost: the lease may be held until its ttl is over, and by nobody. */
  readonly grantLost: boolean;

  constructor(reason: UnreachableReason, detail: string, grantLost: boolean) {
    const more = detail === "" ? "" : ` (${detail})`;
    const left = grantLost ? ". A lease may be stored all the same; it ends with its ttl" : "";
    super(`Cannot reach the service as ${unreachable[reason]}${more}${left}`);
    this.reason = reason;
    this.grantLost = grantLost;
  }
}

/** The service refuses the caller: 401 or 403. */
export class NotAuthorizedError extends HoldfastError {
  override readonly name = "NotAuthorizedError";
  /** `unauthorized`: the token is refused. `forbidden`: no database of the group names the caller. */
  readonly reason: "unauthorized" | "forbidden";

  constructor(reason: "unauthorized" | "forbidden", group: string, instance: string) {
    super(
      reason === "unauthorized"
        ? "Cannot call the service as it refuses the token: it must be a token of this cluster, not expired, for the service's audience"
        : `Cannot use group '${group}' as the service account is not allowed to: 'spec.deploymentClients' of the MysqlDatabase '${instance}' must name it, and its 'spec.groupRef' the group`,
    );
    this.reason = reason;
  }
}

/** The caller is allowed, and there is no such group. */
export class UnknownGroupError extends HoldfastError {
  override readonly name = "UnknownGroupError";

  constructor(group: string) {
    super(`Cannot find the group '${group}': there is no MysqlFailoverGroup of this name`);
  }
}

/** The service refuses what was asked as wrong: 400. */
export class InvalidRequestError extends HoldfastError {
  override readonly name = "InvalidRequestError";

  constructor(operationId: string, instance: string) {
    super(
      `Cannot ask for a lease as the service refuses the request: the operation must be 1 to 128 bytes without a slash, current value is '${operationId}'; the instance must be the name of a MysqlDatabase, current value is '${instance}'`,
    );
  }
}

/** Another one has the lease. */
export class HeldError extends HoldfastError {
  override readonly name = "HeldError";
  /** Who has it, and until when unless it is renewed. */
  readonly holder: Holder;

  constructor(group: string, holder: Holder) {
    super(
      `Cannot take the migration lease of group '${group}' as operation '${holder.operationId}' of '${holder.instance}' holds it until ${holder.expiresAt}, or longer if it renews`,
    );
    this.holder = holder;
  }
}

/** Two callers use one operation at the same time. Its lease was not touched any further, and ends with its ttl. */
export class OperationInUseError extends HoldfastError {
  override readonly name = "OperationInUseError";

  constructor(operationId: string) {
    super(
      `Cannot go on as another caller already uses operation '${operationId}': give each deployment an operation of its own`,
    );
  }
}

/** The group grants no lease now. */
export class UnstableError extends HoldfastError {
  override readonly name = "UnstableError";
  /** The service's word, or `ReplicationLag`. The list is open. */
  readonly reason: string;

  constructor(group: string, reason: string, detail = "") {
    const more = detail === "" ? "" : ` (${detail})`;
    super(`Cannot take a lease as group '${group}' is not stable: ${reason}${more}`);
    this.reason = reason;
  }
}

/** The operation was revoked earlier. It stays so for the life of the group. */
export class OperationRevokedError extends HoldfastError {
  override readonly name = "OperationRevokedError";
  /** Why it was revoked. */
  readonly reason: "topology_changed" | "operator_revoked" | "revoked";

  constructor(operationId: string, reason: "topology_changed" | "operator_revoked" | "revoked") {
    super(
      `Cannot take a lease as operation '${operationId}' was revoked (${reason}) and stays so: use a new operation`,
    );
    this.reason = reason;
  }
}

/** A renewal that was asked for did not succeed. The lease is still there, and its deadline is the old one. */
export class NotRenewedError extends HoldfastError {
  override readonly name = "NotRenewedError";
  /** The kind of answer, for example `unstable` or `no_answer`. */
  readonly answer: string;

  constructor(operationId: string, answer: string) {
    super(
      `Cannot renew the lease of operation '${operationId}' now (${answer}): the deadline stays where it was`,
    );
    this.answer = answer;
  }
}

/** Whether DDL may have begun. */
export type Phase = "before-ddl" | "after-ddl";

const losses: Readonly<Record<LossReason, string>> = {
  deadline: "its deadline is near and no renewal succeeded",
  topology_changed: "the group's topology changed",
  operator_revoked: "an operator revoked it",
  revoked: "it was revoked",
  not_found: "the lease ended",
  token_mismatch: "the lease was granted to another caller",
  released: "it was released",
};

/** Authority ended. The reason with which signals abort. */
export class AuthorityLostError extends HoldfastError {
  override readonly name = "AuthorityLostError";
  /** Why it ended. */
  readonly reason: LossReason;
  /** `after-ddl`: look at the schema by hand. */
  readonly phase: Phase;
  /** The operation that had it. */
  readonly operationId: string;

  constructor(operationId: string, reason: LossReason, phase: Phase, options?: ErrorOptions) {
    const wish = phase === "after-ddl" && reason !== "released"
      ? ": DDL may have begun, so verify the schema by hand"
      : "";
    super(`Cannot go on under operation '${operationId}' as ${losses[reason]}${wish}`, options);
    this.reason = reason;
    this.phase = phase;
    this.operationId = operationId;
  }
}
