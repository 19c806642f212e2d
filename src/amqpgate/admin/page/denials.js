// What was refused, or would have been, with its rule; and what the policies say of a request.

import { get, post } from "./api.js";
import { about, byId, chip, clock, count, h, nothing, pill, setText, sync, who } from "./dom.js";

export const SECONDS = 5;
// As many as a worker keeps.
const KEPT = 500;
const SHOWN = 100;
const KINDS = { denied: ["bad", "denied"], shadow: ["wait", "shadow"], not_transformed: ["bad", "not transformed"] };

// Newest first.
let decisions = [];
let due = false;

const keyOf = (decision) => `${decision.worker}.${decision.number}.${decision.at}`;

function add(found) {
  const known = new Set(decisions.map(keyOf));
  const fresh = found.filter((decision) => !known.has(keyOf(decision)));
  if (!fresh.length) return;
  decisions = [...fresh, ...decisions].sort((one, other) => other.at - one.at || other.number - one.number);
  // Of each kind: what is only for show would push out what was denied.
  const room = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, KEPT]));
  decisions = decisions.filter((decision) => keyOf(decision) === chosen || room[decision.kind]-- > 0);
}

let isMissing = true;
export function missed() {
  isMissing = true;
}

// They come by themselves: the list is asked for where some may have been missed.
export async function ask() {
  await learn();
  if (isMissing) {
    isMissing = false;
    for (const kind of Object.keys(KINDS)) add((await get("/decisions", { kind, limit: KEPT })).decisions);
  }
  draw();
}

const waiting = [];
export function heard(name, event) {
  if (name === "dropped") isMissing = true;
  if (name !== "decision") return;
  waiting.push(event);
  if (waiting.length > KEPT) waiting.shift();
  // A storm of them is drawn a few times a second.
  if (due) return;
  due = true;
  setTimeout(() => {
    due = false;
    add(waiting.splice(0));
    draw();
    drawLast(byId("last-denials"), 6);
  }, 250);
}

const form = byId("denials-form");
// That which the address is of; it comes first.
let chosen = null;

form.addEventListener("input", () => {
  chosen = null;
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", `#denials${query.size ? `?${query}` : ""}`);
  draw();
});

// `#denials?text=refund` or `#denials?id=...`, from somebody.
export function enter(query) {
  chosen = query.get("id");
  // The gateway may have kept what other denials have pushed out here.
  if (chosen && !decisions.some((decision) => keyOf(decision) === chosen)) isMissing = true;
  if (query.size) for (const name of ["kind", "text"]) form.elements[name].value = query.get(name) ?? "";
  if (!isMissing) draw();
}
form.addEventListener("submit", (event) => event.preventDefault());

// Whether it has these small letters in any of its names.
export const has = (decision, text) =>
  [decision.session, decision.user, decision.vhost, decision.client, decision.operation, decision.exchange, decision.queue, decision.routing_key, decision.policy, decision.rule]
    .join("\n").toLowerCase().includes(text);

function draw() {
  const kind = form.elements.kind.value;
  const text = form.elements.text.value.toLowerCase();
  const wanted = grouped().filter(
    (decision) =>
      (!kind || decision.kind === kind) &&
      (!text || has(decision, text)),
  );
  const first = wanted.findIndex((decision) => decision.keys.includes(chosen));
  if (first > 0) wanted.unshift(...wanted.splice(first, 1));
  byId("denials-gone").hidden = chosen === null || first >= 0 || isMissing;
  setText(byId("denials-count"), decisions.length ? `the last ${count(decisions.length)}` : "");
  const list = byId("denials-list");
  if (!wanted.length) return nothing(list, decisions.length ? "None of them fits." : "Nothing has been refused.");
  sync(list, wanted.slice(0, SHOWN), sameOf, card, renew);
}

// Those that say the same are one, which is as old as its last.
const ABOUT = ["kind", "user", "vhost", "client", "operation", "exchange", "routing_key", "queue", "destination", "policy", "rule", "effect"];
const sameOf = (decision) => JSON.stringify(ABOUT.map((name) => decision[name]));

function grouped() {
  const found = new Map();
  for (const decision of decisions) {
    const key = sameOf(decision);
    if (found.has(key)) found.get(key).keys.push(keyOf(decision));
    else found.set(key, { ...decision, keys: [keyOf(decision)] });
  }
  return [...found.values()];
}

function renew(node, decision) {
  setText(node.querySelector("time"), clock(decision.at));
  setText(node.querySelector(".times"), decision.keys.length > 1 ? `× ${count(decision.keys.length)}` : "");
  node.classList.toggle("chosen", decision.keys.includes(chosen));
  node.querySelector("a.side")?.setAttribute("href", `#denials?id=${decision.keys[0]}`);
}

const ruleOf = (decision) => (decision.policy === null ? "no rule allows it" : `${decision.policy}/${decision.rule}`);

function card(decision) {
  const [kind, word] = KINDS[decision.kind] ?? ["", decision.kind];
  return h("li", { class: "card" },
    h("p", { class: "line" }, pill(kind, word), h("b", {}, who(decision.user)), h("code", {}, decision.vhost), h("span", { class: "times" }),
      h("a", { class: "side", title: "The address of this one" }, h("time"))),
    h("p", {}, h("span", { class: "op" }, decision.operation), " ", ...about(decision).flatMap(([name, value]) => [chip(name, value), " "])),
    h("p", { class: "line" }, h("span", { class: "rule" }, ruleOf(decision)),
      h("span", { class: "hint" }, decision.kind === "shadow" ? `would ${decision.effect}` : `from ${decision.client}`),
      h("button", { type: "button", class: "plain small", onclick: () => fill(decision) }, "Explain")),
    decision.text ? h("p", { class: "hint" }, decision.text) : null);
}

export function drawLast(list, most) {
  const denied = grouped().filter((decision) => decision.kind !== "shadow");
  if (!denied.length) return nothing(list, "Nothing has been refused.");
  const make = (decision) => {
    const [kind, word] = KINDS[decision.kind] ?? ["", decision.kind];
    return h("li", {}, pill(kind, word),
      h("span", { class: "grow" }, h("b", {}, who(decision.user)), " ", h("span", { class: "op" }, decision.operation), " ",
        ...about(decision).slice(0, 2).flatMap(([name, value]) => [chip(name, value), " "]),
        h("span", { class: "rule" }, ruleOf(decision)), " ", h("span", { class: "times" })),
      h("time", { class: "side" }));
  };
  sync(list, denied.slice(0, most), sameOf, make, renew);
}

// -- explain ------------------------------------------------------------------------------------

const question = byId("explain-form");
const FIELDS = { exchange: "exchange", destination: "destination", queue: "queue", routingKey: "routing_key" };
// Operation -> the arguments that it has, as the policies know them.
let operations = null;

async function learn() {
  if (operations !== null) return;
  ({ operations } = await get("/explain"));
  question.elements.op.append(...Object.keys(operations).map((name) => h("option", {}, name)));
  question.elements.op.value = "basic.publish";
  fit();
}

function fit() {
  const has = operations[question.elements.op.value];
  for (const label of question.querySelectorAll("[data-for]")) label.hidden = !has.includes(label.dataset.for);
}
question.elements.op.addEventListener("change", fit);

// What is being explained; null where somebody wrote it.
let explained = null;
question.addEventListener("input", () => {
  explained = null;
});

function fill(decision) {
  const fields = question.elements;
  explained = decision;
  fields.op.value = decision.operation;
  fields.user.value = decision.user ?? "";
  fields.vhost.value = decision.vhost;
  fields.source.value = decision.client ?? "";
  for (const [key, name] of Object.entries(FIELDS)) fields[key].value = decision[name] ?? "";
  // By all that policies may select: groups, claims, the listener, a certificate; and what a field cannot hold, an end of a line.
  const isLost = ([key, value]) => fields[key]?.value !== value;
  const more = Object.fromEntries(Object.entries(FIELDS).map(([key, name]) => [key, decision[name] ?? ""]).filter(isLost));
  const as = Object.fromEntries(Object.entries(decision.as).filter(isLost));
  if (Object.keys(as).length) more.as = as;
  fields.more.value = Object.keys(more).length ? JSON.stringify(more) : "";
  fields.shadow.checked = decision.kind === "shadow";
  fit();
  question.requestSubmit();
  byId("explain-card").scrollIntoView({ block: "nearest", behavior: "smooth" });
}

question.addEventListener("submit", async (event) => {
  event.preventDefault();
  const fields = question.elements;
  const op = fields.op.value;
  try {
    const more = fields.more.value.trim() ? JSON.parse(fields.more.value) : {};
    const as = { user: fields.user.value || null, vhost: fields.vhost.value, ...more.as };
    if (fields.source.value) as.source = fields.source.value;
    const named = Object.fromEntries(operations[op].map((key) => [key, fields[key].value]));
    answer(await post("/explain", { request: { op, ...named, ...more, as }, shadow: fields.shadow.checked }));
  } catch (error) {
    byId("explained").replaceChildren(h("p", { class: "notice bad" }, error.message));
  }
});

function answer(said) {
  const allowed = said.verdict === "allow";
  const rule = (one) =>
    h("li", { class: one.decides ? "decides" : one.matches ? "matches" : "" },
      h("p", {}, h("span", { class: "rule" }, `${one.policy}/${one.rule}`), " ", pill(one.effect === "allow" ? "good" : "bad", one.effect)),
      h("p", { class: "hint" }, one.decides ? "decides" : one.matches ? "matches, too" : one.whyNot));
  byId("explained").replaceChildren(...[
    h("p", { class: `verdict ${allowed ? "good" : "bad"}` }, h("strong", {}, allowed ? "Allowed" : "Denied"), ` by ${said.reason}`),
    allowed && explained?.kind === "denied"
      ? h("p", { class: "notice wait" }, `${ruleOf(explained)} denied it at ${clock(explained.at)}. Either other policies are in force now, or it was for a header, an argument, a property or the size, which are not kept: write them below “More of the request”.`)
      : null,
    ...said.steps.flatMap((step) => [
      said.steps.length > 1 ? h("p", {}, pill(step.verdict === "allow" ? "good" : "bad", step.verdict), " ", step.request) : null,
      h("ol", { class: "reasons" }, ...step.rules.map(rule)),
    ].filter(Boolean)),
    ...said.policies.filter((policy) => policy.why).map((policy) =>
      h("p", { class: "hint" }, `policy ${policy.policy} ${policy.counts ? "counts in part" : "does not count"}: ${policy.why}`)),
    ...(said.mirror ? [h("p", { class: "hint" }, `mirrored by ${said.mirror}`)] : []),
  ].filter(Boolean));
}
