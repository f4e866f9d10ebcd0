/* What the step's pane asks for: where to stop and the way from hit to hit, what to draw, what if. */
import * as address from "./address.js";

/** The lines to type in: what each holds has the same name in the address. */
export const ASKS = ["break", "value", "what"];

let wanted = ""; // the line that is typed in once its pane has come

/** @param {string} name */
const line = (name) => /** @type {HTMLInputElement | null} */ (document.getElementById(name));

/**
 * Ask, in the step's pane.
 * @param {string} name
 */
export function ask(name) {
  const lists = name === "what" && !address.says("what");
  if (lists || !line(name)) {
    want(name);
    address.navigate({ tab: "step", ...(lists && { what: "?" }) });
  } else line(name)?.select();
}

/**
 * Type in a line as soon as its pane has come.
 * @param {string} name
 */
export const want = (name) => void (wanted = name);

/** A pane has come. */
export function filled() {
  if (!wanted || !line(wanted)) return;
  line(wanted)?.select();
  wanted = "";
}

/**
 * Look for what was typed, or run it; for nothing where that is empty.
 * @param {string} name
 * @param {string} words
 */
export const look = (name, words) =>
  address.navigate({ tab: "step", [name]: words.trim(), ...(name === "what" && words.trim() && { go: "what-if" }) });

/**
 * Go to a hit; ask what to look for where nothing is.
 * @param {string} move
 */
export const walk = (move) => (address.says("break") ? address.navigate({ go: move }) : ask("break"));
