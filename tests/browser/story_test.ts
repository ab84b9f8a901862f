import assert from "node:assert/strict";
import { DemoProcess } from "../handlers/commands/demo/demo_process.ts";
import { browserTest, SCREENSHOTS } from "./chromium.ts";
import { WatchedPage } from "./watched_page.ts";

/** The line in which the demo tells where its page is. */
const STATUS_LINE = /Status page\s+(http:\/\/127\.0\.0\.1:\d+\/)/;

browserTest(
  "the demo's story plays on its page, without a reload: grants, a countdown, a failover that waits, a switch, a revocation",
  async (browser) => {
    await using demo = await DemoProcess.start(["--pace", "150ms"]);
    await demo.printed(STATUS_LINE);
    const url = demo.lines.map((line) => STATUS_LINE.exec(line)?.[1]).find((found) => found) ?? "";
    const watched = await WatchedPage.open(browser, url);
    await watched.live();
    await watched.page.evaluate("globalThis.neverReloaded = true");

    await watched.sees("#changes .granted", "orders-release-42");
    await watched.sees("#changes .released", "billing-release-17");

    // The deployment that the failover overtakes: granted, counted down, and turned.
    const row = 'tr[id*=":migration:"][id$=":orders-release-43"]';
    await watched.sees(`${row} time[data-until]`);
    await watched.sees('tr[id*=":failover-hold:"] .who', "orders-app/deployer");
    const left = seconds(await watched.text(`${row} time[data-until]`));
    assert.ok(left > 60 && left <= 120, String(left));
    await watched.sees(
      ".notes li",
      /PlannedFailover to pdx: Deferred .* waits for the failover hold/,
    );
    await watched.sees(".state.bad", "a planned failover is under way");
    const order =
      "[...document.querySelector('article').children].map(({ className }) => className)";
    assert.deepEqual(await watched.page.evaluate(order), ["", "notes", "tables"]);
    await watched.page.screenshot({ path: `${SCREENSHOTS}story.png` });
    await watched.sees("#summary .bad dd", "1");
    await watched.sees(`${row} .end.revoked`, "the primary moved");
    await watched.sees("#changes .switched", "from iad to pdx, generation 8");
    await watched.sees("#changes .revoked", "orders-release-43");
    await watched.sees("#changes .released", "billing-release-18");
    await watched.sees(".state.good", "Stable");

    assert.equal(await watched.page.evaluate("globalThis.neverReloaded"), true);
    assert.deepEqual(await watched.faults(), []);
    demo.kill("SIGTERM");
    await demo.ended();
  },
);

/** A span of time as the page writes it. */
function seconds(text: string): number {
  const [, minutes = "0", rest = "0"] = /^(?:(\d+)m ?)?(?:(\d+)s)?$/.exec(text) ?? [];
  return Number(minutes) * 60 + Number(rest);
}
