/**
 * When a command of `holdfast run` was alive, as its processes wrote it down themselves: a process that was killed cannot
 * say when, so each says all the time that it lives.
 *
 * @module
 */

/** How often a process says that it lives, in milliseconds. */
export const BEAT_MS = 20;

/**
 * What the command does: it writes a line with its name and the time each 20 ms, and so do a child and a grandchild of it.
 * It waits on a pipe that nobody writes to, so that it starts no process to pass the time.
 */
const SCRIPT = `
exec 3<> <(:) 4>> "$BEATS_FILE"
[ -z "$BEATS_DDL" ] || echo ddl > "$HOLDFAST_PHASE_FILE"
[ -z "$BEATS_DEAF" ] || trap '' TERM
beat() { while :; do echo "$1 $EPOCHREALTIME" >&4; read -rt 0.0${BEAT_MS} -u 3; done; }
( ( beat grandchild ) & beat child ) &
echo "pid $$"
beat command
`;

/** What differs between two commands. */
export interface BeatsOptions {
  /** Passes SIGTERM by. @default {false} */
  readonly deaf?: boolean;
  /** Says at its start that DDL begins. @default {false} */
  readonly ddl?: boolean;
}

/** One command, and what it wrote. */
export class Beats {
  readonly #file: string;
  readonly #options: BeatsOptions;

  /** @param file Where its processes write. */
  constructor(file: string, options: BeatsOptions = {}) {
    this.#file = file;
    this.#options = options;
  }

  /** What `holdfast run` is to run. It says `pid N` on its output. */
  readonly command: readonly string[] = ["--", "bash", "-c", SCRIPT];

  /** The variables that the command needs. */
  get env(): Readonly<Record<string, string>> {
    const { deaf = false, ddl = false } = this.#options;
    return {
      BEATS_FILE: this.#file,
      BEATS_DEAF: deaf ? "yes" : "",
      BEATS_DDL: ddl ? "yes" : "",
      LC_ALL: "C",
    };
  }

  /** The last moment at which each process lived, in milliseconds since 1970. */
  async last(): Promise<ReadonlyMap<string, number>> {
    const last = new Map<string, number>();
    // A process that is killed may leave half a line.
    for (const line of (await Deno.readTextFile(this.#file)).split("\n").slice(0, -1)) {
      const [, name, seconds] = /^(\w+) (\d+\.\d+)$/.exec(line) ?? [];
      if (name !== undefined) last.set(name, Number(seconds) * 1_000);
    }
    return last;
  }

  /** Waits until all of its three processes have written. */
  async untilAllLive(): Promise<void> {
    const until = performance.now() + 30_000;
    while ((await this.last().catch(() => new Map())).size < 3) {
      if (performance.now() > until) throw new Error("Cannot go on as not all processes live");
      await new Promise((resolve) => setTimeout(resolve, BEAT_MS));
    }
  }
}
