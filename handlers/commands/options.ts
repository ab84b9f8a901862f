/**
 * What the command line hands to the commands.
 *
 * @module
 */
import type { ClientSettings } from "../../lib/client/settings.ts";
import type { Config } from "../../lib/config/schema.ts";
import type { System } from "./system.ts";

/**
 * A command refuses to start, for a reason that its user can put right. The command line shows the message and ends with
 * exit code 1.
 */
export class RefusalError extends Error {
  override readonly name = "RefusalError";
}

/** What `holdfast serve` is given. */
export interface ServeOptions {
  /** The effective configuration, already checked. */
  readonly config: Config;
  /** Where each value came from, by dotted key: for the line that the log begins with. */
  readonly sources: ReadonlyMap<string, string>;
  /** The machine. */
  readonly system: System;
  /** Writes one log line; the line brings its own end of line. */
  readonly writeLog: (line: string) => void;
}

/** What `holdfast demo` is given. */
export interface DemoOptions {
  /** The file that gets the demo's addresses and paths in dotenv form once all is ready. @default {undefined} */
  readonly envFile: string | undefined;
  /** End after the story. @default {false} */
  readonly once: boolean;
  /** The first of the ports to listen on, 0 to 65535; 0 takes any free ones. @default {undefined} */
  readonly port: number | undefined;
  /** Milliseconds to wait after each step, so that the status page can be followed. 0 or more. */
  readonly paceMs: number;
  /** The machine. */
  readonly system: System;
}

/** What `holdfast status` is given. */
export interface StatusOptions {
  /** Where to look. @default {the API where its URL is known, the cluster elsewhere} */
  readonly from: "api" | "cluster" | undefined;
  /** Where the API is, and which group is meant; the environment completes it. */
  readonly settings: Omit<ClientSettings, "instance">;
  /** The namespace to look at in the cluster. @default {all namespaces} */
  readonly namespace: string | undefined;
  /** What has ended too. */
  readonly all: boolean;
  /** Show every change until a signal comes. */
  readonly watch: boolean;
  /** Print JSON. */
  readonly json: boolean;
  /** The machine. */
  readonly system: System;
}

/** What `holdfast revoke` is given. */
export interface RevokeOptions {
  readonly group: string;
  /** @default {the namespace of the kubeconfig's context} */
  readonly namespace: string | undefined;
  /** Only what this operation has. @default {all operations} */
  readonly operation: string | undefined;
  /** Why, for the Event on the group. */
  readonly reason: string | undefined;
  /** Do not ask. */
  readonly yes: boolean;
  /** How long to wait until it is done, in milliseconds. */
  readonly timeoutMs: number;
  /** The machine. */
  readonly system: System;
}
