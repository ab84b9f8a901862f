/**
 * The supervisor's side of its guard.
 *
 * @module
 */

import { type Clock, startDeadline } from "../runtime/clock.ts";
import { formatLine, type GuardOrder, type GuardReport, parseReport } from "./guard_protocol.ts";
import { type CommandLine, CommandNotFoundError, type GroupLeader } from "./process_group.ts";
import { onGuardClock } from "./rules.ts";
import { TextLines } from "./text_lines.ts";

/** The guard did not start, or was killed. */
export class GuardError extends Error {
  override readonly name = "GuardError";
}

/** What a supervisor asks of its guard. */
export interface ChildGuard {
  /** Moves the kill deadline, in milliseconds on this process's monotonic clock. */
  killAt(deadlineMs: number): void;
  /**
   * Starts the program. Once it has ended, nothing of its group is left.
   *
   * @throws {CommandNotFoundError} @throws {GuardError}
   */
  start(command: CommandLine, env: Readonly<Record<string, string>>): Promise<GroupLeader>;
}

/** How long a guard may take to start, in milliseconds. Generous: the machine may be busy. */
const START_MS = 15_000;

/** How long a guard may take to end once its supervisor has hung up, in milliseconds. A frozen one never does. */
const END_MS = 5_000;

/** How a guard is started. */
export interface GuardOptions {
  readonly clock: Clock;
  /** The socket on which the two talk: a path in a folder of this user alone. */
  readonly socketPath: string;
  /** The program that connects to the socket and calls {@linkcode guard}. */
  readonly command: CommandLine;
}

/** A guard that runs. */
export class GuardProcess implements ChildGuard, AsyncDisposable {
  readonly #clock: Clock;
  readonly #process: Deno.ChildProcess;
  readonly #connection: Deno.UnixConn;
  readonly #reports: AsyncIterator<GuardReport>;
  readonly #encoder = new TextEncoder();
  #guardMs = 0;
  #heardMs = 0;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(clock: Clock, process: Deno.ChildProcess, connection: Deno.UnixConn) {
    this.#clock = clock;
    this.#process = process;
    this.#connection = connection;
    this.#reports = readReports(connection);
  }

  /**
   * Starts a guard and waits until it is ready. It shares the input and the outputs of this process, so that the program
   * gets them.
   *
   * @throws {GuardError}
   */
  static async start({ clock, command, socketPath }: GuardOptions): Promise<GuardProcess> {
    using listener = listen(socketPath);
    const process = spawn(command);
    using limit = startDeadline(clock, START_MS);
    // Either ends the wait for a connection: closing the listener rejects it.
    const giveUp = () => listener.close();
    limit.signal.addEventListener("abort", giveUp, { once: true });
    process.status.then(giveUp, giveUp);
    let guard: GuardProcess;
    try {
      guard = new GuardProcess(clock, process, await listener.accept());
    } catch (cause) {
      endNow(process);
      await process.status;
      throw new GuardError("Cannot start the guard process: nothing was acquired", { cause });
    } finally {
      limit.signal.removeEventListener("abort", giveUp);
    }
    const ready = await guard.#next();
    if (ready?.type === "ready") {
      guard.#heardMs = clock.monotonic();
      guard.#guardMs = ready.nowMs;
      return guard;
    }
    await guard[Symbol.asyncDispose]();
    throw new GuardError("Cannot use the guard process as it is not ready: nothing was acquired");
  }

  /** The guard's process id. */
  get pid(): number {
    return this.#process.pid;
  }

  killAt(deadlineMs: number): void {
    const atMs = onGuardClock(deadlineMs, this.#guardMs, this.#heardMs);
    this.#send({ type: "kill-at", atMs });
  }

  async start(
    { path, args }: CommandLine,
    env: Readonly<Record<string, string>>,
  ): Promise<GroupLeader> {
    this.#send({ type: "start", path, args: [...args], env: { ...env } });
    const report = await this.#next();
    if (report?.type === "not-found") throw new CommandNotFoundError(path);
    if (report?.type !== "started") {
      throw new GuardError("Cannot start the command as the guard process ended");
    }
    return { pid: report.pid, ended: this.#ended() };
  }

  /** Ends the guard, which kills what still runs. One that does not end by itself is killed. */
  async [Symbol.asyncDispose](): Promise<void> {
    const cancel = this.#clock.timer(END_MS, () => endNow(this.#process));
    await this.#writing;
    this.#connection.close();
    await this.#process.status;
    cancel();
  }

  async #ended(): Promise<number> {
    const report = await this.#next();
    if (report?.type === "ended") return report.code;
    throw new GuardError("Cannot tell how the command ended as the guard process was killed");
  }

  /** The next report; `undefined` when the guard is gone, or says what makes no sense. */
  async #next(): Promise<GuardReport | undefined> {
    const { done, value } = await this.#reports.next();
    return done ? undefined : value;
  }

  /** A guard that was killed takes no orders: who waits for its reports learns that it is gone. */
  #send(order: GuardOrder): void {
    const bytes = this.#encoder.encode(formatLine(order));
    this.#writing = this.#writing.then(() => writeAll(this.#connection, bytes)).catch(() => {});
  }
}

function listen(path: string): { accept(): Promise<Deno.UnixConn>; close(): void } & Disposable {
  const listener = Deno.listen({ transport: "unix", path });
  let open = true;
  const close = () => {
    if (open) listener.close();
    open = false;
  };
  return { accept: () => listener.accept(), close, [Symbol.dispose]: close };
}

function spawn({ path, args }: CommandLine): Deno.ChildProcess {
  try {
    return new Deno.Command(path, {
      args: [...args],
      detached: true,
      stdin: "inherit",
      stdout: "inherit",
      stderr: "inherit",
    }).spawn();
  } catch (cause) {
    throw new GuardError("Cannot start the guard process: nothing was acquired", { cause });
  }
}

function endNow(process: Deno.ChildProcess): void {
  try {
    process.kill("SIGKILL");
  } catch {
    // It has ended already.
  }
}

async function* readReports(connection: Deno.UnixConn): AsyncGenerator<GuardReport> {
  try {
    const lines = readableOf(connection).pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLines());
    for await (const line of lines) {
      const report = parseReport(line);
      if (report === null) return;
      yield report;
    }
  } catch {
    // The connection broke, or was closed here.
  }
}

/** The bytes of a connection. The platform's own stream closes it at the end, and it is closed here by its owner. */
function readableOf(connection: Deno.UnixConn): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const buffer = new Uint8Array(4_096);
      const read = await connection.read(buffer);
      if (read === null) controller.close();
      else controller.enqueue(buffer.subarray(0, read));
    },
  });
}

async function writeAll(connection: Deno.UnixConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}
