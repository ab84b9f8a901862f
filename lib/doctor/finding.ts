/**
 * What a check found.
 *
 * @module
 */

/**
 * How a check ended. `warning`: it works, and something is not as it should be. `unseen`: it cannot be told from here, or
 * an earlier check has to be put right first.
 */
export type Verdict = "ok" | "warning" | "wrong" | "unseen";

/** What a check found. No text holds a token, a key or a text of another program. */
export interface Finding {
  /** The name of the check, the same in every version. */
  readonly check: string;
  readonly verdict: Verdict;
  /** What is so, in one sentence. */
  readonly says: string;
  /** What to do; empty when there is nothing to do. */
  readonly todo: string;
}

/** All is well. */
export function ok(check: string, says: string): Finding {
  return { check, verdict: "ok", says, todo: "" };
}

/** It works, and should be looked at. */
export function warning(check: string, says: string, todo: string): Finding {
  return { check, verdict: "warning", says, todo };
}

/** It does not work. */
export function wrong(check: string, says: string, todo: string): Finding {
  return { check, verdict: "wrong", says, todo };
}

/** It cannot be told from here. */
export function unseen(check: string, says: string, todo: string): Finding {
  return { check, verdict: "unseen", says, todo };
}

/** A check that an earlier one stands in the way of. */
export function waiting(check: string, what: string): Finding {
  return unseen(check, `${what} was not looked at`, "Put right first what is wrong above");
}

/** A name of a fault behind a sentence; nothing where there is none. */
export function bracketed(code: string): string {
  return code === "" ? "" : ` (${code})`;
}

/** What a run of all checks found: the output of `holdfast doctor --json`. */
export interface Diagnosis {
  /** Where it looked from. */
  readonly from: "api" | "cluster";
  /** When, RFC 3339 in UTC. */
  readonly at: string;
  /** True when nothing is wrong. Warnings and what cannot be seen do not count. */
  readonly healthy: boolean;
  readonly findings: readonly Finding[];
}

/** Puts findings together. @param nowMs The wall clock. */
export function diagnosis(
  from: Diagnosis["from"],
  nowMs: number,
  findings: readonly Finding[],
): Diagnosis {
  const at = Temporal.Instant.fromEpochMilliseconds(Math.floor(nowMs)).toString();
  return { from, at, healthy: findings.every(({ verdict }) => verdict !== "wrong"), findings };
}

/** The findings as lines: one for each check, and below it what to do. */
export function renderFindings({ findings }: Diagnosis): readonly string[] {
  const width = Math.max(...findings.map(({ check }) => check.length));
  return findings.flatMap(({ check, verdict, says, todo }) => [
    `${verdict.padEnd(7)}  ${check.padEnd(width)}  ${says}`,
    ...(todo === "" ? [] : [`${" ".repeat(9)}${" ".repeat(width)}  do: ${todo}`]),
  ]);
}
