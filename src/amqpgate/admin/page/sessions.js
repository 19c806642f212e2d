// Sessions: a page of them at a time, sorted and filtered by the gateway; one with all that is known; its end.

import { get, post } from "./api.js";
import { byId, chip, count, exchangeName, h, bytes, pill, plural, rate, setText, sync, who } from "./dom.js";

export const SECONDS = 3;
const LIMIT = 50;
const FILTERS = ["user", "vhost", "client", "flow"];
const FIRST = "-published_rate";

const FLOWS = {
  running: ["good", "running"],
  throttled: ["wait", "throttled"],
  slow_broker: ["wait", "slow broker"],
  slow_client: ["wait", "slow client"],
  blocked: ["bad", "blocked"],
  closing: ["", "closing"],
};

// AMQP of the client, and of the broker where that is another one.
function versions(row) {
  const [client, broker] = [row.version, row.upstream_version].map((version) => version.replace("AMQP ", ""));
  return client === broker ? client : `${client} → ${broker}`;
}

// The client's user, and the one that the broker knows where that is another.
const user = (row) => (row.upstream_user === null || row.upstream_user === row.user ? who(row.user) : `${who(row.user)} as ${row.upstream_user}`);

const COLUMNS = [
  { title: "User", key: "user", of: (row) => h("button", { type: "button", class: "link", onclick: () => open(row.id) }, user(row)) },
  { title: "Vhost", key: "vhost", of: (row) => h("code", {}, row.vhost) },
  { title: "Client", key: "client", of: (row) => h("span", {}, h("code", {}, row.client), row.name ? h("small", {}, row.name) : null) },
  { title: "Version", key: "version", wide: true, text: (row) => versions(row) },
  { title: "Upstream", key: "upstream", wide: true, text: (row) => (row.pooled ? `${row.upstream}, shared` : row.upstream) },
  { title: "Channels", key: "channels", wide: true, text: (row) => count(row.channels), numeric: true },
  { title: "Published/s", key: "published_rate", text: (row) => rate(row.published_rate), numeric: true },
  { title: "Delivered/s", key: "delivered_rate", text: (row) => rate(row.delivered_rate), numeric: true },
  { title: "Refused", key: "refused", text: (row) => count(row.refused), numeric: true },
  { title: "Flow", key: "flow", of: (row) => pill(...FLOWS[row.flow]) },
];

const form = byId("sessions-form");
let offset = 0;
let sort = FIRST;
let total = 0;

export async function ask() {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, form.elements[name].value.trim()]));
  const answer = await get("/sessions", { ...filters, sort, limit: LIMIT, offset });
  total = answer.matched;
  if (offset && offset >= total) {
    offset = Math.max(0, Math.floor((total - 1) / LIMIT) * LIMIT);
    return ask();
  }
  setText(byId("sessions-count"), total === answer.total ? count(total) : `${count(total)} of ${count(answer.total)}`);
  const last = offset + answer.sessions.length;
  setText(byId("sessions-range"), answer.sessions.length ? `${count(offset + 1)} to ${count(last)} of ${count(total)}` : "None fits.");
  byId("sessions-back").disabled = offset === 0;
  byId("sessions-on").disabled = last >= total;
  draw(answer.sessions);
  if (dialog.open) await look();
  return undefined;
}

let later;
const askSoon = (milliseconds) => {
  clearTimeout(later);
  // A question that fails is asked again by the page.
  later = setTimeout(() => ask().catch(() => {}), milliseconds);
};

function begin(order) {
  sort = order;
  offset = 0;
  form.elements.sort.value = order;
  note();
  askSoon(0);
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", (event) => {
  setTimeout(note);
  if (event.target.name === "sort") return begin(event.target.value);
  offset = 0;
  return askSoon(200);
});
form.addEventListener("reset", () => setTimeout(() => begin(FIRST)));
byId("sessions-back").addEventListener("click", () => turn(-LIMIT));
byId("sessions-on").addEventListener("click", () => turn(LIMIT));

function turn(by) {
  offset = Math.max(0, offset + by);
  note();
  askSoon(0);
}

// The address says which are shown, and which one is looked at: for whoever gets it, and for a reload.
function note() {
  if (!location.hash.startsWith("#sessions")) return;
  const query = new URLSearchParams(FILTERS.map((name) => [name, form.elements[name].value.trim()]).filter(([, value]) => value));
  if (sort !== FIRST) query.set("sort", sort);
  if (offset) query.set("offset", offset);
  if (dialog.open) query.set("id", looked);
  history.replaceState(null, "", `#sessions${query.size ? `?${query}` : ""}`);
}

// `#sessions?user=alice` comes from elsewhere on the page, or from somebody.
export function enter(query) {
  if (query.size) {
    for (const name of FILTERS) form.elements[name].value = query.get(name) ?? "";
    const order = query.get("sort") ?? FIRST;
    sort = COLUMNS.some((column) => column.key === order.replace("-", "")) ? order : FIRST;
    form.elements.sort.value = sort;
    offset = Math.max(0, Number.parseInt(query.get("offset"), 10) || 0);
  }
  const id = query.get("id");
  if (id) open(id);
}

// -- the table ----------------------------------------------------------------------------------

// Numbers to the right; on a phone what is `wide` is left to the window of the session.
const classOf = (column) => [column.numeric ? "n" : "", column.wide ? "wide" : ""].filter(Boolean).join(" ") || null;

const table = byId("sessions-table");
const heads = COLUMNS.map((column) =>
  h("th", { scope: "col", role: "columnheader", class: classOf(column) },
    h("button", { type: "button", onclick: () => begin(next(column)) }, column.title)),
);
const body = h("tbody", { role: "rowgroup" });
// What is drawn as cards on a phone is a table all the same.
table.setAttribute("role", "table");
table.append(
  h("caption", { class: "quiet" }, "Sessions"),
  h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...heads)),
  body,
);

const next = (column) => {
  const first = column.numeric ? `-${column.key}` : column.key;
  return sort === first ? (column.numeric ? column.key : `-${column.key}`) : first;
};

function draw(rows) {
  COLUMNS.forEach((column, at) => {
    const order = sort === column.key ? "ascending" : sort === `-${column.key}` ? "descending" : "none";
    heads[at].setAttribute("aria-sort", order);
  });
  sync(
    body,
    rows,
    (row) => row.id,
    (row) =>
      h("tr", { role: "row" }, ...COLUMNS.map((column) =>
        h("td", { role: "cell", "data-label": column.title, class: classOf(column) }, column.of?.(row)))),
    (node, row) => {
      COLUMNS.forEach((column, at) => {
        const cell = node.children[at];
        if (column.text) setText(cell, column.text(row));
        else if (column.key === "flow") cell.replaceChildren(column.of(row));
      });
    },
  );
}

// -- one session --------------------------------------------------------------------------------

const dialog = byId("session");
const closing = byId("close-form");
let looked = null;

async function open(id) {
  looked = id;
  setText(byId("close-said"), "");
  byId("session-body").replaceChildren();
  setText(byId("session-title"), id);
  closing.hidden = false;
  dialog.showModal();
  note();
  await look();
}

dialog.addEventListener("close", note);

async function look() {
  const id = looked;
  try {
    const session = await get(`/sessions/${encodeURIComponent(id)}`);
    if (id === looked) details(session);
  } catch (error) {
    if (id === looked) gone(error);
  }
}

function gone(error) {
  if (error.status !== 404) return setText(byId("close-said"), error.message);
  closing.hidden = true;
  return setText(byId("close-said"), "This session is over.");
}

closing.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await post(`/sessions/${encodeURIComponent(looked)}/close`, { reason: closing.elements.reason.value });
    closing.hidden = true;
    setText(byId("close-said"), "The client is told to go when its confirms and commits are answered.");
    askSoon(300);
  } catch (error) {
    gone(error);
  }
});

const fact = (name, value) => (value === null || value === undefined || value === "" ? [] : [h("dt", {}, name), h("dd", {}, value)]);

// No calendar here goes beyond some 270,000 years.
function ends(seconds) {
  const day = new Date(1000 * seconds);
  return Number.isNaN(day.getTime()) ? "not in our time" : day.toLocaleString();
}

function details(session) {
  setText(byId("session-title"), `${user(session)} in ${session.vhost}`);
  // What is unfolded stays so, and what is read does not jump.
  const unfolded = new Set([...byId("session-body").querySelectorAll("details[open]")].map((one) => one.dataset.name));
  const fold = (name, title, ...children) =>
    h("details", { "data-name": name, open: unfolded.has(name) || name === "channels" }, h("summary", {}, title), ...children);
  const consumers = (channel) => channel.consumers.map((one) => chip(one.tag ?? "tag not known", one.queue));
  const properties = Object.entries(session.client_properties);
  const flows = [
    ...session.flows.publish.map((flow) => ["published", flow]),
    ...session.flows.deliver.map((flow) => ["delivered", flow]),
  ];
  byId("session-body").replaceChildren(
    h("p", { class: "line" }, pill(...FLOWS[session.flow]), h("code", {}, session.client), session.tls ? pill("good", "TLS") : null, h("code", { class: "hint" }, session.id)),
    h("dl", {},
      ...fact("name", session.name),
      ...fact("listener", session.listener),
      ...fact("version", versions(session)),
      ...fact("upstream", [session.upstream, session.endpoint].filter(Boolean).join(" at ")),
      ...fact("route", session.route),
      ...fact("shares a connection", session.pooled ? "yes" : null),
      ...fact("certificate", session.tls_name),
      ...fact("groups", session.groups.join(", ")),
      ...fact("token of", session.token?.issuer),
      ...fact("scopes", session.token?.scopes.join(", ")),
      ...Object.entries(session.token?.claims ?? {}).flatMap(([name, values]) => fact(`claim ${name}`, values.join(", "))),
      ...fact("token ends", session.token && ends(session.token.ends)),
      ...fact("published", `${count(session.published)} (${bytes(session.published_bytes)}), ${rate(session.published_rate)}/s`),
      ...fact("delivered", `${count(session.delivered)} (${bytes(session.delivered_bytes)}), ${rate(session.delivered_rate)}/s`),
      ...fact("refused", h("span", {}, `${plural(session.refused, "message")}, `, h("a", { href: `#denials?text=${session.id}`, onclick: () => dialog.close() }, "its denials"))),
      ...fact("waits to be sent", `${bytes(session.buffered.client)} to the client, ${bytes(session.buffered.upstream)} to the broker`),
      ...fact("silent", `client ${session.silent.client?.toFixed(0) ?? "–"} s, broker ${session.silent.upstream?.toFixed(0) ?? "–"} s`),
      ...fact("frame-max", `${count(session.frame_max.client)} / ${count(session.frame_max.upstream)}`),
      ...fact("heartbeat", `${session.heartbeat.client} s / ${session.heartbeat.upstream} s`),
      ...fact("policies", session.policies.join(", ")),
      ...fact("in shadow", session.shadow_policies.join(", ")),
      ...fact("limits", session.limits.map((limit) => `${limit.policy}/${limit.limit}${limit.enforced ? "" : " (shadow)"}`).join(", "))),
    fold("channels", `Channels (${count(session.open_channels.length)})`,
      h("ul", { class: "rows" }, ...session.open_channels.slice(0, 100).map((channel) =>
        h("li", {}, h("b", {}, `${channel.number}${channel.upstream_number === null || channel.upstream_number === channel.number ? "" : ` → ${channel.upstream_number}`}`),
          h("span", { class: "grow" },
            [`${count(channel.published)} published`, `${count(channel.delivered)} delivered`,
              channel.unacked === null ? null : `${count(channel.unacked)} unacknowledged`, channel.confirms ? "confirms" : null,
              channel.transaction ? "transaction" : null].filter(Boolean).join(" · "), " ",
            ...consumers(channel).flatMap((one) => [one, " "])),
          channel.state === "open" ? null : pill("wait", channel.state))))),
    fold("flows", `Flows (${count(flows.length + session.flows.more)})`,
      flows.length ? null : h("p", { class: "hint" }, "None: nothing needs to know its exchanges."),
      h("ul", { class: "rows" }, ...flows.map(([verb, flow]) =>
        h("li", {}, h("span", { class: "grow" }, `${verb} `, chip("exchange", exchangeName(flow.exchange)), " ", chip("key", flow.routing_key)),
          h("span", { class: "side" }, `${count(flow.messages)} · ${bytes(flow.bytes)}`))))),
    fold("properties", `What the client says of itself (${count(properties.length)})`,
      h("dl", {}, ...properties.flatMap(([name, value]) => fact(name, typeof value === "string" ? value : JSON.stringify(value))))),
  );
}
