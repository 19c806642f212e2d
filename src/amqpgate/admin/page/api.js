// What is asked of the gateway. The token is in this module's memory and nowhere else.

let token = null;
let asking = null;

export class Refused extends Error {
  constructor(status, text) {
    super(text || `the gateway answers ${status}`);
    this.status = status;
  }
}

// Given once, by the page: opens the dialog, and resolves to a token.
let askForToken = async () => {
  throw new Refused(401, "a bearer token is needed");
};
export function onLocked(ask) {
  askForToken = ask;
}

async function request(path, options = {}) {
  for (;;) {
    const used = token;
    const headers = { ...options.headers };
    if (used !== null) headers.authorization = `Bearer ${used}`;
    const answer = await fetch(path, { ...options, headers, cache: "no-store", redirect: "error" });
    if (answer.ok) return answer;
    if (answer.status !== 401) throw new Refused(answer.status, (await answer.text()).trim());
    if (used === token) {
      // One question for all who wait.
      asking ??= askForToken(used !== null).finally(() => (asking = null));
      token = await asking;
    }
  }
}

export async function get(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ""));
  return (await request(query.size ? `${path}?${query}` : path, { signal: AbortSignal.timeout(15000) })).json();
}

// Longer than a reload may take, which is the longest of them: 30 s.
const DONE = 40000;

// What comes of it, which is an object, or a text.
export async function post(path, body = {}) {
  const answer = await request(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-amqpgate": "1" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(DONE),
  });
  return answer.headers.get("content-type")?.startsWith("application/json") ? answer.json() : answer.text();
}

// Objects as they come, one a line.
export async function* lines(path, parameters, signal) {
  const answer = await request(`${path}?${new URLSearchParams(parameters)}`, { signal, headers: { "x-amqpgate": "1" } });
  let rest = "";
  for await (const text of texts(answer)) {
    const all = (rest + text).split("\n");
    rest = all.pop();
    for (const line of all) if (line) yield JSON.parse(line);
  }
}

async function* texts(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

// Server-sent events by fetch, since an EventSource cannot bear a token. Yields null whenever anything was heard.
async function* events(path, signal) {
  const answer = await request(path, { signal, headers: { accept: "text/event-stream" } });
  let rest = "";
  yield null;
  for await (const text of texts(answer)) {
    const blocks = (rest + text).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    yield null;
    for (const block of blocks) {
      const event = { name: "message", data: "" };
      for (const line of block.split("\n")) {
        if (line.startsWith("event:")) event.name = line.slice(6).trim();
        else if (line.startsWith("data:")) event.data += line.slice(5).trim();
      }
      if (event.data) yield event;
    }
  }
}

// Until somebody looks at the page. A browser has six connections for all its pages of one host, and a stream keeps one.
const looked = async () => {
  while (document.hidden) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
};

// For as long as the page is there, while somebody looks. `heard` gets each event; `state` is told whether anybody answers.
export async function listen(path, heard, state) {
  for (let pause = 500; ; pause = Math.min(pause * 2, 8000)) {
    await looked();
    // The gateway says something every 15 s.
    const over = new AbortController();
    const leave = () => document.hidden && over.abort();
    document.addEventListener("visibilitychange", leave);
    let watch;
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(() => over.abort(), 40000);
    };
    try {
      alive();
      for await (const event of events(path, over.signal)) {
        alive();
        pause = 500;
        if (event === null) state(true);
        else heard(event.name, JSON.parse(event.data));
      }
    } catch (error) {
      if (!(error instanceof TypeError || error instanceof Refused || error.name === "AbortError")) throw error;
    } finally {
      clearTimeout(watch);
      document.removeEventListener("visibilitychange", leave);
    }
    state(false);
    if (!document.hidden) await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

// Ask again and again, one question at a time, while somebody looks. Returns what asks at once.
export function every(seconds, work, isWanted) {
  let timer = null;
  let running = false;
  let again = false;
  async function now() {
    clearTimeout(timer);
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      if (isWanted() && !document.hidden) await work();
    } finally {
      running = false;
      timer = setTimeout(now, again ? 0 : seconds * 1000);
      again = false;
    }
  }
  document.addEventListener("visibilitychange", () => document.hidden || now());
  now();
  return now;
}
