/**
 * `holdfast doctor`: what is wrong with a deployment's way to the service, or with the service in its cluster.
 *
 * @module
 */

import { parse } from "yaml";
import { DEFAULT_TOKEN_FILE } from "../../lib/client/settings.ts";
import { lookAsCaller } from "../../lib/doctor/caller_probe.ts";
import { callerFindings } from "../../lib/doctor/caller_rules.ts";
import { lookAtCluster } from "../../lib/doctor/cluster_look.ts";
import { clusterFindings } from "../../lib/doctor/cluster_rules.ts";
import { diagnosis, type Finding, renderFindings, wrong } from "../../lib/doctor/finding.ts";
import { placeOf } from "../../lib/doctor/place.ts";
import { ClusterConfigError, NoClusterError } from "../../lib/kube/mod.ts";
import { timeForView } from "../../lib/lease_time/lease_time.ts";
import { readServiceValues, ValuesError } from "../../lib/manifests/service/read_values.ts";
import type { ServiceValues } from "../../lib/manifests/service/values.ts";
import { openCluster, readTextFile } from "./administrator.ts";
import type { DoctorOptions } from "./doctor/arguments.ts";
import { CommandFault, FAILED, USAGE } from "./faults.ts";

/**
 * Looks, and tells what it found.
 *
 * @returns The exit code: 0 nothing is wrong; 1 something is; 2 options or values that cannot be used.
 */
export async function doctor(options: DoctorOptions): Promise<number> {
  const { system, json } = options;
  const interrupt = new AbortController();
  using signals = new DisposableStack();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    signals.defer(system.onSignal(name, () => interrupt.abort()));
  }
  try {
    const from = sourceOf(options);
    const values = await readValues(options);
    const findings = from === "api"
      ? await examineCaller(options, values, interrupt.signal)
      : await examineCluster(options, values, interrupt.signal);
    const found = diagnosis(from, system.clock.wall(), findings);
    const lines = json ? [JSON.stringify(found, null, 2)] : renderFindings(found);
    system.stdout.write(`${lines.join("\n")}\n`);
    return found.healthy ? 0 : FAILED;
  } catch (error) {
    if (interrupt.signal.aborted) return FAILED;
    if (!(error instanceof CommandFault)) throw error;
    for (const line of error.message.split("\n")) system.stderr.write(`holdfast: ${line}\n`);
    return error.exitCode;
  }
}

/** The place that was asked for; else the API where its address is known, and the cluster elsewhere. */
function sourceOf(options: DoctorOptions): "api" | "cluster" {
  const { from, system, url, caFile, tokenFile, instance, namespace } = options;
  const callerOption = [url, caFile, tokenFile, instance].some((value) => value !== undefined);
  const known = from ?? (callerOption || system.env.HOLDFAST_URL ? "api" : "cluster");
  if (known === "cluster" && callerOption) {
    throw new CommandFault(
      "Cannot use --url, --ca-file, --token-file or --instance to look at the cluster: leave them out, or leave --from out",
      USAGE,
    );
  }
  if (known === "api" && namespace !== undefined) {
    throw new CommandFault(
      "Cannot use --namespace with the API, whose address has it: leave it out, or look at the cluster with --from cluster",
      USAGE,
    );
  }
  return known;
}

async function readValues({ valuesFiles, system }: DoctorOptions): Promise<ServiceValues> {
  const layers: unknown[] = [];
  for (const path of valuesFiles) {
    try {
      layers.push(parse(await readTextFile(system, path)));
    } catch (cause) {
      throw new CommandFault(
        `Cannot read the values in '${path}': the file must be there and hold YAML`,
        USAGE,
        { cause },
      );
    }
  }
  try {
    return readServiceValues(layers);
  } catch (error) {
    if (!(error instanceof ValuesError)) throw error;
    throw new CommandFault(error.message, USAGE, { cause: error });
  }
}

async function examineCaller(
  options: DoctorOptions,
  values: ServiceValues,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { system, url, caFile, tokenFile, group, instance, audience } = options;
  const { clock, env } = system;
  const settings = {
    url: url ?? env.HOLDFAST_URL ?? "",
    caFile: caFile ?? env.HOLDFAST_CA_FILE ?? "",
    tokenFile: tokenFile ?? (env.HOLDFAST_TOKEN_FILE || DEFAULT_TOKEN_FILE),
    group: group ?? env.HOLDFAST_GROUP ?? "",
    instance: instance ?? env.HOLDFAST_INSTANCE ?? "",
    audience: audience ?? values.auxiliary.deployAPI.audience,
  };
  const facts = await lookAsCaller(settings, {
    clock,
    readTextFile: (path) => readTextFile(system, path),
    signal,
  });
  return callerFindings(facts);
}

async function examineCluster(
  { system, group, namespace }: DoctorOptions,
  values: ServiceValues,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  try {
    using cluster = await openCluster(system, signal);
    const place = placeOf(namespace === undefined ? values : { ...values, namespace });
    const now = () => timeForView(system.clock, cluster.leaseTime);
    const facts = await lookAtCluster({ api: cluster.api, place, group, now, signal });
    return clusterFindings(facts);
  } catch (error) {
    if (!(error instanceof NoClusterError || error instanceof ClusterConfigError)) throw error;
    return [wrong(
      "cluster",
      error.message,
      "Set KUBECONFIG, or give --url and the other settings of a deployment to look through the API",
    )];
  }
}
