/**
 * Applies the SQL files of a folder under a migration lease and a hold, with the client in the program itself:
 *
 *     node migrate.js FOLDER
 *
 * The exit codes are those of `holdfast run`.
 */

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
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
];

const say = (text) => process.stderr.write(`${text}\n`);

/** Applies one file. It ends early when the signal aborts. */
async function apply(file, signal) {
  const mysql = spawn("mysql", ["--execute", `source ${file}`], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  const kill = () => mysql.kill("SIGTERM");
  signal.addEventListener("abort", kill);
  try {
    const [code] = await once(mysql, "exit");
    signal.throwIfAborted();
    if (code !== 0) throw new Error(`Cannot apply ${file} as mysql ended with ${code}`);
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

async function migrate(folder, interrupt) {
  const files = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort();
  const client = await fromEnvironment();
  await client.deploy({
    operationId: randomUUID(),
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
for (const name of ["SIGINT", "SIGTERM"]) {
  process.on(name, () => stop.abort(new Error(`Stopped by ${name}`)));
}
try {
  await migrate(process.argv[2] ?? ".", stop.signal);
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = error instanceof AuthorityLostError
    ? error.phase === "after-ddl" ? 116 : 115
    : EXIT_CODES.find(([type]) => error instanceof type)?.[1] ?? 1;
}
