/**
 * `holdfast demo`: a cluster in memory, the shipped service on it, and a story that shows what the service is for.
 *
 * @module
 */

import { sleep } from "../../lib/runtime/clock.ts";
import { ACTIVE_SITE, BILLING_APP, GROUP, ORDERS_APP, STANDBY_SITE } from "./demo/cast.ts";
import { EnvFile } from "./demo/env_file.ts";
import {
  CURL_TITLE,
  curlLines,
  KUBECTL_TITLE,
  kubectlLines,
  PLANNED_TITLE,
  plannedLines,
} from "./demo/hints.ts";
import { Narrator } from "./demo/narrator.ts";
import { choosePorts } from "./demo/ports.ts";
import { buildStage, type Stage, variablesOf } from "./demo/stage.ts";
import { playStory, StoryError } from "./demo/story.ts";
import type { DemoOptions } from "./options.ts";

/** How many lines of the service's log are shown when the story went wrong. */
const SHOWN_LOG_LINES = 20;

/** The user asked the demo to end. */
class InterruptedError extends Error {
  override readonly name = "InterruptedError";
}

/**
 * Plays the story, and stays up after it until a signal asks the demo to end.
 *
 * @returns The exit code: 0 when the story went well and the demo ended in order; 1 when a step went wrong, when the story
 * was interrupted and `once` was asked for, or when the end was not in order.
 * @throws {RefusalError} The demo cannot start, for a reason that its user can put right. Nothing is left behind.
 */
export async function demo(options: DemoOptions): Promise<number> {
  const interrupt = new AbortController();
  using signals = new DisposableStack();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    signals.defer(options.system.onSignal(signal, () => interrupt.abort(new InterruptedError())));
  }
  try {
    return await run(options, interrupt.signal);
  } catch (error) {
    // What is cut off on its way up fails in its own words: they are no news to who asked for the end.
    if (!interrupt.signal.aborted) throw error;
    return options.once ? 1 : 0;
  }
}

async function run(options: DemoOptions, signal: AbortSignal): Promise<number> {
  const { system, once } = options;
  const startedMs = system.clock.monotonic();
  const narrator = new Narrator(system.stdout);
  const ports = choosePorts(options.port);
  const envFile = options.envFile === undefined
    ? undefined
    : await EnvFile.prepare(options.envFile, system.entropy);
  narrator.paragraph(
    "Holdfast keeps a deployment and a planned database failover from running into each other. This " +
      "is the story of two deployments that want to migrate at the same time, and of a planned failover " +
      "that waits for one of them. It runs on this machine alone, and needs no cluster.",
  );
  await using stage = await buildStage({ system, ports, signal });
  introduce(narrator, stage);
  try {
    await playStory({
      orders: stage.orders,
      billing: stage.billing,
      team: stage.team,
      begin: (title) => narrator.part(title),
      tell: async (step) => {
        narrator.step(step);
        if (options.paceMs > 0) await sleep(system.clock, options.paceMs, signal);
      },
    });
  } catch (error) {
    if (!(error instanceof StoryError)) throw error;
    const lines = await stage.folder.lastLogLines(SHOWN_LOG_LINES);
    system.stderr.write(`holdfast: ${error.message}\nThe end of the service's log:\n`);
    system.stderr.write(`${lines.join("\n")}\n`);
    return 1;
  }
  const seconds = ((system.clock.monotonic() - startedMs) / 1000).toFixed(1);
  narrator.line();
  narrator.line(`The story is over. Each step was checked; all took ${seconds} s from the start.`);
  await envFile?.write(variablesOf(stage));
  const { host } = stage.service;
  if (once) return await host.stop("the story is over");
  invite(narrator, stage);
  return await host.done;
}

function introduce(narrator: Narrator, { cluster, service, folder }: Stage): void {
  narrator.line();
  narrator.fact("API server", `${cluster.url}, in memory, with HTTPS and RBAC`);
  narrator.fact("Service", `${service.url}, the shipped one, elected as leader`);
  narrator.fact("Status page", `${service.statusUrl} shows the story as it happens`);
  narrator.fact("Its log", folder.logPath);
  narrator.fact(
    "Group",
    `${GROUP.name}, namespace ${GROUP.namespace}, sites ${ACTIVE_SITE} (active) and ${STANDBY_SITE}`,
  );
  for (const { database, account } of [ORDERS_APP, BILLING_APP]) {
    narrator.fact("Database", `${database}: ${account.namespace}/${account.name} may deploy to it`);
  }
}

function invite(narrator: Narrator, { service, folder }: Stage): void {
  const hints = {
    folder: folder.path,
    groupUrl: service.groupUrl,
    metricsUrl: service.metricsUrl,
  };
  narrator.line();
  narrator.line("Now try it yourself. The demo stays up until you press Ctrl+C.");
  for (
    const [title, lines] of [
      [CURL_TITLE, curlLines(hints)],
      [KUBECTL_TITLE, kubectlLines(hints)],
      [PLANNED_TITLE, plannedLines()],
    ] as const
  ) {
    narrator.line();
    narrator.line(title);
    narrator.line();
    narrator.lines(lines);
  }
}
