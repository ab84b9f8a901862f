/**
 * What a supervisor and its guard say to each other: one JSON object a line.
 *
 * @module
 */

import { z } from "zod";

const orderSchema = z.discriminatedUnion("type", [
  /** Kill at this instant of the guard's own clock, in milliseconds. The newest one counts. */
  z.strictObject({ type: z.literal("kill-at"), atMs: z.number() }),
  /** Start the program. It comes once. */
  z.strictObject({
    type: z.literal("start"),
    path: z.string(),
    args: z.array(z.string()),
    env: z.record(z.string(), z.string()),
  }),
]);

/** What a guard is told. The end of the connection means that the supervisor is gone. */
export type GuardOrder = z.infer<typeof orderSchema>;

const reportSchema = z.discriminatedUnion("type", [
  /** The guard is there. What its clock shows, in milliseconds. */
  z.strictObject({ type: z.literal("ready"), nowMs: z.number() }),
  /** The program runs. Its process id, which is the group's too: above 1, since 1 means every process. */
  z.strictObject({ type: z.literal("started"), pid: z.number().int().min(2) }),
  /** There is no such program. */
  z.strictObject({ type: z.literal("not-found") }),
  /** The program ended, and its group is gone. */
  z.strictObject({ type: z.literal("ended"), code: z.number().int() }),
]);

/** What a guard tells. */
export type GuardReport = z.infer<typeof reportSchema>;

/** Writes an order or a report. */
export function formatLine(message: GuardOrder | GuardReport): string {
  return `${JSON.stringify(message)}\n`;
}

/** Reads an order; `null` for a line that is none. */
export function parseOrder(line: string): GuardOrder | null {
  return parse(orderSchema, line);
}

/** Reads a report; `null` for a line that is none. */
export function parseReport(line: string): GuardReport | null {
  return parse(reportSchema, line);
}

function parse<T>(schema: z.ZodType<T>, line: string): T | null {
  try {
    return schema.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}
