// Who sends what to whom, as this gateway has seen it: publishers, exchanges, queues, consumers; and what was denied.

import { get } from "./api.js";
import { byId, clock, count, h, bytes, nothing, pill, plural, rate, setText, sync } from "./dom.js";
import { isNarrow, keyOf, label, passes, Picture } from "./picture.js";

export const SECONDS = 5;

// Boxes in the picture.
const MOST = 300;
const NEAREST = 0.25;
const FARTHEST = 4;

const form = byId("graph-form");
const place = byId("picture");
let answer = null;
// When the counts were read that rates are made of, and these by edge.
let before = null;
let picture = null;
let drawn = "";
let scale = 1;

export async function ask() {
  const [graph, { decisions }] = await Promise.all([get("/graph"), get("/decisions", { kind: "denied", limit: 500 })]);
  const at = performance.now() / 1000;
  const passed = before === null ? 0 : at - before.at;
  // Of an edge that was not there nothing had passed, unless it was left out.
  const then = (edge) => before.counts.get(keyOf(edge)) ?? (before.isWhole ? 0 : edge.messages);
  for (const edge of graph.edges) edge.rate = passed >= 1 ? Math.max(0, edge.messages - then(edge)) / passed : (before?.rates.get(keyOf(edge)) ?? null);
  if (before === null || passed >= 1) {
    const by = (of) => new Map(graph.edges.map((edge) => [keyOf(edge), of(edge)]));
    before = { at, isWhole: graph.left_out === 0, counts: by((edge) => edge.messages), rates: by((edge) => edge.rate) };
  }
  answer = { ...graph, edges: [...denied(decisions), ...graph.edges] };
  const vhosts = [...new Set(answer.edges.map((edge) => edge.vhost))].sort();
  const select = form.elements.vhost;
  if (JSON.stringify(vhosts) !== JSON.stringify([...select.options].slice(1).map((option) => option.value))) {
    const chosen = select.value;
    select.replaceChildren(select.options[0], ...vhosts.map((name) => h("option", { value: name }, name)));
    select.value = vhosts.includes(chosen) ? chosen : "";
  }
  draw();
}

// An edge for whom was denied what, of the denials that the gateway still has; the newest comes first.
function denied(decisions) {
  const found = new Map();
  for (const one of decisions) {
    const who = { kind: "principal", name: one.user };
    const what = one.exchange ? { kind: "exchange", name: one.exchange } : { kind: "queue", name: one.queue ?? one.destination ?? one.routing_key };
    if (what.name === null) continue;
    const [source, target] = /^basic\.(consume|get)$/.test(one.operation) ? [what, who] : [who, what];
    const edge = { kind: "denied", vhost: one.vhost, source, target, messages: 0, bytes: 0, rate: null, keys: [], upstream_users: [], denied: 0, rule: one.policy === null ? "no rule" : `${one.policy}/${one.rule}` };
    const known = found.get(keyOf(edge)) ?? edge;
    known.denied += 1;
    if (one.routing_key && known.keys.length < 20 && !known.keys.includes(one.routing_key)) known.keys.push(one.routing_key);
    found.set(keyOf(edge), known);
  }
  return [...found.values()];
}

form.addEventListener("input", draw);
isNarrow.addEventListener("change", () => {
  drawn = "";
  draw();
});
form.addEventListener("submit", (event) => event.preventDefault());
byId("graph-again").addEventListener("click", () => ask().catch(() => {}));

// Those with most messages whose boxes are not too many.
function few(wanted) {
  const boxes = new Set();
  return wanted.filter((edge) => {
    const ends = [edge.source, edge.target].map((node) => JSON.stringify([edge.vhost, node]));
    if (new Set([...boxes, ...ends]).size > MOST) return false;
    for (const end of ends) boxes.add(end);
    return true;
  });
}

function draw() {
  if (answer === null) return;
  const isRate = form.elements.numbers.value === "rates";
  const text = form.elements.text.value.toLowerCase();
  const wanted = answer.edges.filter(
    (edge) =>
      (!form.elements.vhost.value || edge.vhost === form.elements.vhost.value) &&
      (!text || `${label(edge.source)}\n${label(edge.target)}\n${edge.keys.join("\n")}`.toLowerCase().includes(text)),
  );
  const edges = few(wanted);
  const left = wanted.length - edges.length + answer.left_out;
  setText(byId("graph-count"), wanted.length ? `${count(edges.length)} edges${left ? `, ${count(left)} with fewer messages left out` : ""}` : "");
  setText(byId("graph-honest"), honest());
  // What has not changed is left alone, and the keyboard's focus with it.
  const state = JSON.stringify(edges.map(keyOf).sort());
  if (state !== drawn) {
    drawn = state;
    picture = edges.length ? new Picture(edges) : null;
    place.replaceChildren(picture?.node ?? h("p", { class: "empty" }, "Nothing has been seen yet."));
    zoom(scale);
  }
  picture?.renew(edges, isRate);
  drawBrokers();
  listed([...edges].sort((one, other) => passes(other, isRate) - passes(one, isRate)));
}

function honest() {
  const { unseen, over } = answer;
  const words =
    `What has passed through this gateway on sessions that are open, on ${plural(over.sessions, "session")} that ended since ${clock(over.since)}, and bindings that were made through it. ` +
    "Queues and bindings that the broker has removed by itself are still here, and those made elsewhere are not. " +
    "Red is what was denied, of the last 500 denials.";
  if (!unseen.sessions) return words;
  return `${words} Of ${count(unseen.sessions)} sessions it is not known to which exchanges they publish: no policy needs to look.`;
}

// Where sessions go: brokers by virtual host, what is shared there, and what is copied to where.
function drawBrokers() {
  const list = byId("graph-brokers");
  const chosen = form.elements.vhost.value;
  const { brokers, pools, mirrors } = answer;
  const rows = [
    ...brokers.map((one) => [one.vhost, one.upstream, `${plural(one.sessions, "session")} · ${count(one.published)} published · ${count(one.delivered)} delivered`]),
    ...pools.map((one) => [one.vhost, one.upstream, `${plural(one.sessions, "session")} of ${one.user} on ${plural(one.connections, "shared connection")}`, "shared"]),
    ...mirrors.map((one) => ["", one.upstreams.join(", "), `route ${one.route} is copied to ${one.mirror}`, "mirror"]),
  ].filter(([vhost]) => !chosen || !vhost || vhost === chosen);
  if (!rows.length) return nothing(list, "No session is open.");
  return sync(
    list,
    rows.map(([vhost, upstream, words, kind], at) => ({ vhost, upstream, words, kind, at })),
    (row) => JSON.stringify([row.at, row.kind, row.vhost, row.upstream]),
    (row) =>
      h("li", {}, pill(row.kind ? "wait" : "good", row.kind ?? "upstream"),
        h("span", { class: "grow" }, h("b", {}, row.upstream), " ", row.vhost ? h("code", {}, row.vhost) : null), h("span", { class: "side" })),
    (node, row) => setText(node.lastChild, row.words),
  );
}

// -- closer and farther --------------------------------------------------------------------------

// So that what is at this point of the window stays there.
function zoom(to, x = place.clientWidth / 2, y = place.clientHeight / 2) {
  const by = Math.min(FARTHEST, Math.max(NEAREST, to)) / scale;
  scale *= by;
  if (picture === null) return;
  const [left, top] = [(place.scrollLeft + x) * by - x, (place.scrollTop + y) * by - y];
  picture.node.setAttribute("width", picture.width * scale);
  picture.node.setAttribute("height", picture.height * scale);
  if (by !== 1) place.scrollTo(left, top);
}

const whole = () => picture && zoom(Math.min(1, (place.clientWidth - 24) / picture.width, (place.clientHeight - 24) / picture.height));

byId("graph-closer").addEventListener("click", () => zoom(scale * 1.25));
byId("graph-farther").addEventListener("click", () => zoom(scale / 1.25));
byId("graph-whole").addEventListener("click", whole);
place.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "+") zoom(scale * 1.25);
  else if (event.key === "-") zoom(scale / 1.25);
  else if (event.key === "0") whole();
});
place.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  const { left, top } = place.getBoundingClientRect();
  zoom(scale * Math.exp(-event.deltaY / 400), event.clientX - left, event.clientY - top);
}, { passive: false });
// The mouse takes hold of it; fingers scroll anyway.
place.addEventListener("pointerdown", (event) => {
  if (event.pointerType !== "mouse" || event.button !== 0) return;
  const from = [place.scrollLeft + event.clientX, place.scrollTop + event.clientY];
  const move = (moved) => place.scrollTo(from[0] - moved.clientX, from[1] - moved.clientY);
  const over = new AbortController();
  addEventListener("pointermove", move, { signal: over.signal });
  addEventListener("pointerup", () => over.abort(), { signal: over.signal });
});

function listed(edges) {
  byId("graph-table").replaceChildren(
    h("thead", {}, h("tr", {}, ...["From", "", "To", "Vhost", "Keys", "Per second", "Messages", "Bodies", "Denied"].map((title, at) => h("th", { scope: "col", class: at > 4 ? "n" : null }, title)))),
    h("tbody", {}, ...edges.map((edge) =>
      h("tr", {},
        h("td", {}, `${edge.source.kind} `, h("b", {}, label(edge.source))), h("td", {}, edge.kind), h("td", {}, `${edge.target.kind} `, h("b", {}, label(edge.target))),
        h("td", {}, h("code", {}, edge.vhost)), h("td", {}, edge.keys.join(", ")), h("td", { class: "n" }, rate(edge.rate)), h("td", { class: "n" }, count(edge.messages)), h("td", { class: "n" }, edge.bytes ? bytes(edge.bytes) : "–"), h("td", { class: "n" }, edge.denied ? count(edge.denied) : "–")))),
  );
}
