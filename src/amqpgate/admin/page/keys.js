// Keys of the whole page: `/` searches, `?` shows the keys, `g` and a letter goes to a view.

import { byId } from "./dom.js";
import { find } from "./find.js";

const VIEWS = { o: "overview", h: "history", s: "sessions", d: "denials", p: "policies", g: "graph", t: "tap" };
// Milliseconds between `g` and its letter.
const SOON = 1500;

let since = -Infinity;
let go = () => {};

// `show` is given the name of a view.
export function onKeys(show) {
  go = show;
}

addEventListener("keydown", (event) => {
  const { key, target } = event;
  // Who types, types; and some have other plans for single keys (WCAG 2.1.4).
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || !byId("keys-on").checked) return;
  if (target.matches?.("input:not([type=radio], [type=checkbox]), select, textarea") || document.querySelector("dialog[open]")) return;
  const goes = event.timeStamp - since < SOON && key in VIEWS;
  since = key === "g" && !goes ? event.timeStamp : -Infinity;
  if (goes) go(VIEWS[key]);
  else if (key === "?") byId("keys").showModal();
  else if (key === "/") search(event);
});

function search(event) {
  const field = document.querySelector("[data-view]:not([hidden]) .filters :is(input[type=search], input:not([type]))");
  event.preventDefault();
  if (field) field.select();
  else find();
}

byId("keys-open").addEventListener("click", () => byId("keys").showModal());
