/**
 * What a log line may say of a fault.
 *
 * @module
 */

import { KubeError } from "../../lib/kube/errors.ts";
import { errorClass } from "../../lib/runtime/error_class.ts";
import type { LogFields } from "../../lib/runtime/log.ts";

/** The class of a fault and its call, never a text of the API server. */
export function faultOf(error: unknown): LogFields {
  const call = error instanceof KubeError ? `${error.call.verb} ${error.call.resource}` : "";
  return { fault: errorClass(error), call };
}
