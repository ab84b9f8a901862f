/**
 * `/ws/status` with many clients and many groups: how long the event loop stands still, on which a leader renews its Lease.
 *
 * @module
 */

import process from "node:process";
import { StatusFeed } from "../../lib/auxiliary/status_feed.ts";
import { FakeView, groupNamed } from "../auxiliary/support.ts";
import { realClock } from "../host/support.ts";
import { SocketsRig } from "../host/web_sockets_rig.ts";
import { pathOf } from "../checks/shell.ts";
import { TextLineStream } from "../service/text_lines.ts";
import type { Figure } from "./figures.ts";

const CLIENTS = 100;
const GROUPS = 500;
const SECONDS = 10;
const CLIENTS_MODULE = pathOf(new URL("socket_clients.ts", import.meta.url));
/** Milliseconds between two bursts of changes. */
const BURST_MS = 100;

/** Measures it. It needs no cluster: the groups are in memory, so that the sending alone is measured. */
export async function measureSockets(): Promise<readonly Figure[]> {
  const groups = new FakeView();
  for (let index = 0; index < GROUPS; index++) groups.put(groupNamed(`group-${index}`));
  const feed = new StatusFeed({ groups, clock: realClock });
  const path = { open: feed.open.bind(feed), maxClients: 0 };
  await using rig = await new SocketsRig({ path }).start();
  const first = CLIENTS * GROUPS;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", CLIENTS_MODULE, rig.url, String(CLIENTS), String(first)],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    [Symbol.asyncIterator]();
  using loop = new LoopWatch();
  const allThere = Number((await lines.next()).value);
  const storm = loop.take();

  const before = process.cpuUsage();
  const started = performance.now();
  let changes = 0;
  while (performance.now() - started < SECONDS * 1_000) {
    for (let index = 0; index < GROUPS * BURST_MS / 1_000; index++) {
      groups.put(groupNamed(`group-${changes % GROUPS}`, { updatePhase: String(changes) }));
      changes++;
    }
    await new Promise((resolve) => setTimeout(resolve, BURST_MS));
  }
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - started) / 1_000;
  const steady = loop.take();
  await child.stdin.close();
  const received = Number((await lines.next()).value) - first;
  await child.status;
  return [
    {
      what: `${CLIENTS} clients connect at once: all ${GROUPS} groups there`,
      value: allThere,
      unit: "ms",
    },
    {
      what: "longest stand of the event loop meanwhile",
      value: storm,
      unit: "ms",
      goal: { atMost: 250 },
    },
    { what: "changes of groups", value: changes / seconds, unit: "/s" },
    { what: "messages that came", value: received / seconds, unit: "/s" },
    { what: "share of a core for them", value: (user + system) / 1e6 / seconds, unit: "" },
    {
      what: "longest stand of the event loop meanwhile",
      value: steady,
      unit: "ms",
      goal: { atMost: 250 },
    },
  ];
}

/** Sees how long the event loop stands still. */
class LoopWatch implements Disposable {
  #longest = 0;
  #last = performance.now();
  readonly #timer = setInterval(() => {
    const now = performance.now();
    this.#longest = Math.max(this.#longest, now - this.#last - 10);
    this.#last = now;
  }, 10);

  /** The longest stand since the last time, in milliseconds. */
  take(): number {
    const longest = this.#longest;
    this.#longest = 0;
    return longest;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
