/* The line for a query: what may be typed next, and the queries that were asked before. */
import { setProps } from "./dash.js";
import { byId, element } from "./dom.js";

/** @typedef {[word: string, replaces: number, meaning: string]} Word */

/** @type {Word[]} */
let words = [];
let chosen = 0;
let place = -1; // among the queries that were asked before; -1 is what is being typed
let draft = "";
let wanted = ""; // what stood before the cursor when words were asked for

const line = () => /** @type {HTMLTextAreaElement | null} */ (document.getElementById("sql"));

/** @returns {{before: string, after: string}} */
function halves() {
  const { value, selectionStart } = /** @type {HTMLTextAreaElement} */ (line());
  return { before: value.slice(0, selectionStart), after: value.slice(selectionStart) };
}

/** Something was typed: ask what may follow. */
export function typed() {
  place = -1;
  close();
  const typing = halves();
  wanted = typing.before;
  setProps("typed", { data: typing });
}

/** The words have come, of what may have changed by now.
 * @param {Word[] | null} given */
export function suggested(given) {
  if (!given || !line() || document.activeElement !== line() || halves().before !== wanted) return;
  words = given;
  chosen = 0;
  show();
}

function show() {
  const list = byId("suggested");
  list.replaceChildren(...words.map(([word, , meaning], at) => {
    const item = element("li", at === chosen ? "chosen" : "", word);
    item.append(element("span", "muted", meaning));
    Object.assign(item, { role: "option", ariaSelected: String(at === chosen), id: `word-${at}` });
    return item;
  }));
  list.hidden = !words.length;
  line()?.setAttribute("aria-activedescendant", words.length ? `word-${chosen}` : "");
}

function close() {
  words = [];
  wanted = "";
  if (document.getElementById("suggested")) show();
}

/** Put a word in place of what was begun.
 * @param {number} at */
function take(at) {
  const [word, replaces] = words[at];
  const { before, after } = halves();
  const text = before.slice(0, before.length - replaces) + word;
  const box = /** @type {HTMLTextAreaElement} */ (line());
  box.value = text + after;
  box.setSelectionRange(text.length, text.length);
  box.focus();
  close();
}

/** Show a query that was asked before, or what was being typed.
 * @param {number} by */
function recall(by) {
  const asked = [...document.querySelectorAll("#asked a")].map((each) => each.textContent || "");
  const box = /** @type {HTMLTextAreaElement} */ (line());
  const there = Math.min(Math.max(place + by, -1), asked.length - 1);
  if (there === place) return;
  if (place < 0) draft = box.value;
  place = there;
  box.value = place < 0 ? draft : asked[place];
  box.setSelectionRange(box.value.length, box.value.length);
}

/** Whether words are offered, which Escape closes first. */
export const isOffering = () => words.length > 0;

/** What a key does in the line; true where it has done something.
 * @param {KeyboardEvent} event
 * @returns {boolean} */
export function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const { before, after } = halves();
  const open = words.length > 0;
  if (open && (event.key === "Tab" || event.key === "Enter") && !event.shiftKey) take(chosen);
  else if (open && event.key === "Escape") close();
  else if (open && event.key === "ArrowDown") { chosen = (chosen + 1) % words.length; show(); }
  else if (open && event.key === "ArrowUp") { chosen = (chosen + words.length - 1) % words.length; show(); }
  else if (event.key === "ArrowUp" && !before.includes("\n")) recall(1);
  else if (event.key === "ArrowDown" && !after.includes("\n")) recall(-1);
  else return false;
  return true;
}

addEventListener("mousedown", (event) => {
  const item = /** @type {Element} */ (event.target).closest("#suggested li");
  if (!item) return;
  event.preventDefault();
  take([...byId("suggested").children].indexOf(item));
});
addEventListener("input", (event) => event.target === line() && typed());
addEventListener("focusout", (event) => event.target === line() && close());
