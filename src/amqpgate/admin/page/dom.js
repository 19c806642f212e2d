// Elements, and text for people. Names come from clients: everything becomes a text node, nothing is parsed.

const SVG = "http://www.w3.org/2000/svg";

// What would not be seen, or would turn other letters round: controls, marks of direction, halves of letters.
const SHORT = { "\n": "\\n", "\t": "\\t" };
const UNSEEN = /[\0-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\p{Cs}]/gu;
export const visible = (text) => text.replace(UNSEEN, (one) => SHORT[one] ?? `\\u${one.charCodeAt().toString(16).padStart(4, "0")}`);

function grown(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : visible(String(child)))));
  return node;
}

export const h = (tag, attributes = {}, ...children) => grown(document.createElement(tag), attributes, children);
export const s = (tag, attributes = {}, ...children) => grown(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);

// Lists change in place: what is still there keeps its element, and so the keyboard's focus.
export function sync(parent, items, keyOf, make, update = () => {}) {
  const before = parent.synced ?? new Map();
  const after = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const node = before.get(key) ?? make(item);
    update(node, item);
    after.set(key, node);
  }
  for (const [key, node] of before) if (after.get(key) !== node) node.remove();
  let place = parent.firstChild;
  for (const node of after.values()) {
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
  parent.synced = after;
}

// One line in the place of a list that is empty.
export function nothing(parent, words) {
  sync(parent, [words], (text) => text, (text) => h("li", { class: "empty" }, text));
}

export function setText(node, text) {
  const shown = visible(text);
  if (node.textContent !== shown) node.textContent = shown;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (number) => (number === null || number === undefined ? "–" : whole.format(number));
export const plural = (number, word, many = `${word}s`) => `${count(number)} ${number === 1 ? word : many}`;
export const brief = (number) => (Math.abs(number) < 10000 ? whole.format(number) : short.format(number));

export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return "–";
  if (perSecond === 0) return "0";
  if (perSecond < 0.001) return "<0.001";
  if (perSecond < 0.05) return perSecond.toPrecision(1);
  return perSecond < 10 ? perSecond.toFixed(1) : brief(perSecond);
}

export function bytes(number) {
  if (number === null || number === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  while (number >= 1024 && power < units.length - 1) {
    number /= 1024;
    power += 1;
  }
  return `${number < 10 && power ? number.toFixed(1) : whole.format(number)} ${units[power]}`;
}

const few = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

// Of an axis: no digit that only rounding would hide.
export const perSecond = (number) => few.format(number);

export function seconds(number) {
  if (number === 0) return "0";
  if (number < 0.001) return `${few.format(number * 1e6)} µs`;
  return number < 1 ? `${few.format(number * 1000)} ms` : `${few.format(number)} s`;
}

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

export function ago(seconds) {
  if (!seconds) return "never";
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  if (passed < 60) return `${Math.floor(passed)} s ago`;
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  return `${Math.floor(passed / 86400)} d ago`;
}

// A principal as people say it.
export const who = (user) => user ?? "(user not known)";
export const exchangeName = (name) => (name === "" ? "(default)" : name);

// The arguments of an operation, of those that it has.
export function about(decision) {
  const parts = [];
  if (decision.exchange !== null) parts.push(["exchange", exchangeName(decision.exchange)]);
  if (decision.destination !== null) parts.push(["to", decision.destination]);
  if (decision.queue !== null) parts.push(["queue", decision.queue || "(server-named)"]);
  if (decision.routing_key) parts.push(["key", decision.routing_key]);
  return parts;
}

export const chip = (name, value) => h("span", { class: "chip" }, h("i", {}, name), " ", h("b", {}, value));
export const pill = (kind, text) => h("span", { class: `pill ${kind}` }, text);
