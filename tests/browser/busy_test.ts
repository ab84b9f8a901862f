import assert from "node:assert/strict";
import { measureBusyPage } from "./busy_page.ts";
import { browserTest } from "./chromium.ts";

browserTest(
  "a page of 500 groups that change every second answers its reader, and is told only what changed",
  async (browser) => {
    const found = await measureBusyPage(browser, { groups: 500, seconds: 3 });
    assert.deepEqual(found.faults, []);
    // A row and the head of its group, for each change.
    assert.ok(
      found.bytesPerSecond < 1_800 * found.changesPerSecond,
      `${found.bytesPerSecond} bytes a second`,
    );
    // How quick it is, `deno task bench page` measures: here it must answer and see changes at all.
    assert.ok(found.answers.length > 0 && found.answers.every(Number.isFinite));
    assert.ok(found.seenAfter.length > 0 && found.seenAfter.every(Number.isFinite));
  },
);
