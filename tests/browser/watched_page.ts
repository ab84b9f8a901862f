/**
 * A page in the browser under watch: whatever the console, the policy or the network complains of is kept.
 *
 * @module
 */

import type { Browser, BrowserContextOptions, Page } from "playwright-core";

/** How long something may take to be seen, in milliseconds. The machine may be busy. */
const PATIENCE_MS = 15_000;

/** A page, and what was wrong with it. */
export class WatchedPage {
  readonly page: Page;
  /** Errors and warnings of the console, errors of the script, and violations of the page's policy. */
  readonly complaints: string[] = [];

  private constructor(page: Page) {
    this.page = page;
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("console", (message) => {
      const type = message.type();
      if (type === "error" || type === "warning") {
        this.complaints.push(`${type}: ${message.text()}`);
      }
    });
    page.on("pageerror", (error) => void this.complaints.push(`script: ${error.message}`));
  }

  /** Opens a page. */
  static async open(
    browser: Browser,
    url: string,
    options: BrowserContextOptions = {},
  ): Promise<WatchedPage> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
      ...options,
    });
    const watched = new WatchedPage(await context.newPage());
    // The console tells of violations too; the event names the rule.
    await watched.page.addInitScript(`
      globalThis.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => {
        globalThis.violations.push(event.violatedDirective + " " + event.blockedURI);
      });
    `);
    await watched.page.goto(url);
    return watched;
  }

  /** Waits until an element is there. @param selector CSS. @param text What it says, in part or as a pattern. */
  async sees(selector: string, text: string | RegExp = ""): Promise<void> {
    await this.page.locator(selector, { hasText: text }).first().waitFor({ state: "attached" });
  }

  /** Waits until the page follows the cluster. */
  async live(): Promise<void> {
    await this.sees('#connection[data-state="live"]');
  }

  /** The text of an element. */
  async text(selector: string): Promise<string> {
    return (await this.page.locator(selector).first().textContent()) ?? "";
  }

  /** What went wrong, of all kinds. @param expected Complaints that the test itself brought about. */
  async faults(expected?: RegExp): Promise<readonly string[]> {
    const violations = await this.page.evaluate<string[]>("globalThis.violations");
    return [...this.complaints.filter((one) => expected?.test(one) !== true), ...violations];
  }
}
