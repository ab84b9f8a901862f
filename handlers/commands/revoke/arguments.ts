/**
 * The command line of `holdfast revoke`.
 *
 * @module
 */

import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../../../lib/config/duration.ts";
import type { RevokeOptions } from "../options.ts";
import type { System } from "../system.ts";

const HELP = `
It works on the cluster, by the kubeconfig of KUBECONFIG or ~/.kube/config. It shows what will be
revoked and who is hit, and asks; in a pipe it needs --yes. Of a group, all leases are revoked by the
service or the operator, and this waits for them. Of one operation, its records are written directly.
A revoked operation is refused for the life of the group. Who asked, and why, is in an Event of it.

Examples:
  holdfast revoke --group orders
  holdfast revoke --group orders --namespace database --reason "stuck since noon" --yes
  holdfast revoke --group orders --operation release-42 --yes

Exit codes: 0 done, or nothing to do; 1 refused, not agreed to, or not done; 2 wrong usage; 3 asked for
and not done in time; 111 the cluster cannot be reached; 112 it does not allow it`;

/** The longest text of a reason: an Event's note has 1,024 bytes, and says more than that. */
const MOST_REASON = 500;

/** The longest operation id, in bytes: deploy-api 2.2. */
const MOST_OPERATION_BYTES = 128;

/** The longest wait: one hour, in milliseconds. */
const MOST_WAIT_MS = 3_600_000;

/** The options as commander gives them. */
interface RevokeFlags {
  readonly group: string;
  readonly namespace?: string;
  readonly operation?: string;
  readonly reason?: string;
  readonly yes: boolean;
  readonly timeout: number;
}

function parseTimeout(text: string): number {
  const milliseconds = parseDuration(text);
  if (milliseconds !== undefined && milliseconds >= 1_000 && milliseconds <= MOST_WAIT_MS) {
    return milliseconds;
  }
  throw new InvalidArgumentError("It must be a duration from 1s to 1h, for example 30s.");
}

function parseReason(text: string): string {
  const reason = text.trim();
  if (reason !== "" && reason.length <= MOST_REASON && !/\p{Cc}/u.test(reason)) return reason;
  throw new InvalidArgumentError(`It must be one line of 1 to ${MOST_REASON} characters.`);
}

function parseOperation(text: string): string {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > 0 && bytes <= MOST_OPERATION_BYTES) return text;
  throw new InvalidArgumentError(`It must have 1 to ${MOST_OPERATION_BYTES} bytes.`);
}

/** Adds the command. @param run Does it. */
export function addRevokeCommand(
  program: Command,
  system: System,
  run: (options: RevokeOptions) => Promise<void>,
): void {
  program.command("revoke")
    .description("Take the leases of a group, or of one operation, from their holders.")
    .requiredOption("--group <name>", "the group")
    .option("--namespace <name>", "its namespace; else that of the kubeconfig's context")
    .addOption(
      new Option("--operation <id>", "only the leases of this operation").argParser(parseOperation),
    )
    .addOption(new Option("--reason <text>", "why, for the Event").argParser(parseReason))
    .option("--yes", "do not ask", false)
    .addOption(
      new Option("--timeout <duration>", "how long to wait until the group's leases are revoked")
        .argParser(parseTimeout).default(30_000, "30s"),
    )
    .addHelpText("after", HELP)
    .action(async (flags: RevokeFlags) => {
      const { group, namespace, operation, reason, yes, timeout: timeoutMs } = flags;
      await run({ group, namespace, operation, reason, yes, timeoutMs, system });
    });
}
