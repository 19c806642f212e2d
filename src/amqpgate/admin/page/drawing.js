// The graph as people look at it: by virtual host and words, drawn, closer and farther, and as a table.

import { byId, bytes, count, h, rate, setText } from "./dom.js";
import { isNarrow, keyOf, label, passes, Picture } from "./picture.js";

// Boxes in the picture.
const MOST = 300;
const NEAREST = 0.25;
const FARTHEST = 4;
// What a search has found is not smaller: letters of 13 pixels are 10 then.
const READABLE = 0.8;

const form = byId("graph-form");
const place = byId("picture");
let answer = null;
let picture = null;
let drawn = "";
let scale = 1;

export const chosenVhost = () => form.elements.vhost.value;
export const onChosen = (tell) => form.addEventListener("input", tell);

// Edges as /graph tells them, with a rate each, and how many more there are.
export function show(told) {
  answer = told;
  const vhosts = [...new Set(answer.edges.map((edge) => edge.vhost))].sort();
  const select = form.elements.vhost;
  if (JSON.stringify(vhosts) !== JSON.stringify([...select.options].slice(1).map((option) => option.value))) {
    const chosen = select.value;
    select.replaceChildren(select.options[0], ...vhosts.map((name) => h("option", { value: name }, name)));
    select.value = vhosts.includes(chosen) ? chosen : "";
  }
  draw();
}

form.addEventListener("input", (event) => {
  draw();
  if (event.target !== form.elements.numbers) toFound();
});
isNarrow.addEventListener("change", () => {
  drawn = "";
  draw();
});
form.addEventListener("submit", (event) => event.preventDefault());

// Those with most messages whose boxes are not too many. What was denied comes first, and has half of them at most.
function few(wanted) {
  const boxes = new Set();
  return wanted.filter((edge) => {
    const fresh = [edge.source, edge.target].map((node) => JSON.stringify([edge.vhost, node])).filter((end) => !boxes.has(end));
    if (boxes.size + fresh.length > (edge.kind === "denied" ? MOST / 2 : MOST)) return false;
    for (const end of fresh) boxes.add(end);
    return true;
  });
}

function draw() {
  if (answer === null) return;
  const isRate = form.elements.numbers.value === "rates";
  const text = form.elements.text.value.toLowerCase();
  const wanted = answer.edges.filter(
    (edge) =>
      (!chosenVhost() || edge.vhost === chosenVhost()) &&
      (!text || `${label(edge.source)}\n${label(edge.target)}\n${edge.keys.join("\n")}`.toLowerCase().includes(text)),
  );
  const edges = few(wanted);
  const left = wanted.length - edges.length + answer.left_out;
  setText(byId("graph-count"), wanted.length ? `${count(edges.length)} edges${left ? `, ${count(left)} with fewer messages left out` : ""}` : "");
  // What has not changed is left alone, and the keyboard's focus with it.
  const state = JSON.stringify(edges.map(keyOf).sort());
  if (state !== drawn) {
    drawn = state;
    picture = edges.length ? new Picture(edges) : null;
    place.replaceChildren(picture?.node ?? h("p", { class: "empty" }, "Nothing has been seen yet."));
    zoom(scale);
  }
  picture?.renew(edges, isRate);
  listed([...edges].sort((one, other) => passes(other, isRate) - passes(one, isRate)));
}

// -- closer and farther --------------------------------------------------------------------------

// So that what is at this point of the window stays there.
function zoom(to, x = place.clientWidth / 2, y = place.clientHeight / 2) {
  const by = Math.min(FARTHEST, Math.max(NEAREST, to)) / scale;
  scale *= by;
  if (picture === null) return;
  const [left, top] = [(place.scrollLeft + x) * by - x, (place.scrollTop + y) * by - y];
  picture.node.setAttribute("width", picture.width * scale);
  picture.node.setAttribute("height", picture.height * scale);
  if (by !== 1) place.scrollTo(left, top);
}

const fit = () => Math.min(1, (place.clientWidth - 24) / picture.width, (place.clientHeight - 24) / picture.height);
const whole = () => picture && zoom(fit());

// Whoever looked at all of a large graph, and searches, comes close enough to read what is found, and to the first of it.
function toFound() {
  const text = form.elements.text.value.toLowerCase();
  if (picture === null || !(text || chosenVhost())) return;
  zoom(Math.max(scale, READABLE, fit()));
  const first = picture.boxes.find((box) => text && box.text.toLowerCase().includes(text)) ?? picture.boxes[0];
  const [box, around] = [first.node.getBoundingClientRect(), place.getBoundingClientRect()];
  place.scrollBy(box.left + box.width / 2 - around.left - place.clientWidth / 2, box.top + box.height / 2 - around.top - place.clientHeight / 2);
}

byId("graph-closer").addEventListener("click", () => zoom(scale * 1.25));
byId("graph-farther").addEventListener("click", () => zoom(scale / 1.25));
byId("graph-whole").addEventListener("click", whole);
place.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "+") zoom(scale * 1.25);
  else if (event.key === "-") zoom(scale / 1.25);
  else if (event.key === "0") whole();
});
place.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  const { left, top } = place.getBoundingClientRect();
  zoom(scale * Math.exp(-event.deltaY / 400), event.clientX - left, event.clientY - top);
}, { passive: false });
// The mouse takes hold of it; fingers scroll anyway.
place.addEventListener("pointerdown", (event) => {
  if (event.pointerType !== "mouse" || event.button !== 0) return;
  const from = [place.scrollLeft + event.clientX, place.scrollTop + event.clientY];
  const move = (moved) => place.scrollTo(from[0] - moved.clientX, from[1] - moved.clientY);
  const over = new AbortController();
  addEventListener("pointermove", move, { signal: over.signal });
  addEventListener("pointerup", () => over.abort(), { signal: over.signal });
});

function listed(edges) {
  byId("graph-table").replaceChildren(
    h("thead", {}, h("tr", {}, ...["From", "Does", "To", "Vhost", "Keys", "Per second", "Messages", "Bodies", "Denied"].map((title, at) => h("th", { scope: "col", class: at > 4 ? "n" : null }, title)))),
    h("tbody", {}, ...edges.map((edge) =>
      h("tr", {},
        h("td", {}, `${edge.source.kind} `, h("b", {}, label(edge.source))), h("td", {}, edge.kind), h("td", {}, `${edge.target.kind} `, h("b", {}, label(edge.target))),
        h("td", {}, h("code", {}, edge.vhost)), h("td", {}, edge.keys.join(", ")), h("td", { class: "n" }, rate(edge.rate)), h("td", { class: "n" }, count(edge.messages)), h("td", { class: "n" }, edge.bytes ? bytes(edge.bytes) : "–"), h("td", { class: "n" }, edge.denied ? count(edge.denied) : "–")))),
  );
}
