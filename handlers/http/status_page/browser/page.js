/**
 * Keeps the status page as new as the cluster. The server draws; this puts what it sent where it belongs, counts the time,
 * and sorts.
 *
 * @module
 */

import { byWish, isWanted, newsInWords, pauseAfter, span } from "./rules.js";

/** Nothing from the server for so long, in milliseconds: the connection is dead. Twice its beat, and a little. */
const SILENCE_MS = 25_000;
/** How long the page may be busy at once, in milliseconds; nobody waits for a page that is not seen. */
const BUSY_MS = { seen: 8, hidden: 200 };
/** How often groups are chosen and sorted anew at most, in milliseconds. */
const ARRANGE_MS = 1_000;
/** How often something is said to a screen reader at most, in milliseconds. */
const NEWS_MS = 10_000;
/** The most lines of the time line. */
const MOST_CHANGES = 200;
/** From so many groups on, the sites of quiet ones are hidden until somebody wants them. */
const MANY_GROUPS = 30;

/**
 * A message of the server: a part that is new, one that is gone, all that a part has, or how new the page is by now.
 *
 * @typedef {object} Message
 * @property {number} sequence Counts the server's changes.
 * @property {string} [epoch] Which process sends. Only with how new the page is.
 * @property {number} [at] The server's time, in milliseconds since 1970. With it.
 * @property {string} [id] Of the part.
 * @property {string} [into] The id of what it is in.
 * @property {string} [html] The part; gone without it.
 * @property {string[]} [keep] The ids of all that `into` has.
 */

/**
 * What of the browser's trusted types is used.
 *
 * @typedef {{ createHTML(text: string): string }} Policy
 * @typedef {{ trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } }} TrustedTypes
 */

/** @type {typeof globalThis & TrustedTypes} */
const { trustedTypes } = globalThis;
/** The one place where text becomes HTML. What the server drew is escaped. */
const policy = trustedTypes?.createPolicy("holdfast", { createHTML: (text) => text });

const root = document.documentElement;
const groups = byId("groups");
const changes = byId("changes");
const controls = byId("controls");
const settings = {
  find: control("find", HTMLInputElement),
  show: control("show", HTMLSelectElement),
  sort: control("sort", HTMLSelectElement),
  compact: control("compact", HTMLInputElement),
};

/** What of the server's messages is not on the page yet, by part: only the newest of each counts. */
const waiting = /** @type {Map<string, Message>} */ (new Map());
/** With which sequence a group was drawn whole: what is older and came later belongs to a group of that name before it. */
const drawnWith = /** @type {WeakMap<Element, number>} */ (new WeakMap());
/** @type {WeakMap<Element, import("./rules.js").Facts>} */
const factsOf = new WeakMap();

let epoch = root.dataset.epoch ?? "";
let sequence = Number(root.dataset.sequence);
/** Server time minus this page's own clock, which nobody sets. */
let offsetMs = Number(root.dataset.at) - performance.now();
let failures = 0;
let drawPlanned = false;
let arrangePlanned = false;
/** @type {string[]} */
let untold = [];
let newsPlanned = false;

start();

function start() {
  const wished = new URLSearchParams(location.search);
  settings.find.value = wished.get("find") ?? "";
  choose(settings.show, wished.get("show"));
  choose(settings.sort, wished.get("sort"));
  settings.compact.checked = wished.has("compact")
    ? wished.get("compact") === "1"
    : groups.childElementCount >= MANY_GROUPS;
  controls.addEventListener("input", () => {
    remember();
    arrange();
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("visibilitychange", () => planDraw());
  arrange();
  tick();
  setInterval(tick, 1_000);
  connect();
}

// What the server says.

function connect() {
  const url = new URL("ws/page", document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = `?has=${epoch}.${sequence}.${newestChange()}`;
  const socket = new WebSocket(url);
  let heardAt = performance.now();
  let opened = false;
  const watchdog = setInterval(() => {
    if (performance.now() - heardAt > SILENCE_MS) lose();
  }, 1_000);
  const lose = () => {
    clearInterval(watchdog);
    socket.onmessage = socket.onclose = null;
    socket.close();
    if (opened || failures === 0) tellConnection(false);
    setTimeout(connect, pauseAfter(failures, Math.random()));
    failures++;
  };
  socket.onclose = lose;
  socket.onmessage = ({ data }) => {
    heardAt = performance.now();
    if (!opened) tellConnection(true);
    opened = true;
    failures = 0;
    /** @type {Message} */
    const message = JSON.parse(data);
    const key = message.id ?? message.into ?? "";
    // How new the page is by now is true only behind all that came before it.
    if (key === "") waiting.delete(key);
    waiting.set(key, message);
    planDraw();
  };
}

/** @param {boolean} live */
function tellConnection(live) {
  const element = byId("connection");
  const now = new Date(performance.now() + offsetMs).toISOString().slice(11, 19);
  element.dataset.state = live ? "live" : "lost";
  element.textContent = live
    ? "Live: this page follows the cluster."
    : `Connection lost at ${now} UTC. What is shown is from then; it is tried again without an end.`;
}

function newestChange() {
  return Number(changes.firstElementChild?.id.split(":")[1] ?? 0);
}

// What becomes of it on the page.

function planDraw() {
  if (drawPlanned || waiting.size === 0) return;
  drawPlanned = true;
  // A page that is not seen gets no frames.
  if (document.hidden) setTimeout(draw, 250);
  else requestAnimationFrame(draw);
}

function draw() {
  drawPlanned = false;
  const untilMs = performance.now() + (document.hidden ? BUSY_MS.hidden : BUSY_MS.seen);
  for (const [key, message] of waiting) {
    waiting.delete(key);
    apply(message);
    if (performance.now() > untilMs) break;
  }
  planDraw();
}

/** @param {Message} message */
function apply(message) {
  const { id, into, html, keep } = message;
  if (keep !== undefined) {
    const kept = new Set(keep);
    for (const part of [...byId(into ?? "").children]) if (!kept.has(part.id)) part.remove();
    planArrange();
  } else if (id === undefined) {
    keepTime(message);
  } else if (html === undefined) {
    const part = document.getElementById(id);
    touch(part);
    part?.remove();
  } else {
    put(id, document.getElementById(into ?? ""), html, message.sequence);
  }
}

/** @param {Message} message */
function keepTime(message) {
  epoch = message.epoch ?? epoch;
  sequence = message.sequence;
  const foundMs = (message.at ?? 0) - performance.now();
  // A message takes its time, so the greatest difference is the truest, unless the clock was set.
  if (foundMs > offsetMs || offsetMs - foundMs > 5_000) offsetMs = foundMs;
}

/**
 * @param {string} id
 * @param {HTMLElement | null} container
 * @param {string} html
 * @param {number} drawn
 */
function put(id, container, html, drawn) {
  if (container === null) return;
  const group = container.closest("article");
  if (group !== null && (drawnWith.get(group) ?? 0) > drawn) return;
  const fresh = parse(html);
  if (fresh === null) return;
  const old = document.getElementById(id);
  const part = old === null ? fresh : renew(old, fresh);
  if (old === null) part.classList.add("new");
  place(part, container);
  if (container === groups) drawnWith.set(part, drawn);
  touch(part);
  count(part);
  if (container === changes) tellChange(part);
  if (id === "summary") tellTitle(part);
}

/** @param {string} html @returns {HTMLElement | null} */
function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = policy?.createHTML(html) ?? html;
  const part = template.content.firstElementChild;
  return part instanceof HTMLElement ? document.adoptNode(part) : null;
}

/**
 * Makes an element as another one is, and touches only what differs.
 *
 * @param {HTMLElement} old
 * @param {HTMLElement} fresh
 * @returns {HTMLElement} The one that is on the page now.
 */
function renew(old, fresh) {
  if (!isAlike(old, fresh)) {
    old.replaceWith(fresh);
    return fresh;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  let child = fresh.firstChild;
  let before = old.firstChild;
  while (child !== null && before !== null) {
    // Either may be at another place afterwards.
    const [nextChild, nextBefore] = [child.nextSibling, before.nextSibling];
    if (before instanceof HTMLElement && child instanceof HTMLElement) renew(before, child);
    else if (before.nodeValue !== child.nodeValue) before.nodeValue = child.nodeValue;
    child = nextChild ?? null;
    before = nextBefore ?? null;
  }
  return old;
}

/** @param {HTMLElement} a @param {HTMLElement} b */
function isAlike(a, b) {
  if (a.id !== b.id || a.nodeName !== b.nodeName) return false;
  let one = a.firstChild;
  let other = b.firstChild;
  while (one !== null && other !== null && one.nodeName === other.nodeName) {
    one = one.nextSibling;
    other = other.nextSibling;
  }
  return one === null && other === null;
}

/** @param {HTMLElement} part @param {HTMLElement} container */
function place(part, container) {
  // Groups are sorted by what their reader wants.
  if (container === groups) {
    if (part.parentElement !== groups) groups.append(part);
    return;
  }
  const order = part.dataset.order ?? "";
  const next =
    [...container.children].find((other) =>
      other !== part && other instanceof HTMLElement && (other.dataset.order ?? "") > order
    ) ?? null;
  if (part.parentElement !== container || part.nextElementSibling !== next) {
    container.insertBefore(part, next);
  }
  if (container === changes) {
    while (container.childElementCount > MOST_CHANGES) container.lastElementChild?.remove();
  }
}

/** @param {Element} part */
function tellTitle(part) {
  const closed = part.getAttribute("data-closed") ?? "0";
  document.title = closed === "0" ? "Holdfast status" : `(${closed}) Holdfast status`;
}

// What passes by itself.

function tick() {
  count(document);
}

/** @param {ParentNode} within */
function count(within) {
  const nowMs = performance.now() + offsetMs;
  for (const element of within.querySelectorAll("time[data-until], time[data-since]")) {
    if (!(element instanceof HTMLElement)) continue;
    const { until, since } = element.dataset;
    const leftMs = Number(until) - nowMs;
    const text = since === undefined ? span(leftMs) : span(nowMs - Number(since));
    const [node] = element.childNodes;
    if (node !== undefined && node.nodeValue !== text) node.nodeValue = text;
    if (until !== undefined) element.classList.toggle("soon", leftMs < 10_000);
  }
}

// What its reader wants to see.

/** Notes that a group is not what it was. @param {Element | null} part */
function touch(part) {
  const group = part?.closest("article") ?? null;
  if (group !== null) factsOf.delete(group);
  if (group !== null) planArrange();
}

function planArrange() {
  if (arrangePlanned) return;
  arrangePlanned = true;
  setTimeout(arrange, ARRANGE_MS);
}

function arrange() {
  arrangePlanned = false;
  const wish = { find: settings.find.value.trim(), show: settings.show.value };
  const order = byWish(settings.sort.value);
  const all = [...groups.children].map((group) => ({ group, facts: readFacts(group) }));
  let shown = 0;
  for (const { group, facts } of all) {
    const wanted = isWanted(facts, wish);
    if (wanted) shown++;
    if (group instanceof HTMLElement && group.hidden === wanted) group.hidden = !wanted;
  }
  let at = groups.firstElementChild;
  for (const { group } of all.sort((a, b) => order(a.facts, b.facts))) {
    if (group === at) at = at.nextElementSibling;
    else groups.insertBefore(group, at);
  }
  // One group alone is neither looked for nor sorted.
  controls.hidden = all.length < 2;
  groups.classList.toggle("compact", settings.compact.checked);
  const text = `${shown} of ${all.length} groups shown`;
  if (byId("shown").textContent !== text) byId("shown").textContent = text;
}

/** @param {Element} group */
function readFacts(group) {
  const known = factsOf.get(group);
  if (known !== undefined) return known;
  const head = group.querySelector("header");
  const { key = "", attention = "", expires, lag } = head?.dataset ?? {};
  const facts = {
    key,
    attention,
    expires: expires === undefined ? Infinity : Number(expires),
    lag: lag === undefined ? -1 : Number(lag),
    // Read only when somebody looks for a word: it is the text of all of the group.
    get words() {
      return (group.textContent ?? "").toLowerCase();
    },
  };
  factsOf.set(group, facts);
  return facts;
}

/** Keeps the wishes in the address, so that it can be handed on. */
function remember() {
  const { find, show, sort, compact } = settings;
  const wishes = new URLSearchParams({
    find: find.value,
    show: show.value,
    sort: sort.value,
    compact: compact.checked ? "1" : "0",
  });
  history.replaceState(null, "", `?${wishes}`);
}

// What is said to a screen reader: not each change, and never a countdown.

/** @param {Element} line */
function tellChange(line) {
  // All but the time, which stands first.
  const [, ...parts] = line.childNodes;
  untold.push(parts.map((part) => part.textContent).join("").replace(/\s+/g, " ").trim());
  if (newsPlanned) return;
  newsPlanned = true;
  setTimeout(tellNews, 1_000);
}

function tellNews() {
  byId("news").textContent = newsInWords(untold);
  untold = [];
  setTimeout(() => {
    if (untold.length > 0) tellNews();
    else newsPlanned = false;
  }, NEWS_MS);
}

/** @param {string} id */
function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`Cannot keep the page as it has no ${id}`);
  return element;
}

/**
 * @template {HTMLElement} T
 * @param {string} name
 * @param {new () => T} kind
 * @returns {T}
 */
function control(name, kind) {
  const element = controls.querySelector(`[name=${name}]`);
  if (element instanceof kind) return element;
  throw new Error(`Cannot serve the controls as there is no ${name}`);
}

/** @param {HTMLSelectElement} select @param {string | null} value */
function choose(select, value) {
  if ([...select.options].some((option) => option.value === value)) select.value = value ?? "";
}
