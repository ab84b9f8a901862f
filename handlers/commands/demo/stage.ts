/**
 * The stage of the story: the folder, the cluster, the service on it, and those who deploy.
 *
 * @module
 */

import { join } from "node:path";
import { sleep, startDeadline } from "../../../lib/runtime/clock.ts";
import { type Authority, createAuthority } from "../../../lib/testing/mod.ts";
import type { System } from "../system.ts";
import { type Application, AUDIENCE, BILLING_APP, GROUP, ORDERS_APP } from "./cast.ts";
import { type DemoCluster, startCluster, VALID_DAYS } from "./cluster.ts";
import { type DatabaseTeam, databaseTeam } from "./database_team.ts";
import { Deployer } from "./deployer.ts";
import type { DemoVariables } from "./env_file.ts";
import { DemoFolder } from "./folder.ts";
import { CA_FILE, headerFile, renderHeader, tokenFile } from "./hints.ts";
import type { DemoPorts } from "./ports.ts";
import { type DemoService, startDemoService } from "./service.ts";

/** How long the service may take to lead. */
const READY_MS = 15_000;

/** Milliseconds between two looks whether it leads. */
const READY_POLL_MS = 50;

/** What the stage is built with. */
export interface StageParts {
  readonly system: System;
  readonly ports: DemoPorts;
  /** Ends all calls. */
  readonly signal: AbortSignal;
}

/** Everything that the story needs, up and running. It goes in order: the service, the cluster, the folder. */
export interface Stage extends AsyncDisposable {
  readonly folder: DemoFolder;
  readonly cluster: DemoCluster;
  readonly service: DemoService;
  readonly orders: Deployer;
  readonly billing: Deployer;
  readonly team: DatabaseTeam;
}

/**
 * Builds the stage, and returns when the service leads.
 *
 * @throws {RefusalError} A port is taken, or there is no room for files. What was built before is taken down.
 */
export async function buildStage({ system, ports, signal }: StageParts): Promise<Stage> {
  const { clock, entropy } = system;
  await using built = new AsyncDisposableStack();
  const folder = built.use(await DemoFolder.create());
  const authority = await createDemoAuthority(system);
  await folder.write(CA_FILE, authority.caPem);
  const cluster = built.use(
    await startCluster({ clock, entropy, authority, folder, ports, signal }),
  );
  const service = built.use(
    await startDemoService({ system, authority, cluster, folder, ports }),
  );
  const http = Deno.createHttpClient({ caCerts: [authority.caPem] });
  built.defer(() => http.close());

  const enter = async ({ database: instance, account }: Application): Promise<Deployer> => {
    const token = await cluster.tokenOf(account, AUDIENCE);
    await folder.write(tokenFile(instance), token);
    await folder.write(headerFile(instance), renderHeader(token));
    const send = (url: string, init: RequestInit) => fetch(url, { ...init, client: http });
    return new Deployer({ instance, groupUrl: service.groupUrl, token, send, clock, signal });
  };
  const orders = await enter(ORDERS_APP);
  const billing = await enter(BILLING_APP);
  await untilServing(orders, system, signal);

  const stack = built.move();
  const dispose = () => stack.disposeAsync();
  const team = databaseTeam({ api: cluster.api, clock, signal });
  return { folder, cluster, service, orders, billing, team, [Symbol.asyncDispose]: dispose };
}

/** What a script has to know of the stage. */
export function variablesOf({ folder, cluster, service }: Stage): DemoVariables {
  return {
    HOLDFAST_URL: service.url,
    HOLDFAST_CA_FILE: join(folder.path, CA_FILE),
    HOLDFAST_TOKEN_FILE: join(folder.path, tokenFile(ORDERS_APP.database)),
    HOLDFAST_GROUP: GROUP.name,
    HOLDFAST_INSTANCE: ORDERS_APP.database,
    HOLDFAST_STATUS_URL: service.statusUrl,
    DEMO_KUBECONFIG: cluster.kubeconfigPath,
  };
}

function createDemoAuthority({ clock }: System): Promise<Authority> {
  return createAuthority({
    webCrypto: crypto,
    nowMs: clock.wall(),
    commonName: "holdfast-demo-authority",
    days: VALID_DAYS,
  });
}

/** Waits as a deployment client would: a service that does not lead yet answers 503. */
async function untilServing(
  deployer: Deployer,
  { clock }: System,
  signal: AbortSignal,
): Promise<void> {
  using limit = startDeadline(clock, READY_MS, signal);
  while ((await deployer.look()).status === 503) await sleep(clock, READY_POLL_MS, limit.signal);
}
