/* The address is the view: every jump is a link such as `?finding=COR001.2` or `?go=next-step`,
   laid over what the address says already. The server answers with the view that it means. */
import * as busy from "./busy.js";
import { setProps } from "./dash.js";
/** @import { View } from "./types.js" */

/** @typedef {Record<string, string | null>} Changes */

const JUMPS = ["next-finding", "previous-finding"]; // what leaves the place where one was
const PATIENCE_MS = 5000; // an answer that takes longer no longer holds up the next jump

/** What says where one is, left out.
 * @type {Changes} */
export const NOWHERE = { finding: null, sel: null, at: null, step: null, seq: null, ts: null };

/** Jumps that wait for the view before them.
 * @type {[Changes, boolean][]} */
const waiting = [];
let asked = 0; // when the view under way was asked for; 0 when none is

/**
 * @param {Changes} changes
 * @param {"pushState" | "replaceState"} how
 */
function write(changes, how) {
  const all = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") all.delete(name);
    else all.set(name, value);
  }
  const query = all.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%40", "@");
  history[how](null, "", query ? `?${query}` : location.pathname);
}

/** Ask the server what the address means. */
export function ask() {
  asked = performance.now();
  busy.begin("view");
  setProps("address", { data: { search: location.search, asked } });
}

/**
 * Jump: `changes` are laid over the address; `keep` leaves no step behind in the history.
 * @param {Changes} changes
 */
export function navigate(changes, keep = false) {
  flush();
  waiting.push([changes, keep]);
  if (!asked || performance.now() - asked > PATIENCE_MS) next();
}

/**
 * Make a move of the keymap that needs the trace.
 * @param {string} move
 */
export const go = (move) => navigate({ go: move }, !JUMPS.includes(move));

/**
 * Whether the address says something of a name, once what waits has come.
 * @param {string} name
 */
export function says(name) {
  const last = waiting.findLast(([changes]) => name in changes);
  return Boolean(last ? last[0][name] : new URLSearchParams(location.search).get(name));
}

/** Whether a jump is under way, or waits. */
export const pending = () => waiting.length > 0 || (asked > 0 && performance.now() - asked < PATIENCE_MS);

function next() {
  const [changes, keep] = waiting.shift() || [{}, true];
  write(changes, keep ? "replaceState" : "pushState");
  ask();
}

/**
 * The server's view came in: the address is put into its one spelling, and the next jump starts
 * from there.
 * @param {View} view
 */
export function receive(view) {
  asked = 0;
  history.replaceState(null, "", view.search || location.pathname);
  if (waiting.length) return next();
  busy.begin("panes");
  return busy.end("view");
}

/* Put down what was done here without asking: panned, zoomed, pinned, filtered. */
let soon = 0;
/** @type {Changes} */
const later = {};

/** @param {Changes} changes */
export function note(changes) {
  Object.assign(later, changes);
  clearTimeout(soon);
  soon = setTimeout(flush, 150);
  busy.begin("address");
}

export function flush() {
  clearTimeout(soon);
  write(later, "replaceState");
  for (const name of Object.keys(later)) delete later[name];
  busy.end("address");
}

addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest('a[href^="?"]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  navigate(changesOf(link.getAttribute("href") || ""));
});

/**
 * A place of its own (finding, selection, step, change) brings its own range.
 * @param {string} href
 * @returns {Changes}
 */
export function changesOf(href) {
  const changes = Object.fromEntries(new URLSearchParams(href));
  const place = ["finding", "sel", "step", "seq", "ts"].find((name) => changes[name]);
  return place ? { ...NOWHERE, t: null, ...changes } : changes;
}

/** Back or forward: what was about to be written is of the entry that was left. */
addEventListener("popstate", () => {
  clearTimeout(soon);
  for (const name of Object.keys(later)) delete later[name];
  waiting.length = 0;
  busy.end("address");
  ask();
});
