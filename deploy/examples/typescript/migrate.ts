/**
 * Applies the SQL files of a folder under a migration lease and a hold, with the client in the program itself:
 *
 *     deno run --allow-env --allow-net --allow-read --allow-run=mysql migrate.ts FOLDER
 *
 * The exit codes are those of `holdfast run`.
 */

import {
  AuthorityLostError,
  ClientSettingsError,
  CredentialError,
  fromEnvironment,
  HeldError,
  NotAuthorizedError,
  OperationRevokedError,
  UnknownGroupError,
  UnreachableError,
  UnstableError,
} from "@holdfast/holdfast/client";

/** What an error stands for; any other one is 1. */
const EXIT_CODES = [
  [ClientSettingsError, 2],
  [UnreachableError, 111],
  [NotAuthorizedError, 112],
  [CredentialError, 112],
  [UnknownGroupError, 112],
  [HeldError, 113],
  [UnstableError, 114],
  [OperationRevokedError, 115],
] as const;

function say(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${text}\n`));
}

/** Applies one file. It ends early when the signal aborts. */
async function apply(file: string, signal: AbortSignal): Promise<void> {
  const mysql = new Deno.Command("mysql", { args: ["--execute", `source ${file}`], signal })
    .spawn();
  const { code } = await mysql.status;
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`Cannot apply ${file} as mysql ended with ${code}`);
}

async function migrate(folder: string, interrupt: AbortSignal): Promise<void> {
  const files = [...Deno.readDirSync(folder)].map(({ name }) => name)
    .filter((name) => name.endsWith(".sql")).sort();
  const client = await fromEnvironment();
  await client.deploy({
    operationId: crypto.randomUUID(),
    waitSeconds: 600,
    maxLagSeconds: 5,
    signal: interrupt,
    onWaiting: ({ message }) => say(`Waiting: ${message}`),
    onLost: ({ phase, remainingMs }) =>
      say(`Authority is lost ${phase}, ${remainingMs} ms are left`),
  }, async (authority) => {
    say(`Holds the leases: active site ${authority.activeSite}, fence ${authority.fence}`);
    const signal = AbortSignal.any([authority.signal, interrupt]);
    for (const file of files) {
      signal.throwIfAborted();
      // From here on a failure keeps the lease until it expires, so that nobody builds on a half-changed schema.
      authority.enteringDdl();
      await apply(`${folder}/${file}`, signal);
      say(`Applied ${file}`);
    }
  });
}

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(name, () => stop.abort(new Error(`Stopped by ${name}`)));
}
try {
  await migrate(Deno.args[0] ?? ".", stop.signal);
  Deno.exit(0);
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  if (error instanceof AuthorityLostError) Deno.exit(error.phase === "after-ddl" ? 116 : 115);
  Deno.exit(EXIT_CODES.find(([type]) => error instanceof type)?.[1] ?? 1);
}
