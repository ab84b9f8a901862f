/**
 * A MariaDB server of a test: a folder of data of its own, a socket, and a port of this machine.
 *
 * @module
 */

import type { Keeper } from "../cluster/keeper.ts";
import { type MariaDbPrograms, userOption } from "./mariadb_programs.ts";

/** A statement that the database refused. */
export class SqlError extends Error {
  override readonly name = "SqlError";
}

/** The password of the account `migrator`, as the example installs it. */
export const MIGRATOR_PASSWORD = "change-me";

/** How long a server may take to come up. Generous: the machine may be busy. */
const READY_LIMIT_MS = 60_000;

/** One server. */
export class MariaDbServer {
  readonly name: string;
  /** What the server calls itself in what it replicates, and `@@server_id`. */
  readonly id: number;
  readonly port: number;
  readonly #programs: MariaDbPrograms;
  readonly #keeper: Keeper;

  private constructor(programs: MariaDbPrograms, keeper: Keeper, name: string, id: number) {
    this.#programs = programs;
    this.#keeper = keeper;
    this.name = name;
    this.id = id;
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.port = listener.addr.port;
  }

  /** Copies the data of a fresh installation, and starts the server, which is read-only at first. */
  static async start(
    programs: MariaDbPrograms,
    keeper: Keeper,
    { name, id }: { readonly name: string; readonly id: number },
  ): Promise<MariaDbServer> {
    const server = new MariaDbServer(programs, keeper, name, id);
    const { success } = await new Deno.Command("cp", {
      args: ["-r", programs.template, server.#data],
      stdin: "null",
    }).output();
    if (!success) throw new Error("Cannot copy the data of a fresh installation");
    await keeper.start(name, programs.server, server.#options());
    const limitMs = performance.now() + READY_LIMIT_MS;
    while (!await server.isUp()) {
      if (await keeper.hasExited(name) || performance.now() > limitMs) {
        throw new Error(`Cannot start MariaDB: ${await keeper.logTail(name)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return server;
  }

  /** Whether it answers. */
  async isUp(): Promise<boolean> {
    return await this.sql("SELECT 1").then(() => true, () => false);
  }

  /** Ends it as a power failure does. */
  async kill(): Promise<void> {
    await this.#keeper.kill(this.name);
  }

  /**
   * Runs statements as root.
   *
   * @returns The rows, a line each, with tabs between the columns.
   * @throws {SqlError}
   */
  async sql(statements: string, database = ""): Promise<string> {
    return await this.#client([`--socket=${this.#socket}`, "--user=root", database], statements);
  }

  /** Runs statements as another account, over the network. @param first What the connection begins with. */
  async sqlAs(user: string, statements: string, first?: string): Promise<string> {
    const init = first === undefined ? [] : [`--init-command=${first}`];
    const options = ["--host=127.0.0.1", `--port=${this.port}`, `--user=${user}`, ...init, "app"];
    return await this.#client(options, statements);
  }

  async #client(options: readonly string[], statements: string): Promise<string> {
    const child = new Deno.Command(this.#programs.client, {
      args: ["--no-defaults", "--batch", "--skip-column-names", ...options.filter((o) => o !== "")],
      env: { MYSQL_PWD: options.includes("--user=migrator") ? MIGRATOR_PASSWORD : "" },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const input = new Blob([statements]).stream().pipeTo(child.stdin).catch(() => {});
    const { success, stdout, stderr } = await child.output();
    await input;
    if (!success) throw new SqlError(new TextDecoder().decode(stderr).trim());
    return new TextDecoder().decode(stdout).trim();
  }

  get #data(): string {
    return `${this.#keeper.folder}/${this.name}-data`;
  }

  get #socket(): string {
    return `${this.#keeper.folder}/${this.name}.sock`;
  }

  #options(): string[] {
    return [
      ...["--no-defaults", `--basedir=${this.#programs.base}`, `--datadir=${this.#data}`],
      ...[`--socket=${this.#socket}`, `--port=${this.port}`, "--bind-address=127.0.0.1"],
      ...[`--pid-file=${this.#data}/pid`, `--server-id=${this.id}`, "--log-bin=binlog"],
      ...["--binlog-format=ROW", "--log-slave-updates", "--gtid-strict-mode", "--read-only"],
      ...["--skip-name-resolve", "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M"],
      // What a process wrote survives its own end: only the machine's would need more.
      ...["--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"],
      ...userOption(),
    ];
  }
}
