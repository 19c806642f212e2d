// The last hour in plots: the same time and cursor in all of them.

import { byId, brief, bytes, clock, h, perSecond, seconds, setText, sync } from "./dom.js";
import { hour, refresh } from "./hour.js";
import { Plot } from "./plot.js";

export const SECONDS = 5;
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

const PLOTS = [
  { id: "messages", title: "Messages per second", show: perSecond, lines: [["published", "published", "accent"], ["delivered", "delivered", "principal"]] },
  { id: "bodies", title: "Bodies per second", show: bytes, unit: "bytes", lines: [["published_bytes", "in", "accent"], ["delivered_bytes", "out", "principal"]] },
  { id: "denials", title: "Denials per second", show: perSecond, lines: [["denied", "operations denied", "bad"], ["refused", "messages refused", "exchange"]] },
  { id: "limits", title: "Rate limits", show: perSecond, lines: [["throttled", "waits begun per second", "exchange"], ["waiting", "sessions waiting", "principal"]] },
  { id: "sessions", title: "Sessions", show: brief, unit: "count", lines: [["sessions", "open", "accent"]] },
  { id: "confirms", title: "Confirm latency", show: seconds, lines: [["confirm_p50", "p50", "accent"], ["confirm_p99", "p99", "bad"]] },
  { id: "added", title: "Latency added", show: seconds, lines: [["added_p50", "p50", "accent"], ["added_p99", "p99", "bad"]] },
  { id: "lag", title: "Event loop lag", show: seconds, lines: [["lag", "at most", "exchange"]] },
  { id: "buffered", title: "Waits to be sent", show: bytes, unit: "bytes", lines: [["buffered", "in buffers", "accent"]] },
  { id: "cpu", title: "CPU", show: perSecond, lines: [["cpu", "cores", "accent"]] },
  { id: "memory", title: "Memory", show: bytes, unit: "bytes", lines: [["memory", "resident", "accent"]] },
];

let minutes = 60;
// What was chosen by drawing over a plot; null: up to now.
let zoomed = null;
const plots = PLOTS.map((about) => new Plot(about, range, zoom));

function range() {
  if (zoomed) return zoomed;
  const until = hour()?.at.at(-1) ?? Date.now() / 1000;
  return [until - minutes * 60, until];
}

function zoom(from, to) {
  zoomed = [from, to];
  note();
  draw();
}

// The address says what is shown, for whoever gets it, and for a reload.
function note() {
  const query = new URLSearchParams({ minutes });
  if (zoomed) query.set("from", Math.floor(zoomed[0])), query.set("to", Math.ceil(zoomed[1]));
  history.replaceState(null, "", `#history?${query}`);
}

export function enter(query) {
  const asked = Number(query.get("minutes"));
  const form = byId("history-form").elements;
  if ([...form.minutes].some((one) => Number(one.value) === asked)) minutes = asked;
  form.minutes.value = String(minutes);
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  zoomed = from > 0 && to > from ? [from, to] : null;
  draw();
}

export async function ask() {
  await refresh();
  draw();
}

function draw() {
  const rows = hour();
  byId("history-whole").disabled = zoomed === null;
  if (rows === null) return;
  const [from, to] = range();
  setText(byId("history-count"), rows.at.length ? `${clock(from)} to ${clock(to)}` : "nothing yet: the first numbers come after ten seconds");
  sync(byId("plots"), plots, (plot) => plot.about.id, (plot) => plot.node, (_, plot) => plot.set(rows));
  drawTable(rows, from, to);
}

function drawTable(rows, from, to) {
  const shown = rows.at.map((at) => at >= from && at <= to);
  const body = PLOTS.flatMap(({ title, show, lines }) =>
    lines.map(([name, words]) => {
      const values = rows[name].filter((value, at) => shown[at] && value !== null);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const numbers = values.length ? [values.at(-1), mean, Math.max(...values)] : [null, null, null];
      return h("tr", {}, h("th", { scope: "row" }, `${title}: ${words}`), ...numbers.map((one) => h("td", { class: "n" }, one === null ? "–" : show(one))));
    }),
  );
  byId("history-table").replaceChildren(
    h("thead", {}, h("tr", {}, ...["Series", "Last", "Mean", "Most"].map((name, at) => h("th", { scope: "col", class: at ? "n" : null }, name)))),
    h("tbody", {}, ...body),
  );
}

// -- the mouse, the keyboard, and the dark --------------------------------------------------------

byId("history-form").addEventListener("change", (event) => {
  minutes = Number(event.target.value);
  zoomed = null;
  note();
  draw();
});
byId("history-whole").addEventListener("click", () => {
  zoomed = null;
  note();
  draw();
});

byId("plots").addEventListener("keydown", (event) => {
  const plot = plots.find((one) => one.node === event.target);
  const rows = hour();
  if (!plot || !rows?.at.length || event.ctrlKey || event.altKey || event.metaKey) return;
  const [from, to] = range();
  const first = rows.at.findIndex((at) => at >= from);
  const last = rows.at.findLastIndex((at) => at <= to);
  if (first < 0 || last < first) return;
  let row = null;
  if (event.key in STEPS) row = (plot.at ?? last - STEPS[event.key]) + STEPS[event.key] * (event.shiftKey ? 12 : 1);
  else if (event.key === "Home") row = first;
  else if (event.key === "End") row = last;
  else if (event.key !== "Escape") return;
  event.preventDefault();
  if (row !== null) row = Math.min(last, Math.max(first, row));
  for (const one of plots) one.point(row);
});
// What the plot that has the focus reads is said, and no other.
byId("plots").addEventListener("focusin", (event) => event.target.querySelector?.(".legend")?.setAttribute("aria-live", "polite"));
byId("plots").addEventListener("focusout", (event) => event.target.querySelector?.(".legend")?.removeAttribute("aria-live"));

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((plot) => plot.redraw()));
