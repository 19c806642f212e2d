// The picture of the graph: four columns, each box beside what it is joined to. Its numbers change in place.

import { brief, count, exchangeName, rate, s, setText, visible, who } from "./dom.js";

const COLUMNS = ["publishers", "exchanges", "queues", "consumers"];
// On a phone it is narrower.
export const isNarrow = matchMedia("(max-width: 680px)");
const sizes = () => (isNarrow.matches ? { wide: 140, gap: 56, letters: 16 } : { wide: 190, gap: 110, letters: 23 });
const BETWEEN = 14;
const TOP = 46;

export const label = (node) => (node.kind === "principal" ? who(node.name) : node.kind === "exchange" ? exchangeName(node.name) : node.name);
export const keyOf = (edge) => JSON.stringify([edge.kind, edge.vhost, edge.source, edge.target]);
// What passes on an edge, and how that is said.
export const passes = (edge, isRate) => (isRate ? edge.rate ?? 0 : edge.messages);
const amount = (number, isRate) => (isRate ? `${rate(number)}/s` : brief(number));

function columnOf(node, isSource) {
  if (node.kind === "exchange") return 1;
  if (node.kind === "queue") return 2;
  return isSource ? 0 : 3;
}

function laidOut(edges) {
  const { wide, gap } = sizes();
  const severalVhosts = new Set(edges.map((edge) => edge.vhost)).size > 1;
  // With a line of its own for the number, and the virtual host where there are several.
  const isTall = severalVhosts || isNarrow.matches;
  const high = isTall ? 42 : 30;
  const row = high + BETWEEN;
  const boxes = new Map();
  const box = (vhost, node, isSource) => {
    const column = columnOf(node, isSource);
    const key = JSON.stringify([column, vhost, node.name]);
    if (!boxes.has(key)) boxes.set(key, { key, column, kind: node.kind, text: visible(label(node)), vhost: severalVhosts ? vhost : null, edges: [], at: 0 });
    return boxes.get(key);
  };
  const lines = edges.map((edge) => {
    const line = { edge, from: box(edge.vhost, edge.source, true), to: box(edge.vhost, edge.target, false) };
    line.from.edges.push(line);
    line.to.edges.push(line);
    return line;
  });
  const columns = COLUMNS.map((_, column) => [...boxes.values()].filter((one) => one.column === column).sort((one, other) => (one.key < other.key ? -1 : 1)));
  const place = () => columns.forEach((column) => column.forEach((one, at) => (one.at = at)));
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
    // Over the whole height, so that of many none is far from what it is joined to.
    const step = (most / column.length) * row;
    column.forEach((one, at) => {
      one.x = 16 + number * (wide + gap);
      one.y = TOP + (at + 0.5) * step - row / 2;
    });
  });
  return { boxes: [...boxes.values()], lines, width: 32 + 4 * wide + 3 * gap, height: TOP + most * row + 8, isTall, high };
}

// Names that are long often begin alike: both ends are shown.
const cut = (text, letters) => {
  const end = Math.floor((letters - 1) / 3);
  return text.length > letters ? `${text.slice(0, letters - 1 - end)}…${text.slice(text.length - end)}` : text;
};

const said = (edge, isRate) => {
  if (edge.kind === "denied") return `${label(edge.source)} to ${label(edge.target)}: ${count(edge.denied)} denied, last by ${edge.rule}`;
  const many = isRate ? (edge.rate === null ? "" : `${rate(edge.rate)} messages a second to `) : edge.messages ? `${count(edge.messages)} messages to ` : "";
  return `${label(edge.source)} ${edge.kind} ${many}${label(edge.target)}${edge.keys.length ? `; keys ${edge.keys.join(", ")}` : ""}${edge.upstream_users.length ? `; logged in as ${edge.upstream_users.join(", ")}` : ""}`;
};

export class Picture {
  constructor(edges) {
    Object.assign(this, laidOut(edges));
    const { wide, gap } = sizes();
    this.node = s("svg", { viewBox: `0 0 ${this.width} ${this.height}`, width: this.width, height: this.height, role: "group", "aria-label": "Publishers, exchanges, queues and consumers; arrow keys go from one to the next" });
    COLUMNS.forEach((title, number) => this.node.append(s("text", { class: "column", x: 16 + number * (wide + gap), y: 24 }, title)));
    for (const line of this.lines) {
      const forward = line.to.x > line.from.x;
      const [x, y] = [line.from.x + wide, line.from.y + this.high / 2];
      const [end, other] = [forward ? line.to.x : line.to.x + wide, line.to.y + this.high / 2];
      // What was denied is beside what passed.
      const aside = line.edge.kind === "denied" ? 7 : 0;
      const bend = forward ? (end - x) / 2 : 60;
      line.title = s("title");
      line.path = s("path", { d: `M${x} ${y + aside}C${x + bend} ${y + aside} ${forward ? end - bend : end + bend} ${other + aside} ${end} ${other + aside}` }, line.title);
      this.node.append(line.path);
    }
    for (const one of this.boxes) this.node.append(this.box(one));
    // The first that the Tab key comes to; arrows go on from there.
    this.stop(this.boxes.reduce((one, other) => (other.column < one.column || (other.column === one.column && other.at < one.at) ? other : one)));
    this.node.addEventListener("keydown", (event) => this.go(event));
  }

  stop(one) {
    this.stopped?.node.setAttribute("tabindex", -1);
    this.stopped = one;
    one.node.setAttribute("tabindex", 0);
  }

  // Up and down in a column, left and right to the box beside.
  go(event) {
    const [columns, rows] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    const from = this.boxes.find((one) => one.node === event.target);
    if (from === undefined || (!columns && !rows) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const there = columns
      ? this.boxes.filter((one) => (one.column - from.column) * columns > 0)
      : this.boxes.filter((one) => one.column === from.column && one.at === from.at + rows);
    const far = (one) => Math.abs(one.column - from.column) * 1e6 + Math.abs(one.y - from.y);
    if (!there.length) return;
    const to = there.reduce((one, other) => (far(other) < far(one) ? other : one));
    this.stop(to);
    to.node.focus();
  }

  box(one) {
    const { wide } = sizes();
    const light = (on) => () => {
      this.node.classList.toggle("lit", on);
      for (const line of one.edges) for (const node of [line.path, line.from.node, line.to.node]) node.classList.toggle("on", on);
    };
    one.title = s("title");
    one.name = s("text", { x: 0, y: 20 });
    // Whatever letters a name has, it ends with its box.
    one.room = s("svg", { x: one.x + 14, y: one.y, height: this.high }, one.name);
    one.total = s("text", { class: "total", x: one.x + wide - 10, y: one.y + (this.isTall ? 35 : 20), "text-anchor": "end" });
    one.node = s("g", { class: `node ${one.kind}`, tabindex: -1, role: "img", onfocus: light(true), onblur: light(false), onmouseenter: light(true), onmouseleave: light(false) },
      one.title,
      s("rect", { x: one.x, y: one.y, width: wide, height: this.high, rx: 7 }),
      s("rect", { class: "edge-mark", x: one.x, y: one.y + 6, width: 4, height: this.high - 12, rx: 2 }),
      one.room, one.total);
    if (one.vhost !== null) {
      const most = sizes().letters - 7;
      one.node.append(s("svg", { x: one.x + 14, y: one.y, width: 6.8 * most, height: this.high }, s("text", { class: "total", x: 0, y: 35 }, cut(visible(one.vhost), most))));
    }
    return one.node;
  }

  // The same edges with other numbers.
  renew(edges, isRate) {
    const now = new Map(edges.map((edge) => [keyOf(edge), edge]));
    for (const line of this.lines) line.edge = now.get(keyOf(line.edge));
    const top = Math.log1p(Math.max(1, ...edges.map((edge) => passes(edge, isRate))));
    for (const line of this.lines) {
      const many = passes(line.edge, isRate);
      line.path.setAttribute("class", `edge ${line.edge.kind === "denied" ? "denied" : many ? "" : "idle"}${line.path.classList.contains("on") ? " on" : ""}`);
      line.path.setAttribute("stroke-width", (1.2 + (4 * Math.log1p(many)) / top).toFixed(1));
      setText(line.title, said(line.edge, isRate));
    }
    const { letters, wide } = sizes();
    for (const one of this.boxes) {
      const mine = one.edges.filter((line) => line.edge.kind !== "denied" && (one.column === 3 || line.from === one));
      const total = mine.reduce((sum, line) => sum + passes(line.edge, isRate), 0);
      const denied = one.edges.reduce((sum, line) => sum + (line.edge.denied ?? 0), 0);
      one.node.classList.toggle("refused", denied > 0);
      setText(one.total, total ? amount(total, isRate) : "");
      const taken = total && !this.isTall ? (isRate ? 8 : 5) : 0;
      one.room.setAttribute("width", wide - 20 - taken * 7);
      setText(one.name, cut(visible(one.text), letters - taken));
      const words = `${one.kind} ${one.text}${one.vhost === null ? "" : ` in ${one.vhost}`}: ${one.edges.map((line) => said(line.edge, isRate)).join("; ")}`;
      setText(one.title, words);
      one.node.setAttribute("aria-label", words);
    }
  }
}
