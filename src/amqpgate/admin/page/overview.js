// Rates, upstreams, throttled principals, the last denials, and what happens.

import { get } from "./api.js";
import { byId, clock, count, h, nothing, bytes, pill, plural, rate, s, setText, sync, who } from "./dom.js";
import * as denials from "./denials.js";
import { hour, refresh } from "./hour.js";

export const SECONDS = 2;
// Of a tile's curve: ten minutes.
const KEPT = 120;
const SHOWN = 6;

const TILES = [
  { id: "published", title: "published per second", of: (now, then, passed) => (now.published.messages - then.published.messages) / passed, from: ["published"], show: rate },
  { id: "delivered", title: "delivered per second", of: (now, then, passed) => (now.delivered.messages - then.delivered.messages) / passed, from: ["delivered"], show: rate },
  { id: "bytes", title: "bodies per second", of: (now, then, passed) => (now.published.bytes + now.delivered.bytes - then.published.bytes - then.delivered.bytes) / passed, from: ["published_bytes", "delivered_bytes"], show: bytes },
  { id: "refused", title: "refused per second", of: (now, then, passed) => (now.refused - then.refused) / passed, from: ["refused"], show: rate, kind: "bad" },
  { id: "sessions", title: "sessions", of: (now) => now.sessions, from: ["sessions"], show: count },
  { id: "buffered", title: "waits to be sent", of: (now) => now.buffered.client + now.buffered.upstream, from: ["buffered"], show: bytes },
];

let last = null;
// What each tile says, by its id.
const latest = new Map();
const news = [];

// The state of the gateway as the corner shows it.
export function state() {
  if (last === null) return ["wait", "connecting"];
  return last.ready ? ["good", "ready"] : ["wait", "not ready"];
}

// The numbers, for the tiles and the corner.
export async function look() {
  const now = await get("/overview");
  const then = last;
  last = now;
  setText(byId("version"), now.version);
  if (then === null) return;
  const passed = now.at - then.at;
  if (passed <= 0) return;
  for (const tile of TILES) {
    // Of a worker that has ended nothing is counted any more.
    latest.set(tile.id, Math.max(0, tile.of(now, then, passed)));
  }
}

export async function ask() {
  await Promise.all([look(), refresh()]);
  drawTiles();
  const [{ upstreams }, throttled] = await Promise.all([
    get("/upstreams"),
    get("/sessions", { flow: "throttled", limit: 1000 }),
  ]);
  drawUpstreams(upstreams);
  drawThrottled(throttled);
  drawNews();
  await denials.ask();
  denials.drawLast(byId("last-denials"), SHOWN);
}

function drawTiles() {
  sync(
    byId("tiles"),
    TILES,
    (tile) => tile.id,
    (tile) =>
      h("li", { class: `tile ${tile.kind ?? ""}`, id: `tile-${tile.id}` },
        h("span", { class: "title" }, tile.title),
        h("strong"),
        s("svg", { viewBox: "0 0 120 32", preserveAspectRatio: "none", "aria-hidden": "true" },
          s("path", { class: "area" }), s("path", { class: "line" }))),
    (node, tile) => {
      const rows = hour();
      const columns = tile.from.map((name) => rows[name].slice(-KEPT));
      // Of a gap nothing is known, and the curve is not the place to say so.
      const values = columns[0].map((_, at) => columns.reduce((sum, column) => sum + (column[at] ?? 0), 0));
      const now = latest.get(tile.id) ?? values.at(-1);
      setText(node.querySelector("strong"), now === undefined ? "…" : tile.show(now));
      node.classList.toggle("alive", values.some((value) => value > 0));
      const top = Math.max(...values, 1e-9);
      const points = values.map((value, at) => `${(120 - (values.length - 1 - at) * (120 / (KEPT - 1))).toFixed(1)},${(30 - (value / top) * 27).toFixed(1)}`);
      if (points.length < 2) return;
      node.querySelector(".line").setAttribute("d", `M${points.join("L")}`);
      node.querySelector(".area").setAttribute("d", `M${points[0].split(",")[0]},32L${points.join("L")}L120,32Z`);
    },
  );
}

function drawUpstreams(upstreams) {
  const list = byId("upstreams");
  const endpoints = upstreams.flatMap((upstream) => upstream.endpoints.map((endpoint) => ({ upstream, endpoint })));
  if (!endpoints.length) return nothing(list, "There are none.");
  sync(
    list,
    endpoints,
    ({ upstream, endpoint }) => `${upstream.name}\n${endpoint.worker}\n${endpoint.address}`,
    ({ upstream, endpoint }) =>
      h("li", {}, pill("", ""), h("span", { class: "grow" }, h("b", {}, upstream.name), " ", h("code", {}, endpoint.address)), h("span", { class: "side" })),
    (node, { upstream, endpoint }) => {
      const [kind, text] = health(endpoint, upstream);
      node.firstChild.className = `pill ${kind}`;
      setText(node.firstChild, text);
      const facts = upstream.endpoints[0] === endpoint ? [plural(upstream.sessions, "session")] : [];
      if (upstream.version) facts.push(upstream.version);
      if (endpoint.failures) facts.push(plural(endpoint.failures, "failure"));
      if (upstream.endpoints.some((other) => other.worker !== endpoint.worker)) facts.push(`worker ${endpoint.worker}`);
      setText(node.lastChild, facts.join(" · "));
    },
  );
}

function health(endpoint, upstream) {
  if (!endpoint.up) return ["bad", "down"];
  if (endpoint.ejected_for > 0) return ["wait", `out for ${Math.ceil(endpoint.ejected_for)} s`];
  if (!endpoint.available) return ["wait", "not used"];
  return upstream.checked ? ["good", "up"] : ["good", "in use"];
}

function drawThrottled(answer) {
  const list = byId("throttled");
  const principals = new Map();
  for (const session of answer.sessions) {
    const key = `${session.user}\n${session.vhost}`;
    const one = principals.get(key) ?? { key, user: session.user, vhost: session.vhost, sessions: 0, published: 0 };
    one.sessions += 1;
    one.published += session.published_rate ?? 0;
    principals.set(key, one);
  }
  if (!principals.size) return nothing(list, "Nobody waits for a limit.");
  const found = [...principals.values()].sort((one, other) => other.sessions - one.sessions).slice(0, 12);
  sync(
    list,
    found,
    (one) => one.key,
    (one) =>
      h("li", {}, pill("wait", "throttled"),
        h("span", { class: "grow" }, h("b", {}, who(one.user)), " ", h("code", {}, one.vhost)), h("span", { class: "side" })),
    (node, one) => setText(node.lastChild, `${plural(one.sessions, "session")} · ${rate(one.published)}/s`),
  );
}

// -- what happens -------------------------------------------------------------------------------

const STORIES = {
  "session.opened": (event) => ["good", "opened", [who(event.user), event.vhost, event.client]],
  "session.closed": (event) => [event.error ? "bad" : "", "closed", [who(event.user), event.vhost, event.error ?? event.why]],
  upstream: (event) => [event.up ? "good" : "bad", event.up ? "up" : "down", [event.upstream, event.endpoint, event.why]],
  policies: (event) => [event.error ? "bad" : "good", "policies", [event.error ?? `in force: ${event.digest.slice(0, 12)}`]],
  route: (event) => ["wait", event.paused ? "paused" : "resumed", [`route ${event.route}`]],
  gateway: (event) => ["wait", event.state, []],
  worker: (event) => [event.state === "gone" ? "bad" : "good", event.state, [`worker ${event.worker}`]],
  dropped: (event) => ["wait", "missed", [`${count(event.count)} events: there were too many at once`]],
};

let number = 0;
export function heard(name, event, again) {
  if (!(name in STORIES)) return;
  const [kind, verb, parts] = STORIES[name](event);
  news.unshift({ number: ++number, at: event.at ?? Date.now() / 1000, kind, verb, parts: parts.filter(Boolean) });
  news.length = Math.min(news.length, 12);
  // Many at once are drawn at the next look.
  if (name === "upstream" || name === "policies") again();
}

function drawNews() {
  const list = byId("happening");
  if (!news.length) return nothing(list, "Nothing yet.");
  sync(
    list,
    news.slice(0, SHOWN + 2),
    (one) => one.number,
    (one) =>
      h("li", {}, pill(one.kind, one.verb),
        h("span", { class: "grow" }, ...one.parts.flatMap((part, at) => [at ? " " : "", h(at ? "span" : "b", {}, part)])),
        h("time", { class: "side" }, clock(one.at))),
  );
}
