/**
 * A primary and a replica, with the example of docs/fencing.md installed as the page says.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Keeper } from "../cluster/keeper.ts";
import type { MariaDbPrograms } from "./mariadb_programs.ts";
import { MariaDbServer } from "./mariadb_server.ts";

const EXAMPLE = new URL("../../deploy/examples/fence/", import.meta.url);

/** What the application has. Each row says which server took it: a replica keeps what it gets. */
const APPLICATION = `
CREATE DATABASE app;
CREATE TABLE app.orders (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  generation BIGINT UNSIGNED NOT NULL,
  n INT NOT NULL,
  server INT UNSIGNED NOT NULL DEFAULT (@@server_id)
);
CREATE USER 'application'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON app.* TO 'application'@'%';
CREATE USER 'replicator'@'%';
GRANT REPLICATION SLAVE ON *.* TO 'replicator'@'%';
`;

/** Two servers, one for each site of the group. */
export class SitePair implements AsyncDisposable {
  readonly #programs: MariaDbPrograms;
  readonly #keeper: Keeper;
  readonly #sites: Map<string, MariaDbServer>;

  private constructor(
    programs: MariaDbPrograms,
    keeper: Keeper,
    servers: readonly MariaDbServer[],
  ) {
    this.#programs = programs;
    this.#keeper = keeper;
    this.#sites = new Map(servers.map((server) => [server.name, server]));
  }

  /** Starts `iad` as the primary and `pdx` as its replica. */
  static async open(programs: MariaDbPrograms): Promise<SitePair> {
    const keeper = await Keeper.open();
    try {
      const servers = await Promise.all([
        MariaDbServer.start(programs, keeper, { name: "iad", id: 1 }),
        MariaDbServer.start(programs, keeper, { name: "pdx", id: 2 }),
      ]);
      const pair = new SitePair(programs, keeper, servers);
      const primary = pair.site("iad");
      await pair.follow("pdx", "iad", "MASTER_USE_GTID = slave_pos");
      await primary.sql("SET GLOBAL read_only = 0");
      await primary.sql(APPLICATION);
      for (const file of ["fence.sql", "protect_table.sql"]) {
        await primary.sql(await Deno.readTextFile(new URL(file, EXAMPLE)));
      }
      await pair.untilCaughtUp("pdx", "iad");
      return pair;
    } catch (error) {
      await keeper.close();
      throw error;
    }
  }

  /** The server of a site. */
  site(name: string): MariaDbServer {
    const server = this.#sites.get(name);
    if (server === undefined) throw new RangeError(`Cannot find the site ${name}`);
    return server;
  }

  /** The ports of both, for a client that looks for the primary. */
  get ports(): string {
    return [...this.#sites.values()].map(({ port }) => port).join(" ");
  }

  /** Makes one a replica of the other. */
  async follow(replica: string, primary: string, from: string): Promise<void> {
    await this.site(replica).sql(
      `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${this.site(primary).port},
        MASTER_USER = 'replicator', MASTER_CONNECT_RETRY = 1, ${from};
      START SLAVE`,
    );
  }

  /** Puts a new server in the place of one that is gone. It gets all that the primary has. */
  async rebuild(name: string, primary: string): Promise<void> {
    const server = await MariaDbServer.start(this.#programs, this.#keeper, {
      name: `${name}-rebuilt`,
      id: 3,
    });
    this.#sites.set(name, server);
    await this.follow(name, primary, "MASTER_USE_GTID = slave_pos");
    await this.untilCaughtUp(name, primary);
  }

  /** Waits until a replica has all that the other one has written so far. */
  async untilCaughtUp(replica: string, primary: string): Promise<void> {
    const position = await this.site(primary).sql("SELECT @@gtid_binlog_pos");
    const waited = await this.site(replica).sql(`SELECT MASTER_GTID_WAIT('${position}', 30)`);
    assert.equal(waited, "0", await this.site(replica).sql("SHOW SLAVE STATUS\\G"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#keeper.close();
  }
}
