/**
 * The status page of 500 groups that all change every second, in a real browser: how busy it is, and how soon it answers.
 *
 * @module
 */

import { measureBusyPage } from "../browser/busy_page.ts";
import {
  ChromiumError,
  findChromium,
  isFile,
  MISSING,
  startChromium,
} from "../browser/chromium.ts";
import { type Figure, quantile } from "./figures.ts";

const GROUPS = 500;
const SECONDS = 10;

/** Measures it. It needs no cluster: the groups are in memory, so that the page alone is measured. */
export async function measurePage(): Promise<readonly Figure[]> {
  const path = findChromium((variable) => Deno.env.get(variable), isFile);
  if (path === null) throw new ChromiumError(MISSING);
  const browser = await startChromium(path);
  try {
    const found = await measureBusyPage(browser, { groups: GROUPS, seconds: SECONDS });
    const { longTasks, answers, seenAfter } = found;
    return [
      { what: `changes of ${GROUPS} groups`, value: found.changesPerSecond, unit: "/s" },
      {
        what: "bytes for each change",
        value: found.bytesPerSecond / found.changesPerSecond,
        unit: "",
      },
      {
        what: "tasks of the page above 50 ms, in a minute",
        value: longTasks.length * 60 / SECONDS,
        unit: "",
        goal: { atMost: 6 },
      },
      {
        what: "longest task of the page (0: none above 50 ms)",
        value: Math.max(0, ...longTasks),
        unit: "ms",
        goal: { atMost: 100 },
      },
      { what: "frames", value: found.framesPerSecond, unit: "/s", goal: { atLeast: 30 } },
      { what: "key stroke -> groups chosen, p50", value: quantile(answers, 0.5), unit: "ms" },
      {
        what: "key stroke -> groups chosen, longest",
        value: Math.max(...answers),
        unit: "ms",
        goal: { atMost: 200 },
      },
      { what: "change in the cluster -> seen, p50", value: quantile(seenAfter, 0.5), unit: "ms" },
      {
        what: "change in the cluster -> seen, longest",
        value: Math.max(...seenAfter),
        unit: "ms",
        goal: { atMost: 1_000 },
      },
    ];
  } finally {
    await browser.close();
  }
}
