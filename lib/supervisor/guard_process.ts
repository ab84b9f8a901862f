/**
 * The guard: a small process between a supervisor and its program. It starts the program, and kills the program's group
 * when the deadline comes and when the supervisor is gone.
 *
 * A supervisor that is killed, stopped or frozen cannot stop its program. Another one could then be granted the lease while
 * the program still writes. The guard has a session of its own, so what stops the supervisor does not stop it. It is the
 * guard that starts the program, so that there is no moment in which the program runs and the guard does not know it.
 *
 * @module
 */

import type { CancelTimer, Clock } from "../runtime/clock.ts";
import { formatLine, type GuardReport, parseOrder } from "./guard_protocol.ts";
import { type CommandLine, CommandNotFoundError, type GroupLeader } from "./process_group.ts";

/** What a guard is made of. */
export interface GuardParts {
  readonly clock: Clock;
  /** The orders, a line each, without line ends. They end with the supervisor. */
  readonly orders: AsyncIterable<string>;
  /** Tells the supervisor something. It must not throw: the supervisor may be gone. */
  readonly tell: (text: string) => void;
  /** Starts a program as the leader of a group. @throws {CommandNotFoundError} */
  readonly start: (command: CommandLine, env: Readonly<Record<string, string>>) => GroupLeader;
  /** Kills a process group, if it is still there. */
  readonly kill: (group: number) => void;
}

/**
 * Guards one program.
 *
 * @returns When the supervisor is gone, and the program with its group too.
 */
export async function guard({ clock, orders, tell, start, kill }: GuardParts): Promise<void> {
  // Set once, when the program is started; `running` until its group is gone.
  const program: { leader?: GroupLeader; running: boolean } = { running: false };
  let killAtMs = Infinity;
  let cancel: CancelTimer = () => {};
  const report = (one: GuardReport) => tell(formatLine(one));

  const killGroup = () => {
    if (program.running && program.leader !== undefined) kill(program.leader.pid);
  };
  const arm = () => {
    cancel();
    if (!program.running || killAtMs === Infinity) return;
    const left = killAtMs - clock.monotonic();
    if (left <= 0) killGroup();
    else cancel = clock.timer(left, killGroup);
  };
  const begin = (command: CommandLine, env: Readonly<Record<string, string>>) => {
    let leader: GroupLeader;
    try {
      leader = start(command, env);
    } catch (error) {
      if (!(error instanceof CommandNotFoundError)) throw error;
      return report({ type: "not-found" });
    }
    const ended = leader.ended.then((code) => {
      // What the program left running in its group must not outlive the lease.
      kill(leader.pid);
      program.running = false;
      cancel();
      report({ type: "ended", code });
      return code;
    });
    program.leader = { pid: leader.pid, ended };
    program.running = true;
    report({ type: "started", pid: leader.pid });
    arm();
  };

  report({ type: "ready", nowMs: clock.monotonic() });
  try {
    for await (const line of orders) {
      const order = parseOrder(line);
      // A line that makes no sense is of no supervisor of ours.
      if (order === null) break;
      if (order.type === "kill-at") {
        killAtMs = order.atMs;
        arm();
      } else if (program.leader === undefined) begin(order, order.env);
    }
  } catch {
    // The connection broke: the supervisor is gone all the same.
  } finally {
    killGroup();
    await program.leader?.ended;
    cancel();
  }
}
