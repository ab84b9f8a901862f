/**
 * The guard: a small process beside a supervisor. It kills the child's group when the deadline comes, and when the
 * supervisor is gone.
 *
 * A supervisor that is killed, stopped or frozen cannot stop its child. Another one could then be granted the lease while
 * the child still writes. The guard has a session of its own, so what stops the supervisor does not stop it.
 *
 * @module
 */

import type { CancelTimer, Clock } from "../runtime/clock.ts";
import { formatReady, parseOrder } from "./guard_protocol.ts";

/** What a guard is made of. */
export interface GuardParts {
  readonly clock: Clock;
  /** The orders, a line each, without line ends. They end with the supervisor. */
  readonly orders: AsyncIterable<string>;
  /** Tells the supervisor something. */
  readonly tell: (text: string) => void;
  /** Kills a process group, if it is still there. */
  readonly kill: (group: number) => void;
}

/**
 * Guards one child.
 *
 * @returns When the supervisor is gone, or says that the child is. The group was killed unless it said so.
 */
export async function guard({ clock, orders, tell, kill }: GuardParts): Promise<void> {
  let group: number | null = null;
  let killAtMs: number | null = null;
  let cancel: CancelTimer = () => {};

  const killNow = () => {
    if (group !== null) kill(group);
  };
  const arm = () => {
    cancel();
    if (group === null || killAtMs === null) return;
    const left = killAtMs - clock.monotonic();
    if (left <= 0) killNow();
    else cancel = clock.timer(left, killNow);
  };

  tell(formatReady(clock.monotonic()));
  try {
    for await (const line of orders) {
      const order = parseOrder(line);
      // A line that is cut off or makes no sense: the supervisor died in its middle, or is none of ours.
      if (order === null) break;
      if (order.type === "done") {
        group = null;
        break;
      }
      if (order.type === "watch") group = order.group;
      else killAtMs = order.atMs;
      arm();
    }
  } finally {
    cancel();
    killNow();
  }
}
