// One plot of the last hour: axes, a cursor that all plots share, and what it reads there as text.

import { clock, h, setText } from "./dom.js";

const HEIGHT = 170;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const powers = Array.from({ length: 50 }, (_, power) => 2 ** power);
const whole = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();
const STEPS = { bytes: powers, count: whole };

const hours = (seconds, withSeconds) => clock(seconds).slice(0, withSeconds ? 8 : 5);

export class Plot {
  // `about` has a title, what shows a value, its unit, and lines: [name, words, colour].
  constructor(about, range, zoom) {
    this.about = about;
    this.values = about.lines.map(() => h("b"));
    this.when = h("time", { class: "side" });
    this.holder = h("div", { class: "holder" });
    this.legend = h("ul", { class: "legend" },
      ...about.lines.map(([, words, colour], at) =>
        h("li", {}, h("i", { class: `swatch ${colour}`, "aria-hidden": "true" }), `${words} `, this.values[at])));
    this.node = h("div", { class: "card plot", tabindex: "0", role: "group", "aria-label": `${about.title}, a plot; arrow keys read it`, id: `plot-${about.id}` },
      h("div", { class: "caption" }, h("h3", {}, about.title), this.when), this.legend, this.holder);
    this.workers = [];
    this.data = [[], ...about.lines.map(() => [])];
    this.drawn = null;
    this.range = range;
    this.zoom = zoom;
    new ResizeObserver(() => this.fit()).observe(this.holder);
  }

  options() {
    const { about } = this;
    const soft = () => css("--soft");
    const grid = { stroke: () => css("--line"), width: 1 };
    const axis = { stroke: soft, grid, ticks: { ...grid, size: 4 }, font: "12px system-ui, sans-serif" };
    return {
      width: this.holder.clientWidth,
      height: HEIGHT,
      padding: [8, 24, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: "hour" }, y: false, drag: { x: true, y: false, setScale: false } },
      scales: {
        x: { time: true, range: () => this.range() },
        y: { range: (_, least, most) => [0, most > 0 ? most * 1.08 : 1] },
      },
      axes: [
        { ...axis, size: 30, space: 64, values: (_, times) => times.map((at) => hours(at, times.length > 1 && times[1] - times[0] < 60)) },
        { ...axis, size: 62, incrs: STEPS[about.unit], values: (_, values) => values.map((value) => about.show(value)) },
      ],
      series: [
        {},
        ...about.lines.map(([name, , colour], at) => ({
          label: name,
          stroke: () => css(`--${colour}`),
          fill: at === 0 && about.lines.length === 1 ? () => css(`--${colour}-soft`) : undefined,
          width: 1.5,
          points: { show: false },
          // A row between two gaps would be no line.
          spanGaps: false,
        })),
      ],
      hooks: {
        setCursor: [() => this.read()],
        setSelect: [
          (drawn) => {
            const { left, width } = drawn.select;
            if (width < 4) return;
            const from = drawn.posToVal(left, "x");
            const to = drawn.posToVal(left + width, "x");
            drawn.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            this.zoom(from, to);
          },
        ],
      },
    };
  }

  // These rows, from now on.
  set(rows) {
    this.workers = rows.workers;
    this.data = [rows.at, ...this.about.lines.map(([name]) => rows[name])];
    if (this.drawn) this.drawn.setData(this.data);
    else this.fit();
    this.read();
  }

  fit() {
    const width = this.holder.clientWidth;
    if (!width || !this.data[0].length) return;
    if (!this.drawn) this.drawn = new globalThis.uPlot(this.options(), this.data, this.holder);
    else if (this.drawn.width !== width) this.drawn.setSize({ width, height: HEIGHT });
  }

  // In other colours.
  redraw() {
    this.drawn?.redraw(false, true);
  }

  // The row that the cursor is at, or null.
  get at() {
    return this.drawn?.cursor.left >= 0 ? (this.drawn.cursor.idx ?? null) : null;
  }

  point(row) {
    if (!this.drawn) return;
    const left = row === null ? -10 : this.drawn.valToPos(this.data[0][row], "x");
    this.drawn.setCursor({ left, top: row === null ? -10 : 10 });
  }

  // What is there as text: at the cursor, or last.
  read() {
    const times = this.data[0];
    const row = this.at ?? times.length - 1;
    const parts = this.at === null || row < 0 ? [] : [clock(times[row])];
    // The numbers are those of who was there.
    const there = this.workers[row];
    const all = Math.max(1, ...this.workers);
    if (parts.length && there < all) parts.push(there ? `${there} of ${all} workers` : "nothing known");
    setText(this.when, parts.join(" · "));
    this.about.lines.forEach((_, at) => {
      const value = this.data[at + 1][row];
      setText(this.values[at], value === null || value === undefined ? "–" : this.about.show(value));
    });
  }
}
