/**
 * A group on the status page: the one drawing of it, for the whole page and for each part that changes.
 *
 * @module
 */

import type { FC } from "hono/jsx";
import type { PageGroup, PageLease, PageSite } from "../../../lib/status_page/model.ts";
import {
  groupIds,
  type Placed,
  placeLeases,
  placeSites,
} from "../../../lib/status_page/difference.ts";
import { hasEnded, revocationInWords } from "../../../lib/status_page/changes.ts";
import { type GroupHead, headOf, notesOf } from "../../../lib/status_page/overview.ts";
import { expiresAtMs } from "../../../lib/records/record.ts";
import { shown, span } from "../../../lib/status/words.ts";

/** A whole group. @param nowMs Lease time, in milliseconds since 1970: ages and countdowns begin there. */
export const Group: FC<{ group: PageGroup; nowMs: number }> = ({ group, nowMs }) => {
  const ids = groupIds(group);
  const leaseRow = ({ id, order, part }: Placed) =>
    part.part === "lease" && <Lease id={id} order={order} lease={part.lease} nowMs={nowMs} />;
  return (
    <article id={ids.group} class="group" aria-labelledby={`name:${group.key}`}>
      <Head id={ids.head} head={headOf(group)} />
      <Notes id={ids.notes} texts={notesOf(group)} />
      <div class="tables" data-order="2">
        <table class="leases">
          <caption>Leases</caption>
          <thead>
            <tr>
              <th scope="col">Operation</th>
              <th scope="col">For</th>
              <th scope="col">Time left</th>
            </tr>
          </thead>
          <tbody id={ids.leases}>
            {placeLeases(group).map(leaseRow)}
          </tbody>
        </table>
        <p class="none">No lease is held.</p>
        <table class="sites">
          <caption>Sites</caption>
          <thead>
            <tr>
              <th scope="col">Site</th>
              <th scope="col">State</th>
              <th scope="col">Replication</th>
              <th scope="col">Lag</th>
            </tr>
          </thead>
          <tbody id={ids.sites}>
            {placeSites(group).map(siteRow)}
          </tbody>
        </table>
        <p class="none">The operator tells of no site.</p>
      </div>
    </article>
  );
};

function siteRow({ id, order, part }: Placed) {
  return part.part === "site" && <Site id={id} order={order} site={part.site} />;
}

/** A sentence in a list. */
export function item(text: string) {
  return <li>{text}</li>;
}

/** What stands above a group's tables. */
export const Head: FC<{ id: string; head: GroupHead }> = ({ id, head }) => {
  const { key, namespace, name, activeSite, topologyGeneration, lagSeconds } = head;
  return (
    <header
      id={id}
      data-order="0"
      data-key={key}
      data-attention={head.attention}
      data-expires={head.nextExpiryMs ?? undefined}
      data-lag={lagSeconds ?? undefined}
    >
      <h3 id={`name:${key}`}>
        <span class="namespace">{namespace === "" ? "" : `${namespace}/`}</span>
        <wbr />
        {name}
      </h3>
      <State head={head} />
      <dl class="facts">
        <Fact term="Active site" value={activeSite === "" ? "none" : shown(activeSite)} />
        <Fact term="Generation" value={topologyGeneration ?? "unknown"} />
        <Fact term="Lag" value={lagSeconds === null ? "unknown" : span(lagSeconds)} />
      </dl>
    </header>
  );
};

const State: FC<{ head: GroupHead }> = ({ head: { readable, stable, closedReason, why } }) => {
  if (closedReason === "") {
    return (
      <p class="state good">
        <Mark text="✓" />
        <strong>Stable</strong>, grants leases
      </p>
    );
  }
  const word = !readable ? "Unreadable" : stable ? "Stable" : "Not stable";
  return (
    <p class="state bad">
      <Mark text="✕" />
      <strong>{word}</strong>, grants no lease: {shown(why)} <code>{shown(closedReason)}</code>
    </p>
  );
};

/** A sign beside words that say the same. */
const Mark: FC<{ text: string }> = ({ text }) => <span class="mark" aria-hidden="true">{text}
</span>;

const Fact: FC<{ term: string; value: string | number }> = ({ term, value }) => (
  <div>
    <dt>{term}</dt>
    <dd class={value === "unknown" ? "unknown" : undefined}>{value}</dd>
  </div>
);

/** What stands below a group's head. */
export const Notes: FC<{ id: string; texts: readonly string[] }> = ({ id, texts }) => (
  <ul id={id} class="notes" data-order="1">{texts.map(item)}</ul>
);

/** A row of the table of sites. */
export const Site: FC<{ id: string; order: string; site: PageSite }> = ({ id, order, site }) => (
  <tr id={id} data-order={order} class={site.active ? "active" : undefined}>
    <th scope="row">
      {shown(site.name)}
      {site.active && <span class="tag">active</span>}
    </th>
    <td>
      {site.state === "" ? "unknown" : shown(site.state)}
      {site.trouble !== "" && <span class="trouble">{shown(site.trouble)}</span>}
    </td>
    <td>{site.active ? "is the source" : replication(site.replicating)}</td>
    <td class="number">
      {site.active ? "–" : site.lagSeconds === null ? "unknown" : span(site.lagSeconds)}
    </td>
  </tr>
);

/** A row of the table of leases. */
export const Lease: FC<{ id: string; order: string; lease: PageLease; nowMs: number }> = (
  { id, order, lease, nowMs },
) => {
  const { kind, operationId, instance, holder } = lease;
  return (
    <tr id={id} data-order={order} class={hasEnded(lease) ? "ended" : undefined}>
      <th scope="row">
        <span class="kind">{kind}</span>
        <code>{shown(operationId)}</code>
      </th>
      <td>
        {shown(instance)}
        {holder !== null && (
          <span class="who">
            by {shown(holder.namespace)}/<wbr />
            {shown(holder.serviceAccount)}
          </span>
        )}
      </td>
      <td class="number left">
        <TimeLeft lease={lease} nowMs={nowMs} />
      </td>
    </tr>
  );
};

const TimeLeft: FC<{ lease: PageLease; nowMs: number }> = ({ lease, nowMs }) => {
  const { state, stored, reason, expiresAt, createdAt } = lease;
  if (state !== "active") {
    return (
      <span class={`end ${state}`}>
        <Mark text={state === "revoked" ? "✕" : "·"} />
        <strong>{state}</strong>
        {state === "revoked" && <span class="why">{revocationInWords(reason)}</span>}
        {!stored && <span class="why">not stored yet</span>}
      </span>
    );
  }
  const untilMs = expiresAtMs(lease);
  const sinceMs = Date.parse(createdAt ?? "");
  return (
    <>
      <time datetime={expiresAt} data-until={untilMs}>{spanMs(untilMs - nowMs)}</time>
      {!Number.isNaN(sinceMs) && (
        <span class="age">
          held for{" "}
          <time datetime={createdAt ?? ""} data-since={sinceMs}>{spanMs(nowMs - sinceMs)}</time>
        </span>
      )}
    </>
  );
};

function replication(replicating: boolean | null): string {
  if (replicating === null) return "unknown";
  return replicating ? "replicates" : "does not replicate";
}

function spanMs(ms: number): string {
  return span(Math.max(0, Math.floor(ms / 1_000)));
}
