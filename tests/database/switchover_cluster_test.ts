/** A real database under its own operator, with migrations under `holdfast run`: docs/fencing.md, shown on real rows. */

import assert from "node:assert/strict";
import { dirname } from "node:path";
import { callerOf, environmentOf, type RealCaller } from "../client/real_caller.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { clusterTest, hasCluster } from "../cluster/cluster_test_support.ts";
import { pathOf } from "../checks/shell.ts";
import { livingOf, RunProcess } from "../handlers/commands/run_process.ts";
import { GroupOperator } from "../supervisor/group_operator.ts";
import { DatabaseOperator } from "./database_operator.ts";
import { ensureMariaDb, type MariaDbPrograms } from "./mariadb_programs.ts";
import { MIGRATOR_PASSWORD, SqlError } from "./mariadb_server.ts";
import { SitePair } from "./site_pair.ts";

const programs = hasCluster ? await ensureMariaDb() : null;
const GROUP = "shop";
const EXAMPLE = new URL("../../deploy/examples/fence/", import.meta.url);

/** What the migration waits for and writes. */
class Migration implements AsyncDisposable {
  readonly #folder: string;
  readonly #escapes: boolean;
  readonly run: RunProcess;

  constructor(
    caller: RealCaller,
    pair: SitePair,
    { client }: MariaDbPrograms,
    { name, args, firstChange, escape = false }: {
      readonly name: string;
      readonly args: readonly string[];
      readonly firstChange: string;
      readonly escape?: boolean;
    },
  ) {
    this.#folder = `${caller.folder}/${name}`;
    this.#escapes = escape;
    Deno.mkdirSync(this.#folder);
    const script = pathOf(new URL("long_migration.sh", import.meta.url));
    const settings = { ...caller.settings, group: GROUP, instance: `tenant-${GROUP}` };
    this.run = new RunProcess(["--operation", name, ...args, "--", "sh", script], {
      ...environmentOf(settings),
      MARIADB: client,
      MYSQL_PWD: MIGRATOR_PASSWORD,
      PORTS: pair.ports,
      LOG: `${this.#folder}/log`,
      FINISH: `${this.#folder}/finish`,
      LATE: `${this.#folder}/late`,
      FIRST_CHANGE: `CALL holdfast.ddl('${firstChange}')`,
      ESCAPE: escape ? "yes" : "",
    });
  }

  /** What the database said, a line each. */
  async log(): Promise<readonly string[]> {
    const text = await Deno.readTextFile(`${this.#folder}/log`).catch(() => "");
    return text.split("\n").slice(0, -1);
  }

  /** Waits until the log has so many lines of a kind. */
  async noted(pattern: RegExp, count = 1): Promise<readonly string[]> {
    const untilMs = performance.now() + 30_000;
    for (;;) {
      const log = await this.log();
      const found = log.filter((line) => pattern.test(line));
      if (found.length >= count) return found;
      assert.ok(performance.now() < untilMs, `${pattern} is not in\n${log.slice(-20).join("\n")}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  tryLateChange(): void {
    Deno.writeTextFileSync(`${this.#folder}/late`, "");
  }

  finish(): void {
    Deno.writeTextFileSync(`${this.#folder}/finish`, "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.finish();
    await this.run[Symbol.asyncDispose]();
    // What has escaped sees the file too.
    if (this.#escapes) await this.noted(/^escaped gone$/);
  }
}

/** The operator's own account, with the rights that docs/operator-integration.md names and a watch. */
async function operatorApi(cluster: Cluster, namespace: string) {
  const subject = { namespace, serviceAccount: "operator" };
  await cluster.createServiceAccount(namespace, subject.serviceAccount);
  const groups = ["mysqlfailovergroups"];
  await cluster.grant({
    subject,
    namespace,
    rules: [
      { apiGroups: ["shipstream.io"], resources: groups, verbs: ["get", "list", "watch"] },
      { apiGroups: ["shipstream.io"], resources: ["mysqlfailovergroups/status"], verbs: ["patch"] },
    ],
  });
  const token = await cluster.token(subject);
  return cluster.caller({ token }).api();
}

async function planned(scene: Scene): Promise<void> {
  const { caller, operator, pair, people, programs } = scene;
  await using migration = new Migration(caller, pair, programs, {
    name: "planned",
    args: ["--ttl", "8s", "--wait", "30s"],
    firstChange: "ALTER TABLE app.orders ADD COLUMN note VARCHAR(40)",
  });
  await migration.noted(/^command row taken/, 5);
  await people.request("pdx");
  const { message, retryAfter } = await people.untilPhase("Deferred");
  assert.match(message ?? "", /planned.*tenant-shop/);
  // It writes on through a renewal of its hold, and nobody moves the primary.
  const untilMs = performance.now() + 30_000;
  while ((await people.untilPhase("Deferred")).retryAfter === retryAfter) {
    assert.ok(performance.now() < untilMs, "no renewal was seen");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const soFar = (await migration.noted(/^command row taken/)).length;
  await migration.noted(/^command row taken/, soFar + 5);
  assert.deepEqual(operator.steps, []);

  migration.finish();
  const { code, stderr } = await migration.run.ended();
  assert.equal(code, 0, stderr);
  await operator.did("switched over to pdx");
  await people.untilPhase("Succeeded");
  const rows = (await migration.noted(/^command row taken/)).length;
  const onPdx =
    "SELECT COUNT(note IS NULL), MIN(generation), MAX(generation), MIN(server) FROM app.orders";
  assert.equal(await pair.site("pdx").sql(onPdx), `${rows}\t7\t7\t1`);
  assert.equal(await pair.site("pdx").sql("SELECT generation, fence FROM holdfast.fence"), "8\t0");
  assert.equal(await pair.site("iad").sql("SELECT @@read_only"), "1");
}

async function crash(scene: Scene): Promise<void> {
  const { caller, operator, pair, programs } = scene;
  const [old, survivor] = [pair.site("pdx"), pair.site("iad")];
  await using migration = new Migration(caller, pair, programs, {
    name: "cut-off",
    // Long enough that a failover that waited for the leases would be seen to.
    args: ["--ttl", "15s", "--wait", "30s"],
    firstChange: "ALTER TABLE app.orders ADD COLUMN other VARCHAR(40)",
    escape: true,
  });
  const processGroup = await migration.run.commandPid();
  await migration.noted(/^command row taken/, 10);
  await migration.noted(/^escaped row taken/, 10);
  await pair.untilCaughtUp("iad", "pdx");
  const killedMs = Date.now();
  await old.kill();
  const tookMs = await operator.did("failed over to iad") - killedMs;
  assert.ok(tookMs < 5_000, `the failover took ${tookMs} ms`);
  migration.tryLateChange();

  // The command is at work still, and so is what escaped from it: the database refuses both.
  const refused = /refused: ERROR 1644 .*authority is \(8, \d+\), and \(9, 0\) was seen/;
  await migration.noted(new RegExp(`^command row ${refused.source}`));
  const { code, stderr } = await migration.run.ended();
  assert.equal(code, 116, stderr);
  assert.deepEqual(await livingOf(processGroup), []);
  await migration.noted(new RegExp(`^escaped late-change ${refused.source}`), 3);

  // The next deployment moves the fence on. What was cut off stays out.
  await using next = new Migration(caller, pair, programs, {
    name: "next",
    args: ["--ttl", "8s", "--wait", "30s"],
    firstChange: "ALTER TABLE app.orders ADD COLUMN repaired VARCHAR(40)",
  });
  // With one site gone the group is not stable, and the next deployment waits for its repair.
  await next.run.said(/not stable: SiteNotReady/);
  await pair.rebuild("pdx", "iad");
  await operator.repaired();
  await next.noted(/^command row taken/, 5);
  const stillRefused =
    /^escaped row refused: ERROR 1644 .*\(8, \d+\), and \(9, [1-9]\d*\) was seen/;
  await migration.noted(stillRefused, 3);
  next.finish();
  const end = await next.run.ended();
  assert.equal(end.code, 0, end.stderr);

  // On real rows: under the old generation there is nothing that the survivor took itself.
  const count = async (where: string) =>
    Number(await survivor.sql(`SELECT COUNT(*) FROM app.orders WHERE ${where}`));
  assert.equal(await count(`generation = 8 AND server = ${survivor.id}`), 0);
  assert.ok(await count(`generation = 8 AND server = ${old.id}`) >= 20);
  const taken = await next.noted(/^command row taken/);
  assert.equal(await count(`generation = 9 AND server = ${survivor.id}`), taken.length);
  const columns = await survivor.sql("SHOW COLUMNS FROM app.orders");
  assert.match(columns, /^repaired\t/m);
  assert.doesNotMatch(columns, /^late\t/m);
  await pair.untilCaughtUp("pdx", "iad");
  const all = "SELECT COUNT(*), MAX(generation) FROM app.orders";
  assert.equal(await pair.site("pdx").sql(all), await survivor.sql(all));
  // It is the fence alone that refuses: the application writes.
  await survivor.sqlAs("application", "INSERT INTO orders (generation, n) VALUES (0, 0)");
}

/** The migration of the page, as it stands in deploy/examples. */
async function example({ caller, pair, programs }: Scene): Promise<void> {
  const script = (name: string) => pathOf(new URL(name, EXAMPLE));
  const settings = { ...caller.settings, group: GROUP, instance: `tenant-${GROUP}` };
  const command = ["--", "sh", script("migrate.sh"), script("0042_add_shipped.sql")];
  const primary = pair.site("iad");
  await using run = new RunProcess(["--ttl", "8s", "--wait", "30s", ...command], {
    ...environmentOf(settings),
    PATH: `${dirname(programs.client)}:${Deno.env.get("PATH")}`,
    MYSQL_PWD: MIGRATOR_PASSWORD,
    DATABASE_HOST: "127.0.0.1",
    DATABASE_PORT: String(primary.port),
  });
  const { code, stderr } = await run.ended();
  assert.equal(code, 0, stderr);
  const states = "SELECT DISTINCT state FROM app.orders WHERE generation > 0";
  assert.equal(await primary.sql(states), "shipped");
}

interface Scene {
  readonly caller: RealCaller;
  readonly pair: SitePair;
  readonly operator: DatabaseOperator;
  /** What people ask of the group, and see of it. */
  readonly people: GroupOperator;
  readonly programs: MariaDbPrograms;
}

if (programs !== null) {
  clusterTest(
    "a real switch-over waits for the migration; a crash of the primary waits for nobody, and the fence refuses the cut-off migration",
    async (cluster, context) => {
      const env = { HOLDFAST__PLANNED_OPERATIONS__ENABLED: "true" };
      await using caller = await callerOf(cluster, "database", { env });
      const { namespace } = caller;
      await cluster.grant({
        subject: { namespace, serviceAccount: "holdfast" },
        rules: [{
          apiGroups: ["shipstream.io"],
          resources: ["mysqlfailovergroups/status"],
          verbs: ["patch"],
        }],
      });
      await using pair = await SitePair.open(programs);
      await caller.openGroup(GROUP);
      const api = await operatorApi(cluster, namespace);
      await using operator = new DatabaseOperator(api, namespace, GROUP, pair);
      const people = new GroupOperator(cluster.adminApi, namespace, GROUP);
      const scene = { caller, operator, pair, people, programs };
      await context.step(
        "a planned failover waits while a migration writes, and then loses none of its rows",
        () => planned(scene),
      );
      await context.step(
        "a crash of the primary fails over at once, and later writes of the migration are refused",
        () => crash(scene),
      );
      await context.step(
        "the migration of the example runs behind the fence",
        () => example(scene),
      );
    },
  );

  Deno.test(
    "the fence refuses a session whose turn is over in the middle of its work, and one that goes around it",
    async () => {
      await using pair = await SitePair.open(programs);
      const primary = pair.site("iad");
      const insert = "INSERT INTO orders (generation, n) VALUES (7, 1)";
      const enter = (generation: number, fence: number | string) =>
        `CALL holdfast.enter(${generation}, ${fence})`;
      const refuses = (statements: string, reason: RegExp, first?: string) =>
        assert.rejects(primary.sqlAs("migrator", statements, first), (error) => {
          assert.ok(error instanceof SqlError);
          assert.match(error.message, reason);
          return true;
        });

      await refuses(insert, /authority is \(none, none\)/);
      await refuses(insert, /Incorrect integer value/, enter(7, "''"));
      await primary.sqlAs("migrator", insert, enter(7, 100));
      // A second connection of the same migration is as good as the first, also while that one has a transaction open.
      const open = primary.sqlAs(
        "migrator",
        `BEGIN; ${insert}; SELECT SLEEP(0.5); COMMIT; SELECT SLEEP(1); ${insert}`,
        enter(7, 100),
      );
      const late = assert.rejects(open, /authority is \(7, 100\), and \(7, 200\) was seen/);
      await new Promise((resolve) => setTimeout(resolve, 250));
      await primary.sqlAs("migrator", insert, enter(7, 100));
      // The next one waits for that transaction, and then the first session is over.
      await primary.sqlAs("migrator", insert, enter(7, 200));
      await late;
      assert.equal(await primary.sql("SELECT COUNT(*) FROM app.orders"), "4");

      const newest = enter(7, 200);
      await refuses("ALTER TABLE orders ADD COLUMN x INT", /ALTER command denied/, newest);
      await refuses("TRUNCATE orders", /DROP command denied/, newest);
      await refuses("UPDATE holdfast.fence SET fence = 0", /UPDATE command denied/, newest);
      await refuses("CALL holdfast.raise_generation(99)", /execute command denied/, newest);
      const grant = "CALL holdfast.ddl('GRANT ALL ON *.* TO migrator')";
      await refuses(grant, /Access denied/, newest);
      const back = "CALL holdfast.ddl('UPDATE holdfast.fence SET fence = 0')";
      await refuses(back, /UPDATE command denied/, newest);
      for (const change of ["UPDATE orders SET n = 2", "DELETE FROM orders"]) {
        await refuses(change, /authority is \(none, none\)/);
      }
      await primary.sqlAs(
        "migrator",
        "CALL holdfast.ddl('ALTER TABLE app.orders ADD y INT')",
        newest,
      );
      // A replica takes no authority, and the promoted one knows the pair of the last migration.
      await pair.untilCaughtUp("pdx", "iad");
      const replica = pair.site("pdx");
      await assert.rejects(replica.sqlAs("migrator", insert, enter(7, 300)), /read-only/);
      assert.equal(await replica.sql("SELECT generation, fence FROM holdfast.fence"), "7\t200");
      // The operator raises it once, whether it is told once or twice, and never lowers it.
      await replica.sql("STOP SLAVE; CALL holdfast.raise_generation(8)");
      await replica.sql("CALL holdfast.raise_generation(8); CALL holdfast.raise_generation(7)");
      assert.equal(await replica.sql("SELECT generation, fence FROM holdfast.fence"), "8\t0");
    },
  );
}
