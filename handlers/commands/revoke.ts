/**
 * `holdfast revoke`: takes the leases of a group, or of one operation, from their holders.
 *
 * 1. Show what will be revoked and who is hit, and ask.
 * 2. Look again: whoever got a lease meanwhile is shown too, and asked for.
 * 3. Ask for it (the group), or write it (one operation), and record who did and why in an Event.
 * 4. Wait until it is done, and tell what was revoked; also what was granted in the moment between 2 and 3.
 *
 * @module
 */

import { EventWriter } from "../../lib/controllers/events.ts";
import { leaseRevoked } from "../../lib/controllers/group_events.ts";
import { GroupNotFoundError } from "../../lib/group/topology.ts";
import { silentLogger } from "../../lib/runtime/log.ts";
import type { GroupStatus, LeaseStatus } from "../../lib/status/report.ts";
import {
  isStanding,
  isTombstone,
  newcomers,
  revocationRequested,
  targetsOf,
} from "../../lib/status/revocation.ts";
import { openCluster } from "./administrator.ts";
import { CommandFault, explain, FAILED } from "./faults.ts";
import type { RevokeOptions } from "./options.ts";
import { requestRevocation, waitUntilDone } from "./revoke/group_request.ts";
import { revokeRecords } from "./revoke/operation.ts";
import { look, type Place, requestOn, type Sight } from "./revoke/sight.ts";
import { countOf, Teller } from "./revoke/teller.ts";
import { userOf } from "./revoke/user.ts";

/** How this program calls itself in Events. */
const REPORTING_CONTROLLER = "holdfast";

/** Milliseconds for the Events at the end. */
const LAST_EVENTS_MS = 5_000;

/** Asks a person. */
export interface Asker {
  /** False where nobody can answer. */
  readonly canAsk: boolean;
  /** True for a yes. */
  ask(question: string): boolean;
}

/** Asks at the terminal of this process. */
export const terminalAsker: Asker = {
  get canAsk() {
    return Deno.stdin.isTerminal() && Deno.stdout.isTerminal();
  },
  // Not `confirm`, which does not notice Ctrl+C.
  ask: (question) => /^y(es)?$/i.test(prompt(`${question} [y/N]`)?.trim() ?? ""),
};

/**
 * Revokes.
 *
 * @returns The exit code: 0 done, or there was nothing to do; 1 refused, not agreed to, or not done; 2 wrong usage; 3 asked
 * for, and not done in time; 111 the cluster cannot be reached; 112 it does not allow it.
 */
export async function revoke(
  options: RevokeOptions,
  asker: Asker = terminalAsker,
): Promise<number> {
  const { system } = options;
  const interrupt = new AbortController();
  using signals = new DisposableStack();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    signals.defer(system.onSignal(name, () => interrupt.abort()));
  }
  try {
    return await run(options, asker, interrupt.signal);
  } catch (error) {
    if (interrupt.signal.aborted) {
      system.stderr.write(
        "holdfast: Stopped: 'holdfast status' shows whether the revocation was asked for\n",
      );
      return FAILED;
    }
    const fault = explain(error);
    if (fault === null) throw error;
    system.stderr.write(`holdfast: ${fault.message}\n`);
    return fault.exitCode;
  }
}

async function run(
  options: RevokeOptions,
  asker: Asker,
  signal: AbortSignal,
): Promise<number> {
  const { system, group, operation } = options;
  using cluster = await openCluster(system, signal);
  const namespace = options.namespace ?? cluster.api.defaultNamespace;
  const place: Place = { system, cluster, name: { namespace, name: group } };
  const sight = await look(place, signal).catch((error: unknown) => {
    if (!(error instanceof GroupNotFoundError) || options.namespace !== undefined) throw error;
    throw new CommandFault(
      `${error.message}; this is the namespace of the kubeconfig, name another with --namespace`,
      FAILED,
    );
  });
  const teller = new Teller(system);
  teller.group(sight.status);
  const work = new Work(options, asker, place, teller, signal);
  return operation === undefined
    ? await work.revokeGroup(sight)
    : await work.revokeOperation(sight, operation);
}

/** One run of the command. */
class Work {
  readonly #options: RevokeOptions;
  readonly #asker: Asker;
  readonly #place: Place;
  readonly #teller: Teller;
  readonly #signal: AbortSignal;

  constructor(
    options: RevokeOptions,
    asker: Asker,
    place: Place,
    teller: Teller,
    signal: AbortSignal,
  ) {
    this.#options = options;
    this.#asker = asker;
    this.#place = place;
    this.#teller = teller;
    this.#signal = signal;
  }

  async revokeGroup(sight: Sight): Promise<number> {
    const targets = targetsOf(sight.status);
    if (requestOn(sight.group) !== undefined) {
      this.#teller.say("Somebody has asked for it already: this waits until it is done");
      return await this.#wait(sight.status);
    }
    if (targets.length === 0) {
      this.#teller.say("There is nothing to revoke: nobody holds a lease of the group");
      return sight.status.problems.length === 0 ? 0 : FAILED;
    }
    this.#agree("All leases of the group will be revoked:", sight.status, targets);
    const agreed = await requestRevocation(
      this.#place,
      sight,
      (now, since) => this.#agree("Granted since the list was shown:", now, since),
      this.#signal,
    );
    this.#teller.say("Asked for. Waiting until the service or the operator has done it");
    const [code] = await Promise.all([this.#wait(agreed), this.#record(sight)]);
    return code;
  }

  async revokeOperation(sight: Sight, operationId: string): Promise<number> {
    const known = sight.status.leases.filter((lease) => lease.operationId === operationId);
    if (known.length === 0) throw this.#unknown(operationId);
    const targets = known.filter(isStanding);
    if (targets.length === 0 && known.some(isTombstone)) {
      this.#teller.say("It was revoked before. It stays so for the life of the group");
      return 0;
    }
    if (targets.length > 0) {
      this.#agree("These leases of the operation will be revoked:", sight.status, targets);
    } else {
      this.#agree(
        "The operation has ended; it will be kept from coming back:",
        sight.status,
        known,
      );
    }
    const events = this.#events();
    const revoked = await revokeRecords(
      this.#place,
      operationId,
      (group, record) => events.writer.report(leaseRevoked(group, record)),
      this.#signal,
    );
    if (revoked === null) throw this.#unknown(operationId);
    for (const record of revoked) {
      this.#teller.revoked(record, newcomers(known, [record]).length > 0);
    }
    await this.#record(sight, events);
    this.#teller.say(
      revoked.length === 0
        ? "It was revoked before. It stays so for the life of the group"
        : `Done: ${
          countOf(revoked)
        } revoked. The operation stays refused for the life of the group`,
    );
    return 0;
  }

  /** Shows and asks. @throws {CommandFault} The answer is no, or nobody can answer. */
  #agree(title: string, group: GroupStatus, leases: readonly LeaseStatus[]): void {
    this.#teller.leases(title, group, leases);
    if (this.#options.yes) return;
    if (!this.#asker.canAsk) {
      throw new CommandFault(
        "Cannot revoke without a yes as nobody can be asked here: look at the list and give --yes",
        FAILED,
      );
    }
    this.#teller.say(
      "Each holder learns of it at its next renewal. A deployment that is at work is cut off, and its operation stays refused for the life of the group.",
    );
    if (this.#asker.ask(`Revoke ${countOf(leases)}?`)) return;
    throw new CommandFault("Nothing was revoked", FAILED);
  }

  async #wait(agreed: GroupStatus): Promise<number> {
    const { timeoutMs } = this.#options;
    return await waitUntilDone(this.#place, agreed, this.#teller, timeoutMs, this.#signal);
  }

  /** Records who asked and why. It never fails the work: a courtesy that cannot be written is told. */
  async #record({ group }: Sight, events = this.#events()): Promise<void> {
    const { system, cluster, name } = this.#place;
    const { operation, reason } = this.#options;
    // Not the signal of the wait: what was done is recorded also when nobody waits for its end.
    const { signal } = new AbortController();
    const user = await userOf(system, cluster.api, signal);
    const who = { ...name, uid: group.metadata.uid };
    events.writer.report(
      revocationRequested(who, { user, operationId: operation, reason }),
    );
    await events.writer.stop(LAST_EVENTS_MS);
    if (events.failed() === 0) return;
    this.#teller.warn(
      'warning: Cannot record all of it in Events: the verb "create" on "events.events.k8s.io" is needed in the namespace of the group',
    );
  }

  #events() {
    const { system, cluster } = this.#place;
    let failed = 0;
    const writer = new EventWriter({
      api: cluster.api,
      clock: system.clock,
      entropy: system.entropy,
      logger: silentLogger,
      figures: { published: () => {}, failed: () => void failed++ },
      reportingController: REPORTING_CONTROLLER,
      reportingInstance: "holdfast-revoke",
    });
    return { writer, failed: () => failed };
  }

  #unknown(operationId: string): CommandFault {
    const { group } = this.#options;
    return new CommandFault(
      `Cannot revoke operation '${operationId}': group '${group}' has no record of it`,
      FAILED,
    );
  }
}
