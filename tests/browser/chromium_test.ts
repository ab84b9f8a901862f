import assert from "node:assert/strict";
import { ChromiumError, findChromium, MISSING } from "./chromium.ts";

const none = () => undefined;

Deno.test("Debian's Chromium is taken, or the one that is named", () => {
  assert.equal(findChromium(none, () => true), "/usr/bin/chromium");
  assert.equal(findChromium(none, (path) => path.endsWith("chrome")), "/usr/bin/google-chrome");
  const named = (name: string) => name === "HOLDFAST_CHROMIUM" ? "/opt/browser" : undefined;
  assert.equal(findChromium(named, () => true), "/opt/browser");
  assert.equal(findChromium(named, (path) => path !== "/opt/browser"), null);
});

Deno.test("without Chromium the tests of the page are left out, and that is an error where they are required", () => {
  assert.equal(findChromium(none, () => false), null);
  const required = (name: string) => name === "HOLDFAST_BROWSER_TESTS" ? "required" : undefined;
  assert.throws(
    () => findChromium(required, () => false),
    (error) => error instanceof ChromiumError && error.message === MISSING,
  );
  assert.match(MISSING, /apt-get install -y chromium/);
});
