// Rates, upstreams, throttled principals, the last denials, and what happens.

import { get } from "./api.js";
import { brief, byId, clock, count, h, nothing, bytes, pill, plural, rate, s, setText, sync, who } from "./dom.js";
import * as denials from "./denials.js";
import * as routes from "./routes.js";
import { hour, refresh } from "./hour.js";

export const SECONDS = 2;
// Of a tile's curve: ten minutes.
const KEPT = 120;
const SHOWN = 6;
const LIMITS = 8;
const QUANTITIES = { messages: "messages", bytes: "in", deliver_messages: "deliveries", deliver_bytes: "out" };

const TILES = [
  { id: "published", title: "published per second", of: (now, then, passed) => (now.published.messages - then.published.messages) / passed, from: ["published"], show: rate },
  { id: "delivered", title: "delivered per second", of: (now, then, passed) => (now.delivered.messages - then.delivered.messages) / passed, from: ["delivered"], show: rate },
  { id: "bytes", title: "bodies per second", of: (now, then, passed) => (now.published.bytes + now.delivered.bytes - then.published.bytes - then.delivered.bytes) / passed, from: ["published_bytes", "delivered_bytes"], show: bytes },
  { id: "refused", title: "refused per second", of: (now, then, passed) => (now.refused - then.refused) / passed, from: ["refused"], show: rate, kind: "bad" },
  { id: "sessions", title: "sessions", of: (now) => now.sessions, from: ["sessions"], show: count, beside: (now) => `of ${brief(now.connections.most)}` },
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
  const [{ upstreams }, limits, throttled] = await Promise.all([
    get("/upstreams"),
    get("/limits", { limit: LIMITS }),
    get("/sessions", { flow: "throttled", limit: 1000 }),
  ]);
  drawUpstreams(upstreams);
  drawLimits(limits);
  drawThrottled(throttled);
  drawNews();
  await routes.ask();
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
        h("strong"), h("small", { class: "hint" }),
        s("svg", { viewBox: "0 0 120 32", preserveAspectRatio: "none", "aria-hidden": "true" },
          s("path", { class: "area" }), s("path", { class: "line" }))),
    (node, tile) => {
      const rows = hour();
      const columns = tile.from.map((name) => rows[name].slice(-KEPT));
      // Of a gap nothing is known, and the curve is not the place to say so.
      const values = columns[0].map((_, at) => columns.reduce((sum, column) => sum + (column[at] ?? 0), 0));
      const now = latest.get(tile.id) ?? values.at(-1);
      setText(node.querySelector("strong"), now === undefined ? "…" : tile.show(now));
      if (tile.beside) setText(node.querySelector("small"), tile.beside(last));
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
  const rows = upstreams.flatMap((upstream) =>
    [...new Set(upstream.endpoints.map((endpoint) => endpoint.address))].map((address, at) => ({
      upstream,
      address,
      isFirst: at === 0,
      // As each worker sees it.
      seen: upstream.endpoints.filter((endpoint) => endpoint.address === address),
    })),
  );
  if (!rows.length) return nothing(list, "There are none.");
  sync(
    list,
    rows,
    ({ upstream, address }) => `${upstream.name}\n${address}`,
    ({ upstream, address }) =>
      h("li", {}, pill("", ""), h("span", { class: "grow" }, h("b", {}, upstream.name), " ", h("code", {}, address)), h("span", { class: "side" })),
    (node, { upstream, isFirst, seen }) => {
      // What the worst off says, and how many do.
      const [rank, kind, text] = seen.map((endpoint) => health(endpoint, upstream)).sort(([one], [other]) => other - one)[0];
      const those = seen.filter((endpoint) => health(endpoint, upstream)[0] === rank).length;
      node.firstChild.className = `pill ${kind}`;
      setText(node.firstChild, text);
      const facts = isFirst ? [plural(upstream.sessions, "session")] : [];
      if (upstream.version) facts.push(upstream.version);
      const failures = seen.reduce((sum, endpoint) => sum + endpoint.failures, 0);
      if (failures) facts.push(plural(failures, "failure"));
      if (those < seen.length) facts.push(`as ${those} of ${seen.length} workers see it`);
      setText(node.lastChild, facts.join(" · "));
    },
  );
}

// How bad it is, its colour and its word.
function health(endpoint, upstream) {
  if (!endpoint.up) return [3, "bad", "down"];
  if (endpoint.ejected_for > 0) return [2, "wait", `out for ${Math.ceil(endpoint.ejected_for)} s`];
  if (!endpoint.available) return [1, "wait", "not used"];
  return [0, "good", upstream.checked ? "up" : "in use"];
}

function drawThrottled(answer) {
  const list = byId("throttled");
  const principals = new Map();
  for (const session of answer.sessions) {
    const key = JSON.stringify([session.user, session.vhost]);
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

function drawLimits({ limits, left_out: more }) {
  const list = byId("limits");
  if (!limits.length) return nothing(list, "No open session has a limit of messages or bytes.");
  sync(
    list,
    [...limits, ...(more ? [{ more }] : [])],
    (one) => (one.more ? "more" : JSON.stringify([one.policy, one.limit, one.key, one.quantity, one.enforced])),
    (one) =>
      one.more
        ? h("li", { class: "empty" })
        : h("li", {}, pill("", ""), h("span", { class: "grow" }, h("b", {}, one.key.map((part) => part || "–").join(" · ") || "all"), " ", h("span", { class: "rule" }, `${one.policy}/${one.limit}`)),
            h("span", { class: "side" }), h("meter", { min: 0, max: 1, "aria-label": `${one.policy}/${one.limit}: how much of it is used` })),
    (node, one) => {
      if (one.more) return setText(node, `${count(one.more)} more, all in GET /limits`);
      const show = one.quantity.endsWith("bytes") ? bytes : rate;
      node.firstChild.className = `pill ${one.waiting ? "wait" : one.enforced ? "good" : ""}`;
      setText(node.firstChild, one.waiting ? `${count(one.waiting)} wait` : one.enforced ? "open" : "shadow");
      setText(node.children[2], `${show(one.rate)} of ${show(one.most)} ${QUANTITIES[one.quantity]}/s`);
      return (node.lastChild.value = Math.min(1, one.rate / one.most));
    },
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
  if (name === "upstream" || name === "policies" || name === "route") again();
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
