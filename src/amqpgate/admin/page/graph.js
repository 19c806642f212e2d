// Who sends what to whom, as this gateway has seen it: publishers, exchanges, queues, consumers; and what was denied.

import { get } from "./api.js";
import { byId, clock, count, h, nothing, pill, plural, setText, sync } from "./dom.js";
import { chosenVhost, onChosen, show } from "./drawing.js";
import { keyOf } from "./picture.js";

export const SECONDS = 5;

let answer = null;
// When the counts were read that rates are made of, and these by edge.
let before = null;

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
  show(answer);
  setText(byId("graph-honest"), honest());
  drawBrokers();
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

// `#graph?text=orders`, from a search.
export function enter(query) {
  const field = byId("graph-form").elements.text;
  if (!query.size) return;
  field.value = query.get("text") ?? "";
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

onChosen(() => answer && drawBrokers());
byId("graph-again").addEventListener("click", () => ask().catch(() => {}));

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
  const chosen = chosenVhost();
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
