// The page: which view is shown, what is asked for it, and what is heard meanwhile.

import { every, listen, onLocked, Refused } from "./api.js";
import "./actions.js";
import { byId, setText } from "./dom.js";
import * as denials from "./denials.js";
import * as graph from "./graph.js";
import * as history from "./history.js";
import { onKeys } from "./keys.js";
import * as overview from "./overview.js";
import * as policies from "./policies.js";
import * as sessions from "./sessions.js";
import * as tap from "./tap.js";

const views = { overview, history, sessions, denials, policies, graph, tap };
const asks = {};
let shown = "overview";

function show() {
  // They are of what was shown before; the lock is of the page.
  for (const dialog of document.querySelectorAll("dialog[open]:not(#lock)")) dialog.close();
  const [name, query] = location.hash.slice(1).split("?");
  shown = Object.hasOwn(views, name) ? name : "overview";
  for (const section of document.querySelectorAll("[data-view]")) section.hidden = section.dataset.view !== shown;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${shown}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = shown === "overview" ? "amqpgate" : `amqpgate: ${shown}`;
  views[shown].enter?.(new URLSearchParams(query ?? ""));
  asks[shown]?.();
}

function trouble(text) {
  const place = byId("trouble");
  place.hidden = text === null;
  setText(place, text ?? "");
}

// What could not be had is said, and asked for again later.
const told = (work) => async () => {
  try {
    await work();
    trouble(null);
    state();
  } catch (error) {
    if (error instanceof Refused) trouble(error.message);
    else if (error instanceof TypeError && /fetch/i.test(error.message)) trouble("The gateway does not answer.");
    else if (error.name === "TimeoutError") trouble("The gateway takes long to answer.");
    else throw error;
  }
};

let isHeard = false;
function state() {
  const place = byId("state");
  const [kind, text] = isHeard ? overview.state() : ["bad", "no answer"];
  place.className = `pill ${kind}`;
  setText(place, text);
}

// -- the token --------------------------------------------------------------------------------

onLocked(
  (wasWrong) =>
    new Promise((resolve) => {
      const form = byId("lock-form");
      setText(byId("lock-said"), wasWrong ? "That is not the token." : "");
      form.addEventListener(
        "submit",
        () => {
          const given = form.elements.token.value.trim();
          form.reset();
          resolve(given);
        },
        { once: true },
      );
      byId("lock").showModal();
    }),
);
// It cannot be left without an answer.
byId("lock").addEventListener("cancel", (event) => event.preventDefault());

// -- what is asked, and what is heard -----------------------------------------------------------

show();
for (const [name, view] of Object.entries(views)) {
  asks[name] = every(view.SECONDS, told(view.ask), () => shown === name);
}
// The state in the corner is of every view.
every(2, told(overview.look), () => shown !== "overview");

listen(
  "/events",
  (name, event) => {
    for (const view of Object.values(views)) view.heard?.(name, event, () => asks[shown]());
    if (name === "gateway") asks[shown]();
  },
  (yes) => {
    const before = isHeard;
    isHeard = yes;
    state();
    // What happened while nobody was heard is in the lists.
    if (!yes || before) return;
    for (const view of Object.values(views)) view.missed?.();
    asks[shown]();
  },
);

function turn() {
  show();
  byId("main").focus({ preventScroll: true });
}
addEventListener("hashchange", turn);
// At once, so that the next key finds what it is for.
onKeys((name) => {
  globalThis.history.pushState(null, "", `#${name}`);
  turn();
});
