/**
 * A page under load: every group changes once a second, and what that costs its reader is measured.
 *
 * @module
 */

import type { Browser } from "playwright-core";
import { lagging, PageServer, putGroup } from "./page_server.ts";
import { changeOne, groupName, putFleet } from "./fleet.ts";
import { WatchedPage } from "./watched_page.ts";

/** What a reader of a busy page has to bear. */
export interface BusyPage {
  /** Tasks of the page that kept it from answering for more than 50 ms, in milliseconds each. */
  readonly longTasks: readonly number[];
  /** Milliseconds from a key stroke in the search field to the groups that it chooses. */
  readonly answers: readonly number[];
  /** Frames in each second. */
  readonly framesPerSecond: number;
  readonly changesPerSecond: number;
  readonly bytesPerSecond: number;
  /** Milliseconds from a change in the cluster until it is seen. */
  readonly seenAfter: readonly number[];
  readonly faults: readonly string[];
}

/** In how many parts a second's changes come. */
const PARTS = 10;

/** Watches a page while all of its groups change. */
export async function measureBusyPage(
  browser: Browser,
  { groups, seconds }: { readonly groups: number; readonly seconds: number },
): Promise<BusyPage> {
  await using server = await PageServer.start();
  putFleet(server.fake, groups);
  const watched = await WatchedPage.open(browser, server.url);
  const { page } = watched;
  let bytes = 0;
  page.on("websocket", (socket) => {
    socket.on("framereceived", ({ payload }) => void (bytes += payload.length));
  });
  await page.reload();
  await watched.live();
  await watched.sees("#shown", `${groups} of ${groups}`);
  // What it costs to load a page is paid once.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await page.evaluate(OBSERVE);
  bytes = 0;

  const answers: number[] = [];
  const seenAfter: number[] = [];
  const startedAt = performance.now();
  let changes = 0;
  for (let round = 1; round <= seconds * PARTS; round++) {
    for (let index = round % PARTS; index < groups; index += PARTS) {
      changeOne(server.fake, index, round);
      changes++;
    }
    if (round % PARTS === 5) answers.push(await answerTime(watched));
    if (round % PARTS === 9) seenAfter.push(await seenTime(server, watched, 1_000 + round));
    const dueAt = startedAt + round * (1_000 / PARTS);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueAt - performance.now())));
  }
  const lastedS = (performance.now() - startedAt) / 1_000;
  const { longTasks, frames } = await page.evaluate<{ longTasks: number[]; frames: number }>(
    "({ longTasks, frames })",
  );
  return {
    longTasks,
    answers,
    seenAfter,
    framesPerSecond: frames / lastedS,
    changesPerSecond: changes / lastedS,
    bytesPerSecond: bytes / lastedS,
    faults: await watched.faults(),
  };
}

const OBSERVE = `
  globalThis.longTasks = [];
  globalThis.frames = 0;
  new PerformanceObserver((found) => {
    for (const { duration } of found.getEntries()) longTasks.push(duration);
  }).observe({ type: "longtask" });
  const frame = () => { frames++; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
`;

/** How long the page takes to choose groups by a word, in its own clock, until the next frame. */
async function answerTime({ page }: WatchedPage): Promise<number> {
  return await page.evaluate<number>(`
    new Promise((resolve) => {
      const field = document.querySelector("#controls [name=find]");
      const startedAt = performance.now();
      field.value = field.value === "" ? "mail" : "";
      field.dispatchEvent(new Event("input", { bubbles: true }));
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - startedAt)));
    })
  `);
}

/** How long a change of one group takes to be on the page. */
async function seenTime(server: PageServer, watched: WatchedPage, lag: number): Promise<number> {
  const name = groupName(4);
  const startedAt = performance.now();
  putGroup(server.fake, name, lagging(lag));
  const text = `${Math.floor(lag / 60)}m ${lag % 60}s`.replace(" 0s", "");
  await watched.sees(`[id="site:database/${name}:pdx"]`, text);
  return performance.now() - startedAt;
}
