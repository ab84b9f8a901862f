/**
 * What travels with a request of the deployment API from one middleware to the next.
 *
 * @module
 */

import type { Caller } from "../../lib/auth/authorize.ts";
import type { ListenerEnv } from "../../lib/host/raw_target.ts";
import type { DeployCall, DeployHandler } from "./deploy_path.ts";

/** What the log line of a request says: deploy-api 11. Each is empty until it is known. */
export interface LogEntry {
  handler: DeployHandler;
  group: string;
  instance: string;
  namespace: string;
  operationId: string;
}

/** The types of the context. */
export interface DeployEnv {
  readonly Bindings: ListenerEnv;
  readonly Variables: {
    /** Filled in on the way, written at the end. */
    entry: LogEntry;
    /** Aborts when the request's time is over or the client is gone. */
    signal: AbortSignal;
    caller: Caller;
    call: DeployCall;
  };
}
