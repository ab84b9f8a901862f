import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { browserTest } from "./chromium.ts";
import { putBareGroup, putFleet } from "./fleet.ts";
import { lagging, NAMESPACE, newCluster, PageServer, putGroup, putLease } from "./page_server.ts";
import { WatchedPage } from "./watched_page.ts";

const LEFT = "#groups time[data-until]";
/** What the browser says of a connection that the test cut. */
const CUT = /WebSocket connection to .* failed/;

browserTest("a grant appears, its time runs down, and a revocation turns it", async (browser) => {
  await using server = await PageServer.start();
  putGroup(server.fake, "orders");
  const watched = await WatchedPage.open(browser, server.url);
  await watched.sees("#groups .none", "No lease is held.");
  putLease(server.fake, "orders", { ttlMs: 30_000 });
  await watched.sees(LEFT, /^(30|29|28|27)s$/);
  const first = await watched.text(LEFT);
  await watched.page.locator(LEFT).filter({ hasNotText: first }).waitFor();
  assert.ok(parseInt(await watched.text(LEFT)) < parseInt(first));
  await watched.sees("#groups .age", /held for [1-9]s/);
  await watched.sees("#summary", /1\s*Migrations|Migrations\s*1/);
  putLease(server.fake, "orders", { state: "revoked", reason: "operator_revoked" });
  await watched.sees("#groups .end.revoked", "somebody took it back");
  await watched.sees("#changes .revoked", "orders-release-7");
  assert.deepEqual(await watched.faults(), []);
});

browserTest(
  "a page whose connection is cut says so, comes back by itself, and shows what it missed",
  async (browser) => {
    await using server = await PageServer.start();
    putGroup(server.fake, "orders");
    putGroup(server.fake, "billing");
    const watched = await WatchedPage.open(browser, server.url);
    await watched.live();
    await watched.page.evaluate("document.getElementById('group:database/orders').mark = 'kept'");
    const port = await server.cut();
    await watched.sees('#connection[data-state="lost"]', /Connection lost at \d\d:\d\d:\d\d UTC/);
    putLease(server.fake, "orders", { ttlMs: 60_000 });
    server.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "billing" });
    await server.listen(port);
    await watched.live();
    await watched.sees(LEFT, /s$/);
    await watched.page.locator('[id="group:database/billing"]').waitFor({ state: "detached" });
    const mark = "document.getElementById('group:database/orders').mark";
    assert.equal(await watched.page.evaluate(mark), "kept", "what was there was not drawn anew");
    assert.deepEqual(await watched.faults(CUT), []);
  },
);

browserTest(
  "a page that comes to another replica shows what that one saw, and says whose it is",
  async (browser) => {
    await using fake = newCluster();
    putGroup(fake, "orders");
    const first = await PageServer.start({ fake });
    const watched = await WatchedPage.open(browser, first.url);
    await watched.live();
    putLease(fake, "orders", { ttlMs: 60_000 });
    await watched.sees("#changes .granted");
    await watched.sees("#source", "holdfast-0");
    const { port } = first;
    await first[Symbol.asyncDispose]();
    await using _second = await PageServer.start({ fake, port, replica: "holdfast-1" });
    await watched.sees("#source", "holdfast-1");
    await watched.page.locator("#changes li").waitFor({ state: "detached" });
    await watched.sees(LEFT, /s$/);
    assert.deepEqual(await watched.faults(CUT), []);
  },
);

browserTest("only what changed is touched, and a reader's choice stays", async (browser) => {
  await using server = await PageServer.start();
  putFleet(server.fake, 20);
  putBareGroup(server.fake, "bare");
  const watched = await WatchedPage.open(browser, server.url);
  const { page } = watched;
  await watched.live();
  await watched.sees("#shown", "21 of 21 groups shown");
  assert.match(await watched.text("#groups article"), /bare|billing|catalog/);
  await page.selectOption("#controls [name=show]", "closed");
  await watched.sees("#shown", "5 of 21 groups shown");
  await page.selectOption("#controls [name=show]", "all");
  await page.fill("#controls [name=find]", "mail");
  await watched.sees("#shown", "2 of 21 groups shown");
  assert.match(page.url(), /find=mail/);

  await page.evaluate(`
    globalThis.touched = new Set();
    new MutationObserver((found) => {
      for (const { target } of found) {
        const element = target instanceof Element ? target : target.parentElement;
        // The countdowns run by themselves.
        if (element.closest("time") === null) touched.add(element.closest("[id]")?.id);
      }
    }).observe(document.getElementById("groups"), { subtree: true, childList: true, characterData: true, attributes: true });
  `);
  putGroup(server.fake, "mail", lagging(42));
  await watched.sees('[id="site:database/mail:pdx"]', "42s");
  assert.deepEqual(await page.evaluate("[...touched].sort()"), [
    "head:database/mail",
    "site:database/mail:pdx",
  ]);
  await page.reload();
  await watched.sees("#shown", "2 of 21 groups shown");
  assert.equal(await page.inputValue("#controls [name=find]"), "mail");
  assert.deepEqual(await watched.faults(), []);
});

browserTest(
  "without a script the page tells all that it told when it was loaded",
  async (browser) => {
    await using server = await PageServer.start();
    putFleet(server.fake, 4);
    await new Promise((resolve) => setTimeout(resolve, 400));
    const watched = await WatchedPage.open(browser, server.url, { javaScriptEnabled: false });
    await watched.sees("#connection", /As of \d\d:\d\d:\d\d UTC/);
    await watched.sees(LEFT, /^\d+(m \d+)?s$|^1m/);
    await watched.sees(".notes li", "PlannedFailover to pdx: Deferred");
    assert.equal(await watched.page.locator("#controls").isVisible(), false);
  },
);

browserTest(
  "a page is used with the keyboard alone, and a screen reader is told what happened, not the time",
  async (browser) => {
    await using server = await PageServer.start();
    putGroup(server.fake, "orders");
    putGroup(server.fake, "billing");
    const watched = await WatchedPage.open(browser, server.url);
    const { page } = watched;
    await watched.live();
    await watched.sees("#shown", "2 of 2 groups shown");
    const reached: string[] = [];
    for (let step = 0; step < 8; step++) {
      await page.keyboard.press("Tab");
      reached.push(
        await page.evaluate<string>(
          "(({ name, id, hash }) => name || hash || id)(document.activeElement)",
        ),
      );
    }
    assert.deepEqual(reached.slice(0, 7), [
      "#groups",
      "#timeline",
      "find",
      "show",
      "sort",
      "compact",
      "timeline",
    ]);
    await page.evaluate(`
    globalThis.said = [];
    new MutationObserver(() => said.push(document.getElementById("news").textContent))
      .observe(document.getElementById("news"), { childList: true, subtree: true, characterData: true });
  `);
    putLease(server.fake, "orders", { ttlMs: 30_000 });
    putLease(server.fake, "orders", { kind: "failover-hold", ttlMs: 30_000 });
    await watched.sees("#news", /granted database\/orders .*lease of orders-release-7/);
    putLease(server.fake, "orders", { state: "released" });
    await watched.sees("#changes .released");
    assert.equal(await page.evaluate("said.length"), 1, "it does not chatter");
    assert.deepEqual(await watched.faults(), []);
  },
);

browserTest(
  "the page's WebSocket serves the page alone, and sends a change as its one row",
  async (browser) => {
    await using server = await PageServer.start();
    putFleet(server.fake, 100);
    const watched = await WatchedPage.open(browser, server.url);
    const { page } = watched;
    await page.evaluate("globalThis.frames = 0");
    const sizes: number[] = [];
    page.on("websocket", (socket) => {
      socket.on("framereceived", ({ payload }) => void sizes.push(payload.length));
    });
    await page.reload();
    await watched.live();
    await watched.sees("#shown", "100 of 100");
    const first = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(first < 3_000, `what the page brought along is not sent again: ${first} bytes`);
    sizes.length = 0;
    for (const seconds of [50, 51, 52]) {
      putGroup(server.fake, "mail", lagging(seconds));
      await watched.sees("#groups", `${seconds}s`);
    }
    const sent = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(sent < 3 * 1_500, `three changes are ${sent} bytes`);
    const response = await fetch(`${server.url}ws/page`);
    assert.equal(response.status, 404);
    await response.body?.cancel();
    assert.deepEqual(await watched.faults(), []);
  },
);
