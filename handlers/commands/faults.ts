/**
 * What can go wrong for a command that calls the service or the cluster, as exit codes. The codes are those of
 * `holdfast run`, so that a script that knows one command knows all.
 *
 * @module
 */

import {
  ClientSettingsError,
  CredentialError,
  HoldfastError,
  NotAuthorizedError,
  UnreachableError,
} from "../../lib/client/errors.ts";
import { GroupNotFoundError } from "../../lib/group/topology.ts";
import { ClusterConfigError, KubeError, NoClusterError } from "../../lib/kube/mod.ts";
import { ForeignOwnerError } from "../../lib/records/lease_object.ts";
import { RecordError } from "../../lib/records/record.ts";
import { ContendedError } from "../../lib/lease/turn.ts";

/** It was refused, or something could not be read. */
export const FAILED = 1;
/** Wrong usage, or a setting that cannot be used. */
export const USAGE = 2;
/** The service or the cluster cannot be reached. */
export const UNREACHABLE = 111;
/** The service or the cluster does not allow it. */
export const NOT_AUTHORIZED = 112;

/** A command cannot go on, for a reason that its user can put right. */
export class CommandFault extends Error {
  override readonly name = "CommandFault";
  /** The code to end with. */
  readonly exitCode: number;

  constructor(message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** What to tell, and the code to end with. */
export interface Fault {
  readonly message: string;
  readonly exitCode: number;
}

/** Explains what was thrown; `null` for a fault of this program, which nobody should dress up. */
export function explain(error: unknown): Fault | null {
  const exitCode = exitCodeOf(error);
  if (exitCode === null || !(error instanceof Error)) return null;
  return { message: error.message, exitCode };
}

function exitCodeOf(error: unknown): number | null {
  if (error instanceof CommandFault) return error.exitCode;
  if (error instanceof ClientSettingsError) return USAGE;
  if (error instanceof UnreachableError) return UNREACHABLE;
  if (error instanceof NotAuthorizedError || error instanceof CredentialError) {
    return NOT_AUTHORIZED;
  }
  if (error instanceof KubeError) {
    if (error.kind === "unavailable" || error.kind === "timeout") return UNREACHABLE;
    if (error.kind === "forbidden" || error.kind === "unauthorized") return NOT_AUTHORIZED;
    return FAILED;
  }
  const known = error instanceof HoldfastError || error instanceof NoClusterError ||
    error instanceof ClusterConfigError ||
    error instanceof GroupNotFoundError || error instanceof ContendedError ||
    error instanceof RecordError || error instanceof ForeignOwnerError;
  return known ? FAILED : null;
}
