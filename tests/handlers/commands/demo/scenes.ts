/**
 * The demo's story on a stage of cardboard: the service answers, and the cluster shows, what a test says.
 *
 * @module
 */

import type { DatabaseTeam } from "../../../../handlers/commands/demo/database_team.ts";
import { Deployer } from "../../../../handlers/commands/demo/deployer.ts";
import { playStory, type ToldStep } from "../../../../handlers/commands/demo/story.ts";
import type { MysqlFailoverGroup } from "../../../../lib/group/types.ts";
import { holdName, slotName } from "../../../../lib/records/names.ts";
import { TestClock } from "../../../../lib/testing/mod.ts";

/** One look or call of the story, and what it finds. */
export interface Scene {
  /** What the service answers. */
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The state that the Lease shows in the cluster from now on. */
  readonly state?: string;
  /** Which Lease. @default {the group's migration Lease} */
  readonly lease?: string;
}

/** What the database team sees at last when it looks at the group. */
export interface Sight {
  readonly sight: MysqlFailoverGroup;
}

/** Who takes the lease first, and second. */
export const FIRST = { instance: "orders-app", operationId: "orders-release-42" };
export const SECOND = { instance: "billing-app", operationId: "billing-release-17" };
/** Who is overtaken by the failover, and who comes after it. */
export const OLD = { instance: "orders-app", operationId: "orders-release-43" };
export const NEXT = { instance: "billing-app", operationId: "billing-release-18" };

/** When a lease ends at first, and when it was renewed. */
export const AT_FIRST = "2026-01-01T00:00:30.5Z";
export const RENEWED = "2026-01-01T00:02:00.5Z";

/** The group as its GET shows it, before and after the failover. */
export const free = { activeSite: "iad", topologyGeneration: 7, stable: true, leases: [] };
export const moved = { ...free, activeSite: "pdx", topologyGeneration: 8 };

export const lease = { kind: "migration", ...FIRST, expiresAt: RENEWED };
export const nextLease = { kind: "migration", ...NEXT, expiresAt: AT_FIRST };

const HOLD = holdName("orders", OLD.operationId);

/** A grant. @param digit The token is made of it. */
export function granted(operationId: string, digit: string, fence: string, change = {}): Scene {
  const token = digit.repeat(64);
  return {
    status: 201,
    body: { operationId, token, expiresAt: AT_FIRST, topologyGeneration: 7, ...change },
    headers: { "X-Lease-Fence": fence },
    state: "active",
  };
}

/** The grant of the hold. */
export function heldOff(change: Partial<Scene> = {}): Scene {
  return { ...granted(OLD.operationId, "d", "28"), lease: HOLD, ...change };
}

/** The refusal of one that comes second. */
export function refused(holder: unknown, retryAfter = "30"): Scene {
  return { status: 409, body: { error: "held", holder }, headers: { "Retry-After": retryAfter } };
}

/** The refusal of a new deployment while the failover waits. */
export function closed(reason: string, retryAfter = "1"): Scene {
  return {
    status: 423,
    body: { error: "unstable", reason, retryAfterSeconds: 1 },
    headers: { "Retry-After": retryAfter },
  };
}

/** The refusal of one that was overtaken. */
export function overtaken(change = {}): Scene {
  const body = { error: "revoked", reason: "topology_changed", topologyGeneration: 8, ...change };
  return { status: 409, body, state: "revoked" };
}

/** The group while the failover waits. */
export function deferred(change = {}): Sight {
  const plannedFailover = {
    phase: "Deferred",
    reason: "DeploymentHold",
    message: "held by the deployment orders-release-43 of orders-app",
    target: "pdx",
    sourcePrimary: "iad",
    retryAfter: "2026-01-01T00:00:30Z",
    ...change,
  };
  return { sight: { metadata: { name: "orders" }, status: { plannedFailover } } };
}

/** The group after the failover. */
export function succeeded(
  { annotations, ...change }: {
    readonly annotations?: Readonly<Record<string, string>>;
    readonly phase?: string;
    readonly activeSite?: string;
    readonly topologyGeneration?: number | null;
  } = {},
): Sight {
  const { phase = "Succeeded", activeSite = "pdx", topologyGeneration = 8 } = change;
  const plannedFailover = { phase, sourcePrimary: "iad" };
  return {
    sight: {
      metadata: { name: "orders", ...(annotations !== undefined && { annotations }) },
      status: { plannedFailover, activeSite, topologyGeneration },
    },
  };
}

/** All that is found in a story that goes well, in its order. */
export const GOOD: readonly (Scene | Sight)[] = [
  { status: 200, body: free },
  granted(FIRST.operationId, "a", "20"),
  refused({ ...FIRST, expiresAt: AT_FIRST }),
  { status: 200, body: { expiresAt: RENEWED, topologyGeneration: 7 } },
  { status: 200, body: { ...free, leases: [lease] } },
  { status: 204, state: "released" },
  granted(SECOND.operationId, "b", "23"),
  { status: 204, state: "released" },
  { status: 200, body: free },
  // The second part begins.
  granted(OLD.operationId, "c", "26"),
  heldOff(),
  deferred(),
  { status: 200, body: { expiresAt: RENEWED, topologyGeneration: 7 } },
  deferred({ retryAfter: "2026-01-01T00:02:00Z" }),
  closed("PlannedFailover"),
  { status: 204, state: "released", lease: HOLD },
  succeeded(),
  overtaken(),
  overtaken(),
  granted(NEXT.operationId, "e", "40", { topologyGeneration: 8 }),
  { ...overtaken(), state: "active" },
  { status: 200, body: { ...moved, leases: [nextLease] } },
  { status: 204, state: "released" },
  { status: 200, body: moved },
];

/** Plays the story, and tells what it told, called and threw. */
export async function play(scenes: readonly (Scene | Sight)[]) {
  const told: ToldStep[] = [];
  const parts: string[] = [];
  const requests: string[] = [];
  const states = new Map<string, string>();
  let at = 0;
  const deployer = (instance: string) =>
    new Deployer({
      instance,
      groupUrl: "https://service/deploy/v1/groups/orders",
      token: `token-of-${instance}`,
      send(url, init) {
        const scene = scenes[at++];
        const authorization = new Headers(init.headers).get("Authorization");
        requests.push(`${init.method} ${new URL(url).pathname} ${authorization}`);
        if (scene === undefined || "sight" in scene) {
          return Promise.reject(new Error("No call is planned"));
        }
        if (scene.state !== undefined) {
          states.set(scene.lease ?? slotName("orders"), scene.state);
        }
        const body = scene.body === undefined
          ? null
          : typeof scene.body === "string"
          ? scene.body
          : JSON.stringify(scene.body);
        return Promise.resolve(new Response(body, { ...scene }));
      },
      clock: new TestClock(),
      signal: new AbortController().signal,
    });
  const team: DatabaseTeam = {
    leaseState: (name) => Promise.resolve(states.get(name)),
    askForFailover(value) {
      requests.push(`annotate ${value}`);
      return Promise.resolve();
    },
    watchGroup(wanted) {
      const scene = scenes[at++];
      if (scene === undefined || !("sight" in scene)) {
        return Promise.reject(new Error("No look is planned"));
      }
      requests.push(`sees ${wanted(scene.sight) ? "what it wants" : "something else"}`);
      return Promise.resolve(scene.sight);
    },
  };
  const error = await playStory({
    orders: deployer("orders-app"),
    billing: deployer("billing-app"),
    team,
    begin: (title) => void parts.push(title),
    tell: (step) => void told.push(step),
  }).then(() => null, (thrown: unknown) => thrown);
  return { told, parts, requests, error };
}
