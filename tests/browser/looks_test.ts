import assert from "node:assert/strict";
import axe from "axe-core";
import type { Browser } from "playwright-core";
import { browserTest, SCREENSHOTS } from "./chromium.ts";
import { putBareGroup, putFleet } from "./fleet.ts";
import { PageServer, putGroup, putLease } from "./page_server.ts";
import { WatchedPage } from "./watched_page.ts";

/** A telephone, half a screen, and a screen. */
const WIDTHS = [390, 900, 1440] as const;

const THEMES = ["light", "dark"] as const;

/** A fault of axe-core, as far as it is told here. */
interface Violation {
  readonly id: string;
  readonly impact: string | null;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** What axe-core finds serious or worse. */
async function seriousFaults(watched: WatchedPage): Promise<readonly string[]> {
  // It is run by the driver and not loaded by the page, whose policy allows no script from elsewhere.
  await watched.page.evaluate(axe.source);
  const { violations } = await watched.page.evaluate<{ violations: readonly Violation[] }>(
    "axe.run(document, { resultTypes: ['violations'] })",
  );
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map((
    { id, help, nodes: [node] },
  ) => `${id}: ${help}: ${node?.html ?? ""} ${node?.failureSummary ?? ""}`);
}

async function look(browser: Browser, url: string, name: string, count: string): Promise<void> {
  for (const colorScheme of THEMES) {
    const watched = await WatchedPage.open(browser, url, { colorScheme });
    await watched.live();
    await watched.sees("#shown", count);
    // The colour in which something new arrives fades.
    await watched.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const width of WIDTHS) {
      await watched.page.setViewportSize({ width, height: 1000 });
      const overflow =
        "document.documentElement.scrollWidth - document.documentElement.clientWidth";
      assert.equal(await watched.page.evaluate(overflow), 0, `${width} px are enough`);
      await watched.page.screenshot({ path: `${SCREENSHOTS}${name}-${colorScheme}-${width}.png` });
    }
    assert.deepEqual(await seriousFaults(watched), []);
    assert.deepEqual(await watched.faults(), []);
  }
}

browserTest(
  "a page of one group has no serious fault of accessibility in either theme, and fits every width",
  async (browser) => {
    await using server = await PageServer.start();
    putGroup(server.fake, "orders");
    putLease(server.fake, "orders", { ttlMs: 100_000 });
    putLease(server.fake, "orders", { kind: "failover-hold", ttlMs: 50_000 });
    await look(browser, server.url, "one", "1 of 1 groups shown");
  },
);

browserTest(
  "a page of 20 groups in all states has none either, also with one whose status lacks everything",
  async (browser) => {
    await using server = await PageServer.start();
    putFleet(server.fake, 20);
    putBareGroup(server.fake, "bare");
    await new Promise((resolve) => setTimeout(resolve, 500));
    putLease(server.fake, "customers", { state: "revoked", reason: "topology_changed" });
    putLease(server.fake, "orders", { kind: "failover-hold", state: "released" });
    await look(browser, server.url, "twenty", "21 of 21 groups shown");
  },
);

browserTest("a page whose connection is lost has none either", async (browser) => {
  await using server = await PageServer.start();
  putGroup(server.fake, "orders");
  for (const colorScheme of THEMES) {
    const watched = await WatchedPage.open(browser, server.url, { colorScheme });
    await watched.live();
    const port = await server.cut();
    await watched.sees('#connection[data-state="lost"]');
    assert.deepEqual(await seriousFaults(watched), []);
    await server.listen(port);
  }
});
