// Who sends what to whom, as this gateway has seen it: publishers, exchanges, queues, consumers.

import { get } from "./api.js";
import { brief, byId, count, exchangeName, h, bytes, s, setText, who } from "./dom.js";

export const SECONDS = 10;

const COLUMNS = ["publishers", "exchanges", "queues", "consumers"];
// On a phone it is narrower.
const isNarrow = matchMedia("(max-width: 680px)");
const HEIGHT = 30;
const sizes = () => (isNarrow.matches ? { wide: 140, gap: 56, letters: 16 } : { wide: 190, gap: 110, letters: 23 });
const ROW = 44;
const TOP = 46;
const MOST = 80;

const form = byId("graph-form");
let answer = null;
let drawn = "";

export async function ask() {
  answer = await get("/graph");
  const vhosts = [...new Set(answer.edges.map((edge) => edge.vhost))].sort();
  const select = form.elements.vhost;
  if (vhosts.join("\n") !== [...select.options].slice(1).map((option) => option.value).join("\n")) {
    const chosen = select.value;
    select.replaceChildren(select.options[0], ...vhosts.map((name) => h("option", { value: name }, name)));
    select.value = vhosts.includes(chosen) ? chosen : "";
  }
  draw();
}

form.addEventListener("input", draw);
isNarrow.addEventListener("change", () => {
  drawn = "";
  draw();
});
form.addEventListener("submit", (event) => event.preventDefault());
byId("graph-again").addEventListener("click", () => ask().catch(() => {}));

const label = (node) => (node.kind === "principal" ? who(node.name) : node.kind === "exchange" ? exchangeName(node.name) : node.name);

function draw() {
  if (answer === null) return;
  const text = form.elements.text.value.toLowerCase();
  const wanted = answer.edges.filter(
    (edge) =>
      (!form.elements.vhost.value || edge.vhost === form.elements.vhost.value) &&
      (!text || `${label(edge.source)}\n${label(edge.target)}\n${edge.keys.join("\n")}`.toLowerCase().includes(text)),
  );
  const edges = wanted.slice(0, MOST);
  const left = wanted.length - edges.length + answer.left_out;
  setText(byId("graph-count"), wanted.length ? `${count(edges.length)} edges${left ? `, ${count(left)} with fewer messages left out` : ""}` : "");
  setText(byId("graph-honest"), honest());
  // What has not changed is left alone, and the keyboard's focus with it.
  const state = JSON.stringify(edges);
  if (state === drawn) return;
  drawn = state;
  byId("picture").replaceChildren(edges.length ? picture(edges) : h("p", { class: "empty" }, "Nothing has been seen yet."));
  listed(edges);
}

function honest() {
  const { unseen } = answer;
  const words =
    "What has passed through this gateway on sessions that are open, and bindings that were made through it. " +
    "Queues and bindings that the broker has removed by itself are still here, and those made elsewhere are not.";
  if (!unseen.sessions) return words;
  return `${words} Of ${count(unseen.sessions)} sessions it is not known to which exchanges they publish: no policy needs to look.`;
}

// -- the picture --------------------------------------------------------------------------------

function columnOf(node, isSource) {
  if (node.kind === "exchange") return 1;
  if (node.kind === "queue") return 2;
  return isSource ? 0 : 3;
}

function laidOut(edges) {
  const { wide, gap } = sizes();
  const severalVhosts = new Set(edges.map((edge) => edge.vhost)).size > 1;
  const boxes = new Map();
  const box = (vhost, node, isSource) => {
    const column = columnOf(node, isSource);
    const key = `${column}\n${vhost}\n${node.name}`;
    if (!boxes.has(key)) boxes.set(key, { key, column, kind: node.kind, text: label(node), vhost: severalVhosts ? vhost : null, edges: [], at: 0 });
    return boxes.get(key);
  };
  const lines = edges.map((edge) => {
    const line = { edge, from: box(edge.vhost, edge.source, true), to: box(edge.vhost, edge.target, false) };
    line.from.edges.push(line);
    line.to.edges.push(line);
    return line;
  });
  const columns = COLUMNS.map((_, column) => [...boxes.values()].filter((one) => one.column === column).sort((one, other) => (one.key < other.key ? -1 : 1)));
  const place = () => columns.forEach((column) => column.forEach((one, row) => (one.at = row)));
  place();
  // Each beside what it is joined to: few lines cross then.
  const middle = (one) => {
    const others = one.edges.map((line) => (line.from === one ? line.to : line.from)).filter((other) => other !== one);
    return others.length ? others.reduce((sum, other) => sum + other.at / Math.max(1, columns[other.column].length), 0) / others.length : 0;
  };
  for (let pass = 0; pass < 4; pass += 1) {
    for (const column of pass % 2 ? [...columns].reverse() : columns) {
      const wish = new Map(column.map((one) => [one, middle(one)]));
      column.sort((one, other) => wish.get(one) - wish.get(other));
      place();
    }
  }
  const most = Math.max(...columns.map((column) => column.length));
  columns.forEach((column, number) => {
    const start = TOP + ((most - column.length) * ROW) / 2;
    column.forEach((one, row) => {
      one.x = 16 + number * (wide + gap);
      one.y = start + row * ROW;
    });
  });
  return { boxes: [...boxes.values()], lines, width: 32 + 4 * wide + 3 * gap, height: TOP + most * ROW + 8 };
}

const said = (edge) =>
  `${label(edge.source)} ${edge.kind} ${edge.messages ? `${count(edge.messages)} messages to ` : ""}${label(edge.target)}${edge.keys.length ? `; keys ${edge.keys.join(", ")}` : ""}${edge.upstream_users.length ? `; logged in as ${edge.upstream_users.join(", ")}` : ""}`;

function picture(edges) {
  const { boxes, lines, width, height } = laidOut(edges);
  const { wide, gap } = sizes();
  const top = Math.log1p(Math.max(1, ...edges.map((edge) => edge.messages)));
  const drawing = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Publishers, exchanges, queues and consumers" });
  COLUMNS.forEach((title, number) => drawing.append(s("text", { class: "column", x: 16 + number * (wide + gap), y: 24 }, title)));
  for (const line of lines) {
    const forward = line.to.x > line.from.x;
    const [x, y] = [line.from.x + wide, line.from.y + HEIGHT / 2];
    const [end, other] = [forward ? line.to.x : line.to.x + wide, line.to.y + HEIGHT / 2];
    const bend = forward ? (end - x) / 2 : 60;
    line.path = s("path", {
      class: `edge ${line.edge.messages ? "" : "idle"}`,
      d: `M${x} ${y}C${x + bend} ${y} ${forward ? end - bend : end + bend} ${other} ${end} ${other}`,
      "stroke-width": (1.2 + (4 * Math.log1p(line.edge.messages)) / top).toFixed(1),
    }, s("title", {}, said(line.edge)));
    drawing.append(line.path);
  }
  for (const one of boxes) drawing.append(drawnBox(one, drawing));
  return drawing;
}

function drawnBox(one, drawing) {
  const total = one.edges.reduce((sum, line) => sum + (one.column === 3 || line.from === one ? line.edge.messages : 0), 0);
  const { wide, letters } = sizes();
  const most = total ? letters - 5 : letters;
  const shown = one.text.length > most ? `${one.text.slice(0, most - 1)}…` : one.text;
  const words = `${one.kind} ${one.text}${one.vhost === null ? "" : ` in ${one.vhost}`}: ${one.edges.map((line) => said(line.edge)).join("; ")}`;
  const light = (on) => () => {
    drawing.classList.toggle("lit", on);
    for (const line of one.edges) for (const node of [line.path, line.from.node, line.to.node]) node.classList.toggle("on", on);
  };
  one.node = s("g", { class: `node ${one.kind}`, tabindex: 0, role: "img", "aria-label": words, onfocus: light(true), onblur: light(false), onmouseenter: light(true), onmouseleave: light(false) },
    s("title", {}, words),
    s("rect", { x: one.x, y: one.y, width: wide, height: HEIGHT, rx: 7 }),
    s("rect", { class: "edge-mark", x: one.x, y: one.y + 6, width: 4, height: HEIGHT - 12, rx: 2 }),
    s("text", { x: one.x + 14, y: one.y + 20 }, shown),
    total ? s("text", { class: "total", x: one.x + wide - 10, y: one.y + 20, "text-anchor": "end" }, brief(total)) : null);
  return one.node;
}

function listed(edges) {
  byId("graph-table").replaceChildren(
    h("thead", {}, h("tr", {}, ...["From", "", "To", "Vhost", "Keys", "Messages", "Bodies"].map((title, at) => h("th", { scope: "col", class: at > 4 ? "n" : null }, title)))),
    h("tbody", {}, ...edges.map((edge) =>
      h("tr", {},
        h("td", {}, `${edge.source.kind} `, h("b", {}, label(edge.source))), h("td", {}, edge.kind), h("td", {}, `${edge.target.kind} `, h("b", {}, label(edge.target))),
        h("td", {}, h("code", {}, edge.vhost)), h("td", {}, edge.keys.join(", ")), h("td", { class: "n" }, count(edge.messages)), h("td", { class: "n" }, edge.bytes ? bytes(edge.bytes) : "–")))),
  );
}
