/**
 * Reports from the deployment API, for callers: one call, or one a second.
 *
 * @module
 */

import type { HoldfastClient } from "../../../lib/client/client.ts";
import { HoldfastError, NotAuthorizedError, UnstableError } from "../../../lib/client/errors.ts";
import { clientFrom, type ClientSettings } from "../../../lib/client/settings.ts";
import { sleep } from "../../../lib/runtime/clock.ts";
import { apiReport, closedReport } from "../../../lib/status/api_report.ts";
import type { StatusReport } from "../../../lib/status/report.ts";
import { readTextFile } from "../administrator.ts";
import { CommandFault, NOT_AUTHORIZED } from "../faults.ts";
import type { System } from "../system.ts";
import { type StatusSource, TICK_MS } from "./source.ts";

/** Makes the client. @throws {ClientSettingsError} A setting is missing or cannot be used. */
export async function apiSource(
  system: System,
  settings: Omit<ClientSettings, "instance">,
): Promise<StatusSource> {
  const { clock, entropy, env } = system;
  // A look names no database: the group stands in where the environment has none.
  const instance = env.HOLDFAST_INSTANCE || settings.group || env.HOLDFAST_GROUP;
  const client = await clientFrom({ ...settings, instance }, {
    clock,
    entropy,
    env,
    readTextFile: (path) => readTextFile(system, path),
  });
  return new ApiSource(system, client);
}

class ApiSource implements StatusSource {
  readonly #system: System;
  readonly #client: HoldfastClient;

  constructor(system: System, client: HoldfastClient) {
    this.#system = system;
    this.#client = client;
  }

  async read(signal: AbortSignal): Promise<StatusReport> {
    const { clock } = this.#system;
    try {
      return apiReport(await this.#client.observe({ signal }), clock.wall());
    } catch (error) {
      if (error instanceof UnstableError) {
        return closedReport(this.#client.group, error.reason, clock.wall());
      }
      if (error instanceof NotAuthorizedError && error.reason === "forbidden") {
        throw new CommandFault(
          `Cannot look at group '${this.#client.group}' as the service account is not allowed to: 'spec.deploymentClients' of a MysqlDatabase of the group must name it`,
          NOT_AUTHORIZED,
          { cause: error },
        );
      }
      throw error;
    }
  }

  async follow(signal: AbortSignal, show: (report: StatusReport) => void): Promise<void> {
    const { clock } = this.#system;
    let last: StatusReport | null = null;
    while (!signal.aborted) {
      try {
        await sleep(clock, TICK_MS, signal);
        last = await this.read(signal);
        show(last);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof HoldfastError || error instanceof CommandFault)) throw error;
        show(failedReport(last, error, clock.wall()));
      }
    }
  }

  [Symbol.dispose](): void {}
}

/** What was seen last, and that it may be old. */
function failedReport(
  last: StatusReport | null,
  { message }: Error,
  nowMs: number,
): StatusReport {
  const at = Temporal.Instant.fromEpochMilliseconds(Math.floor(nowMs)).toString();
  return { source: "api", at, groups: last?.groups ?? [], problems: [message] };
}
