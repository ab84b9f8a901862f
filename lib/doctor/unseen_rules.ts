/**
 * What is told of something that could not be looked at.
 *
 * @module
 */

import type { KubeErrorClass } from "../kube/errors.ts";
import { type Finding, unseen } from "./finding.ts";

/** What was looked for, and the right that it takes. */
export interface Looked {
  readonly check: string;
  readonly what: string;
  readonly right: { readonly verb: string; readonly resource: string };
}

/** Tells why it was not seen. */
export function notSeen({ check, what, right }: Looked, why: KubeErrorClass): Finding {
  if (why === "forbidden") {
    return unseen(
      check,
      `${what} cannot be seen, as you are not allowed to`,
      `Look as somebody with the verb "${right.verb}" on ${right.resource}`,
    );
  }
  return unseen(check, `${what} cannot be seen (${why})`, "Try again");
}
