// The gateway's last hour, as the page has it: asked for whole once, and then for what is new.

import { get } from "./api.js";

const FRESH = 4;
const MOST = 720;

let kept = null;
let asked = -Infinity;
let asking = null;

const now = () => performance.now() / 1000;

// A list for each series, all of the same length; `at` is in seconds since 1970. Null before the first answer.
export const hour = () => kept;

// Ask, unless that was just done.
export function refresh() {
  if (now() - asked < FRESH) return Promise.resolve();
  asking ??= ask().finally(() => (asking = null));
  return asking;
}

async function ask() {
  const known = kept !== null && kept.at.length && now() - asked < 60;
  const told = await get("/history", known ? { minutes: 2 } : {});
  asked = now();
  kept = known ? joined(kept, told) : told;
}

// What is told anew is in the place of what was known: a worker may have written late.
function joined(before, after) {
  if (!after.at.length) return before;
  const first = before.at.findIndex((at) => at >= after.at[0]);
  const end = first < 0 ? before.at.length : first;
  const hole = end && before.at[end - 1] + after.step < after.at[0] ? [null] : [];
  const result = { step: after.step };
  for (const name of Object.keys(after)) {
    if (name === "step") continue;
    const gap = name === "at" ? hole.map(() => before.at[end - 1] + after.step) : hole;
    result[name] = [...before[name].slice(0, end), ...gap, ...after[name]].slice(-MOST);
  }
  return result;
}
