/**
 * The program `holdfast`: keeps the cluster's address from the proxy, gives back the permissions that the command does not
 * need, and hands over.
 *
 * @module
 */
import { giveBackPermissions, noProxyFor } from "./handlers/commands/bootstrap.ts";
import { productionSystem } from "./handlers/commands/system.ts";

const noProxy = noProxyFor(Deno.args[0], Deno.env.toObject());
if (noProxy !== undefined) Deno.env.set("NO_PROXY", noProxy);
const system = productionSystem();

giveBackPermissions({
  command: Deno.args[0],
  env: system.env,
  permissions: {
    has: (kind) => Deno.permissions.querySync({ name: kind }).state === "granted",
    giveBack: (kind) => void Deno.permissions.revokeSync({ name: kind }),
  },
  readTextFile: system.readTextFile,
  warn: (message) => system.stderr.write(`holdfast: warning: ${message}\n`),
});

const { runCommandLine } = await import("./handlers/commands/cli.ts");

system.exit(
  await runCommandLine(Deno.args, system, {
    serve: async (options) => (await import("./handlers/commands/serve.ts")).serve(options),
    demo: async (options) => (await import("./handlers/commands/demo.ts")).demo(options),
    run: async (options) => (await import("./handlers/commands/run.ts")).run(options),
    runGuard: async (options) =>
      (await import("./handlers/commands/run/guard.ts")).runGuard(options),
    status: async (options) => (await import("./handlers/commands/status.ts")).status(options),
    revoke: async (options) => (await import("./handlers/commands/revoke.ts")).revoke(options),
    doctor: async (options) => (await import("./handlers/commands/doctor.ts")).doctor(options),
    manifestsApp: async (options) =>
      (await import("./handlers/commands/manifests/app.ts")).manifestsApp(options),
    manifestsService: async (options) =>
      (await import("./handlers/commands/manifests/service.ts")).manifestsService(options),
  }),
);
