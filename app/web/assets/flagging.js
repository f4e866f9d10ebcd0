/* Putting a flag, changing one, taking one away: what is typed goes to the server, and comes back
   with the next view. */
import * as address from "./address.js";
import * as busy from "./busy.js";
import { setProps } from "./dash.js";
import { byId, overlay } from "./dom.js";
import { moment } from "./scale.js";
import { seen } from "./seen.js";
/** @import { FlagAt } from "./types.js" */

/** @typedef {{said: string, failed: string, asked: number}} Told */

/** Which flag is changed, empty for a new one; and when a new one is, null for where one is put else.
 * @type {{was: string, t: number | null}} */
let asked = { was: "", t: null };

const line = () => /** @type {HTMLInputElement} */ (byId("flag-text"));

/**
 * @param {string} place
 * @param {string} text  in the line at first
 * @param {typeof asked} about
 */
function open(place, text, about) {
  asked = about;
  byId("flag-place").textContent = place;
  byId("flag-failed").textContent = "";
  byId("flag-gone").hidden = !about.was;
  setProps("flag-text", { value: text });
  line().value = text;
  overlay("flag", true);
  line().focus();
  line().select();
}

/** Put one where one is put now, or change the one that is there. */
export function ask() {
  const { flag } = seen.view;
  if (!flag) return;
  open(flag.was ? `@${flag.was}` : `at ${flag.place}`, flag.line, { was: flag.was, t: null });
}

/** Put one at a time of the ruler, or change the one that is there.
 * @param {number} t
 * @param {FlagAt | null} there */
export function askAt(t, there) {
  const { flag } = seen.view;
  if (!flag) return;
  if (there) change(there[0], `@${there[0]} ${there[1]}`);
  else open(`at ${moment(t, 1000)}`, flag.new, { was: "", t: Math.max(0, Math.round(t)) });
}

/**
 * @param {string} name
 * @param {string} text
 */
export const change = (name, text) => open(`@${name}`, text, { was: name, t: null });

export const isOpen = () => byId("flag").matches(".open");

export function close() {
  overlay("flag", false);
}

export function keep() {
  const text = line().value;
  if (!text.trim() && !asked.was) close();
  else send(text, asked);
}

/** @param {string} name */
export const drop = (name) => send("", { was: name, t: null });

/**
 * @param {string} text
 * @param {typeof asked} about
 */
function send(text, about) {
  address.flush();
  busy.begin("flag");
  setProps("flag-typed", { data: { search: location.search, line: text, ...about, asked: performance.now() } });
}

/** The server has done what was typed, or says why not.
 * @param {Told | null} told */
export function flagged(told) {
  if (!told) return;
  busy.end("flag");
  if (told.failed && isOpen()) {
    byId("flag-failed").textContent = told.failed;
    line().focus();
    return;
  }
  if (isOpen()) close();
  byId("said").textContent = told.failed || told.said;
  address.navigate({}, true);
}

addEventListener("click", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.closest("#flag-keep")) keep();
  if (target.closest("#flag-cancel") || target.id === "flag") close();
  const button = /** @type {HTMLElement | null} */ (target.closest(".flag-change, .flag-drop"));
  if (!button) return;
  const name = button.dataset.name || "";
  if (button.matches(".flag-drop")) drop(name);
  else change(name, button.dataset.line || "");
});

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.id === "flag-text" && event.key === "Enter") keep();
});
