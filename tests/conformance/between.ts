/**
 * Acts between two calls of the service: what an operator, another replica or a person with `kubectl` does just then.
 *
 * @module
 */

import type { SendRequest } from "../../lib/kube/exchange.ts";

interface Rule {
  readonly when: "before" | "after";
  readonly call: RegExp;
  readonly act: () => void | Promise<void>;
  skip: number;
  left: number;
}

/** How often a rule acts, and when for the first time. */
export interface HowOften {
  /** @default {1} */
  readonly times?: number;
  /** How many matching calls pass first. @default {0} */
  readonly skip?: number;
}

/** A way to the API server on which a test can act. */
export class Between {
  readonly #rules: Rule[] = [];

  /** Wraps the way. */
  readonly wrap = (send: SendRequest): SendRequest => async (request) => {
    const line = `${request.method} ${new URL(request.url).pathname}`;
    await this.#act("before", line);
    const answer = await send(request);
    await this.#act("after", line);
    return answer;
  };

  /** Acts before a call is sent whose `METHOD path` matches. */
  before(call: RegExp, act: Rule["act"], { times = 1, skip = 0 }: HowOften = {}): void {
    this.#rules.push({ when: "before", call, act, skip, left: times });
  }

  /** Acts when a call was served, before the service sees its answer. */
  after(call: RegExp, act: Rule["act"], { times = 1, skip = 0 }: HowOften = {}): void {
    this.#rules.push({ when: "after", call, act, skip, left: times });
  }

  async #act(when: Rule["when"], line: string): Promise<void> {
    for (const rule of this.#rules) {
      if (rule.when !== when || rule.left === 0 || !rule.call.test(line)) continue;
      if (rule.skip-- > 0) continue;
      rule.left--;
      await rule.act();
    }
  }
}

/** The write of the migration slot of the group `orders`. */
export const SLOT_WRITE = /^PUT .*-orders-migration$/;
/** The write of a hold of the group `orders`: long names are cut behind the kind's first letters. */
export const HOLD_WRITE = /^PUT .*bloodraven-deploy-orders-failover-hold/;
/** The write of the gate of the group `orders`. */
export const GATE_WRITE = /^PUT .*-orders-gate$/;
/** A read of the group `orders`. */
export const GROUP_READ = /^GET .*mysqlfailovergroups\/orders$/;
/** A read of the gate of the group `orders`. */
export const GATE_READ = /^GET .*-orders-gate$/;
/** A list of leases. */
export const LEASE_LIST = /^GET .*\/leases$/;
