/**
 * The status page: `/` of the auxiliary port, its script and its style. Read-only, and without a part from elsewhere.
 *
 * @module
 */

import { Hono } from "hono";
import { type LeaseInstant, middleOf } from "../../lib/lease_time/lease_time.ts";
import { sha256Hex } from "../../lib/records/sha256.ts";
import type { Placed } from "../../lib/status_page/difference.ts";
import type { KnownPage, LivePage } from "../../lib/status_page/live_page.ts";
import type { AuxEnv } from "./middleware/aux_log.ts";
import { Group, Head, Lease, Notes, Site } from "./status_page/group.tsx";
import { Change, Document, Problems, Source, Summary } from "./status_page/document.tsx";
import icon from "./status_page/browser/icon.svg" with { type: "text" };
import script from "./status_page/browser/page.js" with { type: "text" };
import rules from "./status_page/browser/rules.js" with { type: "text" };
import style from "./status_page/browser/page.css" with { type: "text" };

/** Where the page's WebSocket is. */
export const WS_PAGE_PATH = "/ws/page";

/** The name of its handler in log lines and figures. */
export const WS_PAGE_HANDLER = "ws-page";

/** What {@linkcode createStatusPage} takes. */
export interface StatusPageParts {
  readonly page: Pick<LivePage, "state" | "version">;
  /** Lease time, or what stands in for it while it is not known. */
  readonly time: () => LeaseInstant;
}

/**
 * What a browser lets the page do: run this server's one script, use its one style, and talk to this server. Nothing is
 * inline, nothing may be sent anywhere, no other page may show this one, and only the script's one policy makes HTML.
 */
const SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types holdfast",
].join("; ");

const HEADERS = {
  "Content-Security-Policy": SECURITY_POLICY,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};

/** What the page loads, by path. */
const ASSETS = new Map([
  ["/page/page.js", asset("text/javascript; charset=utf-8", script)],
  ["/page/rules.js", asset("text/javascript; charset=utf-8", rules)],
  ["/page/page.css", asset("text/css; charset=utf-8", style)],
  ["/page/icon.svg", asset("image/svg+xml", icon)],
]);

/** Makes the page's part of the auxiliary application. */
export function createStatusPage({ page, time }: StatusPageParts): Hono<AuxEnv> {
  const app = new Hono<AuxEnv>();
  app.get("/", (c) => {
    c.set("handler", "page");
    const { state, version } = page;
    const html = text(<Document state={state} version={version} nowMs={drawnAt(time())} />);
    return c.body(`<!DOCTYPE html>${html}`, 200, {
      ...HEADERS,
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
    });
  });
  for (const [path, { type, content, tag }] of ASSETS) {
    app.get(path, (c) => {
      c.set("handler", "page");
      const headers = { ...HEADERS, "Cache-Control": "no-cache", ETag: tag };
      if (c.req.header("If-None-Match") === tag) return c.body(null, 304, headers);
      return c.body(content, 200, { ...headers, "Content-Type": type });
    });
  }
  return app;
}

/** Draws a part of the page by itself. @param time As for {@linkcode createStatusPage}. */
export function renderPart({ id, order, part }: Placed, time: () => LeaseInstant): string {
  switch (part.part) {
    case "group":
      return text(<Group group={part.group} nowMs={drawnAt(time())} />);
    case "head":
      return text(<Head id={id} head={part.head} />);
    case "notes":
      return text(<Notes id={id} texts={part.texts} />);
    case "site":
      return text(<Site id={id} order={order} site={part.site} />);
    case "lease":
      return text(<Lease id={id} order={order} lease={part.lease} nowMs={drawnAt(time())} />);
    case "change":
      return text(<Change id={id} change={part.change} />);
    case "source":
      return text(<Source source={part.source} />);
    case "summary":
      return text(<Summary id={id} summary={part.summary} />);
    case "problems":
      return text(<Problems id={id} problems={part.problems} />);
  }
}

/**
 * Reads which page a client has from the query of its request, `?has=EPOCH.SEQUENCE.CHANGE`.
 *
 * @returns `null` for a client that has none, or whose query says nothing that is understood.
 */
export function knownPage(target: string): KnownPage | null {
  const [, epoch, sequence, change] = /[?&]has=(\w+)\.(\d{1,15})\.(\d{1,15})(?:&|$)/.exec(target) ??
    [];
  if (epoch === undefined) return null;
  return { epoch, sequence: Number(sequence), change: Number(change) };
}

function asset(type: string, content: string) {
  return { type, content, tag: `"${sha256Hex(content).slice(0, 32)}"` };
}

/** No part of the page waits for anything, so a drawing is text at once. */
function text(drawing: unknown): string {
  return String(drawing);
}

/** The instant of a drawing, in whole milliseconds. */
function drawnAt(time: LeaseInstant): number {
  return Math.floor(middleOf(time));
}
