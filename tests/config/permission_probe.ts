/**
 * Tries what a command must not be able to do, and prints what happened as one JSON object. It runs in a process of its
 * own: with the flags of a task, or with all permissions after the program gave back what it does not need.
 *
 * @module
 */
import { giveBackPermissions } from "../../handlers/commands/bootstrap.ts";

const [command = "", file = ""] = Deno.args;

if (command !== "as-started") {
  giveBackPermissions({
    command,
    env: Deno.env.toObject(),
    permissions: {
      has: (kind) => Deno.permissions.querySync({ name: kind }).state === "granted",
      giveBack: (kind) => void Deno.permissions.revokeSync({ name: kind }),
    },
    readTextFile: (path) => Deno.readTextFileSync(path),
    warn: (message) => void Deno.stderr.writeSync(new TextEncoder().encode(message)),
  });
}

/** The name of the error that an attempt ends with, or `done`. */
async function attempt(action: () => unknown): Promise<string> {
  try {
    await action();
    return "done";
  } catch (error) {
    return error instanceof Error ? error.name : "thrown";
  }
}

const spawn = () =>
  new Deno.Command(Deno.execPath(), { args: ["--version"], stdout: "null" }).output();
const listen = () => Deno.listen({ hostname: "127.0.0.1", port: 0 }).close();

const result = {
  spawn: await attempt(spawn),
  write: await attempt(() => Deno.writeTextFile(file, "written")),
  sys: await attempt(() => Deno.hostname()),
  ffi: await attempt(() => Deno.dlopen(file, {})),
  listen: await attempt(listen),
  read: await attempt(() => Deno.readTextFile(new URL(import.meta.url))),
  environment: Deno.env.toObject(),
  unlisted: Deno.env.get("SECRET_OF_ANOTHER") ?? "not seen",
};
await Deno.stdout.write(new TextEncoder().encode(JSON.stringify(result)));
