/**
 * Leader election on a Kubernetes Lease: at most one replica believes that it leads.
 *
 * ## What is guaranteed
 *
 * A replica believes in its lead only until *sent + renew deadline*, where *sent* is the moment before it sent its last
 * acknowledged write. Another replica takes the Lease only when it has seen no change for the whole *lease duration*.
 * The write was sent before it was stored, and stored before anybody saw it; the renew deadline is shorter than the lease
 * duration; so belief is over before the Lease can be taken. Every write carries the version that it follows from, so
 * of several writers one wins, and the others know.
 *
 * Each replica counts on its own monotonic clock, and looks at no time that another machine wrote. The clocks need not
 * agree on the time: only on the length of a second, better than renew deadline to lease duration (10 s to 15 s allows
 * one to run a third slower).
 *
 * ## What is not guaranteed
 *
 * - **A machine that stands still.** While it is suspended its monotonic clock may stand still too. When it goes on, the
 *   wall clock has jumped, and belief ends at the first look; but only as soon as somebody has set the wall clock.
 * - **Work that is under way.** A check before a step does not hold for the whole step: the process can be stopped
 *   between the two for any time. What must not be done twice is to carry the term's `token`, and whoever receives it
 *   is to refuse a token lower than one that it has seen.
 * - **A Lease that is deleted by hand.** A replica that had seen the holder waits out its time; one that had seen
 *   none cannot know of it and takes the new Lease at once. The old holder stops as soon as it learns of the deletion:
 *   through its watch at once, without one at its next renewal.
 * - **A Lease that is written by hand.** Whoever empties the holder gives the Lease away at once.
 * - **Somebody leading at any time.** Between two leaders there may be none.
 *
 * ## Parts
 *
 * `Elector` campaigns; its `terms()` are what to build on, and its `leadership` is the handle for the rest of a program.
 * `runLeaderTasks` runs work on the leader alone; a task that computes for long belongs in a worker (`isolated`), which
 * `hostIsolatedTasks` serves. `staticLeadership` stands for an elector where there is no cluster.
 * The rules are in `policy.ts`, and proven.
 *
 * @module
 */

export { Elector } from "./elector.ts";
export type { IsolatedLeaderTask, IsolatedWorker } from "./isolated_task.ts";
export {
  hostIsolatedTasks,
  type IsolatedTaskRun,
  type IsolatedTasksHost,
} from "./isolated_worker.ts";
export {
  type LeaderTask,
  LeaderTaskError,
  type LeaderTasksOptions,
  runLeaderTasks,
} from "./leader_tasks.ts";
export {
  type Candidate,
  type Leadership,
  type LeaderState,
  staticLeadership,
  type StaticLeadershipOptions,
} from "./leadership.ts";
export { LeadershipLostError, type LossReason } from "./loss.ts";
export {
  fromNodeThread,
  type NodeThread,
  type NodeThreadPort,
  nodeThreadScope,
} from "./node_thread.ts";
export {
  checkNames,
  checkTiming,
  DEFAULT_TIMING,
  type ElectionTiming,
  type ElectorOptions,
} from "./options.ts";
export type { Term } from "./term.ts";
export type { Span, SpanValue, SpanValues, Tracer } from "../tracing/tracer.ts";
