// What an operator has the gateway do: each after a question that says what comes of it, and to how many.

import { get, post, Refused } from "./api.js";
import { byId, count, plural, setText } from "./dom.js";

const LEVELS = byId("act-level");

// `does` is what the button of the question says; `words` are given how the gateway stands.
const ACTIONS = {
  pause: {
    title: "Pause this gateway?",
    does: "Pause",
    words: (now) => `New connections are refused until somebody resumes it. Sessions that are open go on: ${count(now.sessions)}.`,
    done: () => "Paused: new connections are refused.",
  },
  resume: {
    title: "Resume this gateway?",
    does: "Resume",
    words: (now) => `New connections are taken again. Sessions that are open go on: ${count(now.sessions)}.`,
    done: () => "Resumed: new connections are taken.",
  },
  reload: {
    title: "Read the policies again?",
    does: "Reload",
    words: (now) => `Policies are read from their folder, and come into force for ${plural(now.sessions, "open session")} and all that follow. If one is wrong, those of now stay in force.`,
    done: () => "The policies are read again and in force.",
  },
  drain: {
    title: "Drain and end this gateway?",
    does: "Drain and end",
    words: (now) => `New connections are refused. Each of ${plural(now.sessions, "open session")} ends when what it waits for is answered, or when the time of a drain is over. Then the gateway ends, and this page with it. It cannot be taken back.`,
    done: (now) => `It drains: ${plural(now.sessions, "session")} to part with.`,
  },
  "log-level": {
    title: "Change what is logged?",
    does: "Change",
    words: () => "The log has more, or less, from now to the end of the process. No session notices.",
    body: () => ({ level: LEVELS.value }),
    done: (now) => `The log's level is ${now.level}.`,
  },
};

const dialog = byId("act");
const form = byId("act-form");
const submit = form.querySelector("button[type=submit]");
// Of the question that is open: `act` does it, and gives what is to be said of it.
let wanted = null;

for (const button of document.querySelectorAll("[data-act]")) button.addEventListener("click", () => askFor(button.dataset.act));

// Of the whole gateway.
async function askFor(name) {
  const action = ACTIONS[name];
  try {
    const [now, log] = await Promise.all([get("/lifecycle"), name === "log-level" ? get("/log-level") : null]);
    const act = async () => action.done(await post(`/${name}`, action.body?.()));
    question({ ...action, words: action.words(now), act, wrong: name === "reload" ? unread : said });
    byId("act-level-label").hidden = log === null;
    if (log !== null) LEVELS.value = log.level;
  } catch (error) {
    setText(byId("act-said"), why(error, said));
  }
}

// Nothing is done before it is answered. What was done is told to `tell`, or where all actions are.
export function question(asked) {
  wanted = { wrong: said, tell: (text) => setText(byId("act-said"), text), ...asked };
  setText(byId("act-title"), wanted.title);
  setText(byId("act-words"), wanted.words);
  setText(byId("act-wrong"), "");
  setText(submit, wanted.does);
  submit.disabled = false;
  byId("act-level-label").hidden = true;
  wanted.tell("");
  dialog.showModal();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const asked = wanted;
  submit.disabled = true;
  try {
    const text = await asked.act();
    if (asked === wanted) dialog.close();
    asked.tell(text);
  } catch (error) {
    if (asked !== wanted) return;
    setText(byId("act-wrong"), why(error, asked.wrong));
    submit.disabled = false;
  }
});

// What went wrong, and what to do. Where the gateway has answered, `wrong` knows.
function why(error, wrong) {
  if (error.name === "TimeoutError") return "No answer yet. It may be done all the same: look before you try again.";
  if (!(error instanceof Refused)) return "The gateway does not answer. Look whether it runs, and try again.";
  if (error.status === 503) return "Not every worker has answered. It may be done in some: try again.";
  return wrong(error);
}

const said = (error) => error.message;

function unread(error) {
  if (error.status === 409) return "The settings name no folder of policies: there is nothing to read.";
  if (error.status !== 422) return error.message;
  try {
    const state = JSON.parse(error.message);
    return `Those of before stay in force. Mend this and reload: ${[state.file, state.line, state.error].filter(Boolean).join(":")}`;
  } catch {
    // A proxy in between has words of its own.
    return error.message;
  }
}
