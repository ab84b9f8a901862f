/**
 * What the two sides of an isolated task tell each other, and the memory that they share: design 4.
 *
 * Messages alone would not do. A worker that computes reads no message, and a program that is starved sends none. So what
 * the elector knows of belief stands in shared memory, and the worker holds it against a clock of its own.
 *
 * @module
 */

import { z } from "zod";
import type { LossReason } from "./loss.ts";

/** The prefix of the name of each worker that runs an isolated task. */
const NAME_PREFIX = "holdfast-isolated-task:";

/** The name of the worker that runs a task: by it the program's own file knows what it was started for. */
export function isolatedWorkerName(taskName: string): string {
  return NAME_PREFIX + taskName;
}

/** The task that a worker of this name was started for; `null` when it was started for something else. */
export function taskNameOf(workerName: string): string | null {
  return workerName.startsWith(NAME_PREFIX) ? workerName.slice(NAME_PREFIX.length) : null;
}

const lossReason = z.enum(
  {
    clock_jump: "clock_jump",
    conflict: "conflict",
    deleted: "deleted",
    forbidden: "forbidden",
    other_holder: "other_holder",
    renew_deadline: "renew_deadline",
    resigned: "resigned",
    stopped: "stopped",
  } satisfies { [Reason in LossReason]: Reason },
);

/** What the program tells the worker. */
const orderSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("begin"),
    token: z.string(),
    leaseName: z.string(),
    /** What the program's monotonic clock said after the worker was ready, rounded up. */
    nowMs: z.number(),
    /** Wall time minus monotonic time in the program, at that moment. */
    wallOffsetMs: z.number(),
    belief: z.instanceof(SharedArrayBuffer),
    input: z.unknown(),
  }),
  z.object({ type: z.literal("end"), reason: lossReason }),
  z.object({ type: z.literal("ping") }),
]);

/** What the worker tells the program. */
const reportSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("ready") }),
  z.object({ type: z.literal("done") }),
  z.object({ type: z.literal("failed"), error: z.unknown() }),
  z.object({ type: z.literal("resign") }),
  z.object({ type: z.literal("pong") }),
]);

/** What the program tells the worker. */
export type Order = z.output<typeof orderSchema>;

/** What the worker tells the program. */
export type Report = z.output<typeof reportSchema>;

const orderEvent = z.object({ data: orderSchema });
const reportEvent = z.object({ data: reportSchema });

/** The order in an event; `null` when the event carries none, since anybody may post to a worker. */
export function orderIn(event: unknown): Order | null {
  return orderEvent.safeParse(event).data?.data ?? null;
}

/** The report in an event; `null` when the event carries none: the task may post messages of its own. */
export function reportIn(event: unknown): Report | null {
  return reportEvent.safeParse(event).data?.data ?? null;
}

const OVER = -1n;
const ENDLESS = -2n;
const VALID_UNTIL = 0;
const WALL_OFFSET = 1;

/** What belief rests on, as the program's clocks count it. */
export interface BeliefView {
  /** The monotonic instant of the program at which belief ends; `null` when it has no end. */
  readonly validUntil: number | null;
  /** True when belief is over whatever the time is. */
  readonly over: boolean;
  /** Wall time minus monotonic time in the program, when it last looked. */
  readonly wallOffsetMs: number;
}

/** Belief in shared memory: the program writes it, the worker reads it at any moment, also while it computes. */
export class SharedBelief {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  /** @param buffer Memory from {@linkcode SharedBelief.buffer} of the other side; new memory without it. */
  constructor(buffer = new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#cells = new BigInt64Array(buffer);
  }

  /** Writes what the program believes. The offset comes first: a reader that sees a new end sees no older offset. */
  write({ validUntil, over, wallOffsetMs }: BeliefView): void {
    Atomics.store(this.#cells, WALL_OFFSET, BigInt(Math.round(wallOffsetMs)));
    const end = validUntil === null ? ENDLESS : BigInt(Math.max(0, Math.floor(validUntil)));
    Atomics.store(this.#cells, VALID_UNTIL, over ? OVER : end);
  }

  /** Reads what the program wrote last. */
  read(): BeliefView {
    const end = Atomics.load(this.#cells, VALID_UNTIL);
    return {
      validUntil: end === ENDLESS ? null : Number(end),
      over: end === OVER,
      wallOffsetMs: Number(Atomics.load(this.#cells, WALL_OFFSET)),
    };
  }
}
