// Routes: where new connections go, and whether they wait.

import { question } from "./actions.js";
import { get, post } from "./api.js";
import { byId, count, h, nothing, pill, plural, setText, sync } from "./dom.js";

const list = byId("routes");
const tell = (text) => setText(byId("routes-said"), text);

export async function ask() {
  const { routes } = await get("/routes");
  if (!routes.length) return nothing(list, "There are none: each listener has its upstream.");
  return sync(
    list,
    routes,
    (route) => route.id,
    (route) =>
      h("li", {}, pill("", ""),
        h("span", { class: "grow" }, h("b", {}, route.id), " ", h("span", { class: "rule" }, route.policy), " ", h("span")),
        h("span", { class: "side" }), h("button", { type: "button", class: "plain small" })),
    (node, route) => {
      const [state, , side, button] = node.children;
      state.className = `pill ${route.paused ? "wait" : "good"}`;
      setText(state, route.paused ? "paused" : "open");
      const mirror = route.mirror ? `, mirrored to ${route.mirror}` : "";
      setText(node.children[1].lastChild, `to ${route.upstreams.join(", ")}${mirror}`);
      setText(side, route.paused ? `${count(route.waiting)} of ${count(route.most_waiting)} wait, ${route.longest_wait} s at most` : "");
      setText(button, route.paused ? "Resume" : "Pause");
      button.setAttribute("aria-label", `${route.paused ? "Resume" : "Pause"} route ${route.id}`);
      button.onclick = () => question(route.paused ? resume(route) : pause(route));
    },
  );
}

const change = (route, verb) => post(`/routes/${encodeURIComponent(route.id)}/${verb}`);

const pause = (route) => ({
  title: `Pause route ${route.id}?`,
  does: "Pause",
  words: `New connections of this route wait, for ${route.longest_wait} s at most and ${plural(route.most_waiting, "connection")} at a time; then they are refused. Sessions that are open go on.`,
  tell,
  act: async () => {
    await change(route, "pause");
    return `Route ${route.id} is paused: new connections wait.`;
  },
});

const resume = (route) => ({
  title: `Resume route ${route.id}?`,
  does: "Resume",
  words: `New connections of this route go on, and ${plural(route.waiting, "connection")} that wait${route.waiting === 1 ? "s" : ""}.`,
  tell,
  act: async () => {
    await change(route, "resume");
    return `Route ${route.id} goes on.`;
  },
});
