/**
 * Leader tasks of an application, which are given what its handlers are: kubernetes-plugin 7.
 *
 * @module
 */

import type { IsolatedLeaderTask, LeaderTask, Term } from "../election/mod.ts";
import type { KubernetesContext } from "./runtime.ts";

/** Work for the leader alone. A `LeaderTask` that looks at its term only is one too. */
export interface KubernetesTask extends Omit<LeaderTask, "run"> {
  /**
   * Does the work of one term, as `LeaderTask.run` does.
   *
   * @param context What a handler finds in `c.var.kubernetes`.
   */
  run(term: Term, context: KubernetesContext): Promise<void> | void;
}

/** What the plugin runs on the leader. A task in a worker gets what can be sent there, so no context. */
export type PluginTask = KubernetesTask | IsolatedLeaderTask;

/**
 * Gives a task its context.
 *
 * @param context Settles when the start is over: a lead may begin before that.
 */
export function withContext(
  task: PluginTask,
  context: Promise<KubernetesContext>,
): LeaderTask | IsolatedLeaderTask {
  if ("isolated" in task) return task;
  const { name, onOverrun } = task;
  return { name, onOverrun, run: async (term) => await task.run(term, await context) };
}
