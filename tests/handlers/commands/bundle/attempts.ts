/**
 * Loaded before the program (`--preload`). On SIGUSR1 it tries what the service must not be able to do, from within the
 * very process that serves, and prints what happened as one line of JSON on the error output.
 *
 * @module
 */

const file = new URL("written", import.meta.url);

/** The name of the error that an attempt ends with, or `done`. */
function attempt(action: () => unknown): string {
  try {
    action();
    return "done";
  } catch (error) {
    return error instanceof Error ? error.name : "thrown";
  }
}

Deno.addSignalListener("SIGUSR1", () => {
  const outcome = {
    spawn: attempt(() => new Deno.Command("true").outputSync()),
    write: attempt(() => Deno.writeTextFileSync(file, "written")),
    sys: attempt(() => Deno.hostname()),
    ffi: attempt(() => Deno.dlopen("nothing.so", {})),
    // The certificates of the demo need this API of decorators, and nothing else here does.
    demoIsLoaded: "defineMetadata" in Reflect,
  };
  Deno.stderr.writeSync(new TextEncoder().encode(`${JSON.stringify(outcome)}\n`));
});
