// The policies in force: rules with their hits, and what those in shadow would do otherwise.

import { get } from "./api.js";
import { ago, byId, h, nothing, pill, plural, setText, sync } from "./dom.js";

export const SECONDS = 4;
const EFFECTS = { allow: "good", deny: "bad", delay: "wait", reject: "bad", close: "bad" };
const MODES = { enforce: "good", shadow: "wait", off: "" };

const form = byId("policies-form");
let answer = null;

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  const text = form.elements.text.value;
  history.replaceState(null, "", `#policies${text ? `?${new URLSearchParams({ text })}` : ""}`);
  if (answer) draw();
});

// `#policies?text=orders`, from somebody.
export function enter(query) {
  if (query.size) form.elements.text.value = query.get("text") ?? "";
  if (answer) draw();
}

export async function ask() {
  answer = await get("/policies");
  setText(byId("policies-digest"), answer.digest ? `sha256:${answer.digest.slice(0, 16)}` : "none");
  const wrong = byId("policies-error");
  wrong.hidden = !answer.error;
  const where = [answer.file, answer.line, answer.column].filter((part) => part !== null).join(":");
  setText(wrong, answer.error ? `Those read last are not in force: ${where ? `${where}: ` : ""}${answer.error}` : "");
  draw();
  drawShadow(answer.shadow);
}

export function heard(name, event, again) {
  if (name === "policies") again();
}

// Whether it has these small letters in its names, or its rules'.
export function has(policy, text) {
  const words = [policy.name, policy.kind, policy.mode, policy.file, ...policy.rules.flatMap((rule) => [rule.id, rule.effect, ...rule.operations])];
  return words.join("\n").toLowerCase().includes(text);
}

function draw() {
  const all = answer.policies;
  const text = form.elements.text.value.toLowerCase();
  const cards = all.filter((policy) => has(policy, text));
  setText(byId("policies-count"), text ? `${cards.length} of ${plural(all.length, "policy", "policies")}` : plural(all.length, "policy", "policies"));
  const place = byId("policies-list");
  sync(
    place,
    cards.length ? [...cards, null] : [null],
    (policy) => (policy === null ? "default" : `${policy.kind}/${policy.name}`),
    (policy) => (policy === null ? h("div", { class: "card" }) : h("details", { class: "card policy", open: cards.length <= 6 }, h("summary"))),
    (node, policy) => {
      if (policy === null) {
        const words = all.length
          ? `No rule allowed it: ${plural(answer.default.hits, "time")}${answer.default.last_hit ? `, the last ${ago(answer.default.last_hit)}` : ""}.`
          : "There are none.";
        const { sessions, hits } = answer.unselected;
        const may = answer.default_access === "allow" ? "may do everything" : `may do nothing: ${plural(hits, "request")} denied`;
        node.replaceChildren(h("p", {}, words), h("p", {}, `Whom no access policy selects ${may}. So far ${plural(sessions, "session")}.`));
        return;
      }
      node.firstChild.replaceChildren(
        h("b", {}, policy.name), " ", h("span", { class: "hint" }, policy.kind), " ",
        pill(MODES[policy.mode] ?? "", policy.enforce_percent > 0 && policy.enforce_percent < 100 ? `enforced for ${policy.enforce_percent} %` : policy.mode),
        ...(policy.sessions ? [] : [pill("wait", "selects nobody seen")]),
        h("span", { class: "side" }, summary(policy)));
      node.replaceChildren(node.firstChild, ...(policy.file ? [h("p", { class: "hint" }, "Written in ", h("code", {}, `${policy.file}:${policy.line}`))] : []), ...rules(policy));
    },
  );
}

function summary(policy) {
  if (!policy.rules.length) return "";
  const sum = (what) => policy.rules.reduce((all, rule) => all + rule[what], 0);
  return [plural(policy.rules.length, "rule"), ...did({ hits: sum("hits"), messages: sum("messages") })].join(" · ");
}

// What a rule did: decisions, and messages that passed by those.
function did(rule) {
  return [plural(rule.hits, "decision"), ...(rule.messages ? [plural(rule.messages, "message")] : [])];
}

function rules(policy) {
  if (!policy.rules.length) return [];
  const most = Math.max(1, ...policy.rules.map((rule) => rule.hits + rule.messages));
  return [
    h("ul", { class: "rules" }, ...policy.rules.map((rule) => {
      const bar = h("meter", { min: 0, max: most, value: rule.hits + rule.messages, "aria-label": `use of ${rule.id}` });
      return h("li", {},
        pill(EFFECTS[rule.effect] ?? "", rule.effect),
        h("span", { class: "grow" }, h("span", { class: "rule" }, rule.id), " ", h("span", { class: "hint" }, [...(rule.operations.length ? [rule.operations.join(", ")] : []), ...(rule.line === null ? [] : [`line ${rule.line}`])].join(" · "))),
        bar,
        h("span", { class: "side" }, [...did(rule), ago(rule.last_hit)].join(" · ")));
    })),
  ];
}

function drawShadow(found) {
  const list = byId("shadow");
  if (!found.length) return nothing(list, "None since these policies came into force.");
  return sync(
    list,
    found,
    (one) => `${one.policy}\n${one.rule}\n${one.effect}`,
    (one) =>
      h("li", {}, pill(one.effect === "allow" ? "good" : "bad", `would ${one.effect}`),
        h("span", { class: "grow rule" }, one.policy === null ? "no rule allows it" : `${one.policy}/${one.rule}`), h("span", { class: "side" })),
    (node, one) => setText(node.lastChild, `${plural(one.hits, "time")} · ${ago(one.last_hit)}`),
  );
}
