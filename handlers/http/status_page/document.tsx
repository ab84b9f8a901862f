/**
 * The whole status page, as it is without a script: true at the moment that it tells, and complete.
 *
 * @module
 */

import type { FC } from "hono/jsx";
import type { PageChange } from "../../../lib/status_page/changes.ts";
import {
  CHANGES_ID,
  GROUPS_ID,
  OVERVIEW_ID,
  type PageSource,
  type PageState,
  placeChange,
  placeProblems,
  placeSummary,
  SOURCE_ID,
  TIMELINE_ID,
} from "../../../lib/status_page/difference.ts";
import type { PageVersion } from "../../../lib/status_page/live_page.ts";
import type { PageGroup } from "../../../lib/status_page/model.ts";
import type { PageSummary } from "../../../lib/status_page/overview.ts";
import { Group, item } from "./group.tsx";

/** What the page is drawn from. */
export interface DocumentProps {
  readonly state: PageState;
  readonly version: PageVersion;
  /** Lease time, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** The page. */
export const Document: FC<DocumentProps> = ({ state, version, nowMs }) => (
  <html lang="en" data-epoch={version.epoch} data-sequence={version.sequence} data-at={nowMs}>
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <title>Holdfast status</title>
      <link rel="icon" href="page/icon.svg" type="image/svg+xml" />
      <link rel="stylesheet" href="page/page.css" />
      <script type="module" src="page/page.js"></script>
    </head>
    <body>
      <header class="top">
        <h1>Holdfast</h1>
        <nav aria-label="Page">
          <a href={`#${GROUPS_ID}`}>Groups</a> <a href={`#${TIMELINE_ID}`}>What happened</a>
        </nav>
        <p id="connection" role="status" data-state="still">
          As of{" "}
          <time datetime={isoTime(nowMs)}>{clockTime(nowMs)} UTC</time>. Load the page again for
          what is newer.
        </p>
      </header>
      <main>
        <section id={OVERVIEW_ID} aria-label="Overview">
          <Summary id={placeSummary(state.summary).id} summary={state.summary} />
          <Problems id={placeProblems(state.problems).id} problems={state.problems} />
        </section>
        <section id="all" aria-labelledby="groups-title">
          <h2 id="groups-title">Groups</h2>
          <Controls />
          <div id={GROUPS_ID} tabindex={-1}>
            {[...state.groups.values()].map((group) =>
              drawGroup(group, nowMs)
            )}
          </div>
          <p class="none">There is no group.</p>
        </section>
        <section id={TIMELINE_ID} aria-labelledby="changes-title" tabindex={0}>
          <h2 id="changes-title">What happened</h2>
          <Source source={state.source} />
          <ol id={CHANGES_ID} reversed>
            {state.changes.map(drawChange)}
          </ol>
          <p class="none">Nothing yet.</p>
        </section>
      </main>
      <p id="news" class="for-readers" role="status"></p>
    </body>
  </html>
);

function drawGroup(group: PageGroup, nowMs: number) {
  return <Group group={group} nowMs={nowMs} />;
}

function drawChange(change: PageChange) {
  return <Change id={placeChange(change).id} change={change} />;
}

/** Hidden until the script that serves them is there. */
const Controls: FC = () => (
  <form id="controls" role="search" aria-label="Groups" hidden>
    <label>
      Find <input type="search" name="find" autocomplete="off" spellcheck={false} />
    </label>
    <label>
      Show{" "}
      <select name="show">
        <option value="all">all groups</option>
        <option value="closed">those that grant no lease</option>
        <option value="busy">those with an operation or a fault</option>
        <option value="held">those with a lease</option>
      </select>
    </label>
    <label>
      Sort{" "}
      <select name="sort">
        <option value="attention">what needs a look first</option>
        <option value="name">by name</option>
        <option value="expiry">what expires first</option>
        <option value="lag">the largest lag first</option>
      </select>
    </label>
    <label>
      <input type="checkbox" name="compact" /> Hide the sites of quiet groups
    </label>
    <p id="shown"></p>
  </form>
);

/** The numbers. */
export const Summary: FC<{ id: string; summary: PageSummary }> = ({ id, summary }) => {
  const { groups, closed, migrations, holds, operations } = summary;
  return (
    <dl id={id} class="numbers" data-order="1" data-closed={closed}>
      <Figure term="Groups" value={groups} />
      <Figure term="Grant no lease" value={closed} kind={closed > 0 ? "bad" : undefined} />
      <Figure term="Migrations" value={migrations} />
      <Figure term="Failover holds" value={holds} />
      <Figure term="Operations" value={operations} />
    </dl>
  );
};

const Figure: FC<{ term: string; value: number; kind?: string }> = ({ term, value, kind }) => (
  <div class={kind}>
    <dt>{term}</dt>
    <dd>{value}</dd>
  </div>
);

/** What this replica cannot see. */
export const Problems: FC<{ id: string; problems: readonly string[] }> = ({ id, problems }) => (
  <ul id={id} class="problems" data-order="2">{problems.map(item)}</ul>
);

/** Who saw what happened, and since when. */
export const Source: FC<{ source: PageSource }> = ({ source: { replica, sinceMs } }) => (
  <p id={SOURCE_ID} data-order="1">
    Seen by <strong>{replica}</strong> since it started at{" "}
    <time datetime={isoTime(sinceMs)}>{dayTime(sinceMs)} UTC</time>; the newest first. What was
    before, and what is older than 200 lines, is in the log and in the Events of the groups.
  </p>
);

/** A line of the time line. */
export const Change: FC<{ id: string; change: PageChange }> = ({ id, change }) => (
  <li id={id} data-order={placeChange(change).order} class={change.kind}>
    <time datetime={isoTime(change.atMs)}>{clockTime(change.atMs)}</time>{" "}
    <strong class="kind">{change.kind}</strong> <span class="where">{change.group}</span>{" "}
    {change.text}
  </li>
);

function isoTime(ms: number): string {
  return Temporal.Instant.fromEpochMilliseconds(Math.floor(ms)).toString({
    smallestUnit: "second",
  });
}

function clockTime(ms: number): string {
  return isoTime(ms).slice(11, 19);
}

function dayTime(ms: number): string {
  return isoTime(ms).slice(0, 19).replace("T", " ");
}
