// Search in all views at once: where something is called so, how many, and the way there.

import { get } from "./api.js";
import { byId, count, h, nothing, setText, sync } from "./dom.js";
import { has as isInDenial } from "./denials.js";
import { has as isInPolicy } from "./policies.js";

const WAIT = 250;
const dialog = byId("find");
const form = byId("find-form");
const list = byId("found");

export function find() {
  form.reset();
  sync(list, [], () => "", () => null);
  dialog.showModal();
}

let later;
let asked = 0;
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  clearTimeout(later);
  later = setTimeout(() => look().catch((error) => nothing(list, error.message)), WAIT);
});

async function look() {
  const text = form.elements.text.value.trim();
  const mine = ++asked;
  if (!text) return sync(list, [], () => "", () => null);
  const lower = text.toLowerCase();
  const beginning = (name) => ({ [name]: text.endsWith("*") ? text : `${text}*`, limit: 1 });
  const names = ["user", "vhost", "client"];
  const [policies, { decisions }, { edges }, ...sessions] = await Promise.all([
    get("/policies"), get("/decisions", { limit: 500 }), get("/graph"), ...names.map((name) => get("/sessions", beginning(name))),
  ]);
  // Whoever goes on typing wants no older answer.
  if (mine !== asked) return undefined;
  const query = new URLSearchParams({ text });
  const isInEdge = (edge) => [edge.source.name, edge.target.name, ...edge.keys].some((name) => name?.toLowerCase().includes(lower));
  const found = [
    ...names.map((name, at) => [`sessions whose ${name} begins so`, sessions[at].matched, `#sessions?${new URLSearchParams({ [name]: beginning(name)[name] })}`]),
    ["denials", decisions.filter((one) => isInDenial(one, lower)).length, `#denials?${query}`],
    ["policies", policies.policies.filter((one) => isInPolicy(one, lower)).length, `#policies?${query}`],
    ["edges of the graph", edges.filter(isInEdge).length, `#graph?${query}`],
  ].filter(([, many]) => many > 0);
  if (!found.length) return nothing(list, "Nothing is called so.");
  return sync(list, found, ([, , where]) => where,
    ([what, , where]) => h("li", {}, h("a", { class: "grow", href: where, onclick: () => dialog.close() }, what), h("span", { class: "side" })),
    (node, [, many]) => setText(node.lastChild, count(many)));
}
