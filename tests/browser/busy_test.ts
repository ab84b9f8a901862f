import assert from "node:assert/strict";
import { measureBusyPage } from "./busy_page.ts";
import { browserTest } from "./chromium.ts";

browserTest(
  "a page of 500 groups that change every second answers its reader, and is told only what changed",
  async (browser) => {
    const found = await measureBusyPage(browser, { groups: 500, seconds: 3 });
    assert.deepEqual(found.faults, []);
    assert.ok(found.changesPerSecond > 100, `${found.changesPerSecond} changes a second`);
    // A row and the head of its group, for each change.
    assert.ok(
      found.bytesPerSecond < 1_800 * found.changesPerSecond,
      `${found.bytesPerSecond} bytes a second`,
    );
    // The machine is shared: what is shown by a bench is stricter.
    const blocked = found.longTasks.reduce((sum, task) => sum + task, 0);
    assert.ok(blocked < 2_000, `the page was busy for ${blocked} ms of 3 s`);
    assert.ok(Math.max(...found.answers) < 2_000, `it answered after ${found.answers} ms`);
    assert.ok(
      Math.max(...found.seenAfter) < 5_000,
      `changes were seen after ${found.seenAfter} ms`,
    );
  },
);
