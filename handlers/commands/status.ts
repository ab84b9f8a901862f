/**
 * `holdfast status`: how groups are, who holds them, and what waits.
 *
 * @module
 */

import { isComplete, type StatusReport } from "../../lib/status/report.ts";
import { CommandFault, explain, FAILED, USAGE } from "./faults.ts";
import type { StatusOptions } from "./options.ts";
import { Screen } from "./status/screen.ts";
import type { StatusSource } from "./status/source.ts";

/**
 * Shows how groups are, once or until a signal comes.
 *
 * @returns The exit code: 0 all was read, or a watch ended; 1 something could not be read; 2 options or settings that
 * cannot be used; 111 the service or the cluster cannot be reached; 112 it does not allow it.
 */
export async function status(options: StatusOptions): Promise<number> {
  const { system } = options;
  const interrupt = new AbortController();
  using signals = new DisposableStack();
  if (options.watch) {
    for (const name of ["SIGINT", "SIGTERM"] as const) {
      signals.defer(system.onSignal(name, () => interrupt.abort()));
    }
  }
  try {
    return await run(options, interrupt.signal);
  } catch (error) {
    if (interrupt.signal.aborted) return 0;
    const fault = explain(error);
    if (fault === null) throw error;
    system.stderr.write(`holdfast: ${fault.message}\n`);
    return fault.exitCode;
  }
}

async function run(options: StatusOptions, signal: AbortSignal): Promise<number> {
  const screen = new Screen(options.system.stdout, options);
  using source = await openSource(options, signal);
  const first = await source.read(signal);
  if (!options.watch) {
    screen.once(first);
    return exitCodeOf(first);
  }
  screen.next(first);
  await source.follow(signal, (report) => screen.next(report));
  return 0;
}

function exitCodeOf(report: StatusReport): number {
  return isComplete(report) ? 0 : FAILED;
}

/** The place that was asked for; else the API where its address is known, and the cluster elsewhere. */
async function openSource(options: StatusOptions, signal: AbortSignal): Promise<StatusSource> {
  const { system, settings, namespace, all } = options;
  const { group, ...apiSettings } = settings;
  const apiOption = Object.values(apiSettings).some((value) => value !== undefined);
  const fromApi = options.from === "api" ||
    options.from === undefined && namespace === undefined &&
      (apiOption || Boolean(system.env.HOLDFAST_URL));
  if (!fromApi) {
    if (apiOption) {
      throw new CommandFault(
        "Cannot use --url, --ca-file or --token-file to look at the cluster: leave them out, or leave --namespace and --from out",
        USAGE,
      );
    }
    const { clusterSource } = await import("./status/cluster_source.ts");
    return await clusterSource(system, { group, namespace, all }, signal);
  }
  if (namespace !== undefined) {
    throw new CommandFault(
      "Cannot use --namespace with the API, which finds the group by its name: leave it out, or look at the cluster with --from cluster",
      USAGE,
    );
  }
  if (all) {
    throw new CommandFault(
      "Cannot show what has ended as the API does not show it: leave --all out, or look at the cluster with --from cluster",
      USAGE,
    );
  }
  const { apiSource } = await import("./status/api_source.ts");
  return await apiSource(system, settings);
}
