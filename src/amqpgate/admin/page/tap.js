// A tap: operations while they pass. It begins after a question, and ends by itself.

import { question } from "./actions.js";
import { lines, Refused } from "./api.js";
import { about, byId, bytes, chip, clock, count, h, pill, setText, sync, who } from "./dom.js";

// Nothing is asked for again.
export const SECONDS = 3600;
export const ask = async () => {};

// Rows that are kept, the last first; and milliseconds between two looks of the reader's.
const KEPT = 200;
const DRAWN = 200;

const form = byId("tap-form");
const [begin, end] = [byId("tap-begin"), byId("tap-end")];
let running = null;
let number = 0;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const { match, every, seconds } = form.elements;
  const given = { match: match.value.trim(), every: every.value, seconds: seconds.value };
  question({
    title: "Tap what passes?",
    does: "Tap",
    words: `For ${given.seconds} s, ${given.match ? `operations with ${given.match}` : "all operations"} of all sessions are shown here. Each that is shown takes the gateway some 20 µs; no client notices, and who taps is in the log.`,
    tell: () => {},
    act: async () => {
      run(given);
    },
  });
});
end.addEventListener("click", () => running?.abort());

async function run(given) {
  const control = new AbortController();
  running = control;
  begin.disabled = true;
  end.disabled = false;
  wrong(null);
  const rows = [];
  const counts = new Map();
  let timer = null;
  const draw = () => {
    timer = null;
    drawAll(rows, counts, control.signal.aborted);
  };
  sync(byId("taps"), [], () => 0, () => null);
  setText(byId("tap-count"), "waits for what matches");
  try {
    for await (const told of lines("/tap", given, control.signal)) {
      if (told.event === "operation") {
        rows.unshift({ ...told, number: ++number });
        rows.length = Math.min(rows.length, KEPT);
      } else if (told.event === "counts") counts.set(told.worker, told);
      else if (told.event === "end") counts.clear(), counts.set("all", told);
      timer ??= setTimeout(draw, DRAWN);
    }
  } catch (error) {
    if (error.name !== "AbortError") wrong(error instanceof Refused ? error.message : "The tap broke off: the gateway does not answer.");
  } finally {
    clearTimeout(timer);
    running = null;
    draw();
    begin.disabled = false;
    end.disabled = true;
  }
}

function wrong(text) {
  const place = byId("tap-wrong");
  place.hidden = text === null;
  setText(place, text ?? "");
}

function drawAll(rows, counts, isCut) {
  const sum = (name) => [...counts.values()].reduce((all, one) => all + one[name], 0);
  const shown = rows.length < KEPT ? "" : `, the last ${KEPT} of them here`;
  const state = running ? "" : isCut ? " · stopped" : " · over";
  setText(byId("tap-count"), `${count(sum("matched"))} matched, ${count(sum("shown"))} told${shown}${state}`);
  sync(byId("taps"), rows, (row) => row.number, rowOf);
}

// Which one has decided, where one has.
function rule(row) {
  if (row.policy) return h("span", { class: "rule" }, `${row.policy}/${row.rule}`);
  return row.verdict === "deny" ? h("span", { class: "rule" }, "no rule allows it") : null;
}

const rowOf = (row) =>
  h("li", { class: "card" },
    h("p", { class: "line" },
      pill(row.verdict === "deny" ? "bad" : "good", row.verdict === "deny" ? "denied" : "passes"),
      h("span", { class: "op" }, row.operation),
      rule(row),
      h("time", { class: "side" }, clock(row.time))),
    h("p", {},
      h("b", {}, who(row.user)), " ", h("code", {}, row.vhost), " ", h("code", { class: "hint" }, row.client ?? ""), " ",
      ...about({ exchange: null, destination: null, queue: null, routing_key: null, ...row }).flatMap(([name, value]) => [chip(name, value), " "]),
      row.body_size === undefined || row.body_size === null ? null : h("span", { class: "hint" }, bytes(row.body_size))));
