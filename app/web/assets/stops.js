/* What the step's pane asks for, where to stop and what to draw, and the way from hit to hit. */
import * as address from "./address.js";

/** The lines to type in: what each holds has the same name in the address. */
export const ASKS = ["break", "value"];

let wanted = ""; // the line that is typed in once its pane has come

/** @param {string} name */
const line = (name) => /** @type {HTMLInputElement | null} */ (document.getElementById(name));

/**
 * Ask, in the step's pane.
 * @param {string} name
 */
export function ask(name) {
  wanted = line(name) ? "" : name;
  if (wanted) address.navigate({ tab: "step" });
  else line(name)?.select();
}

/** A pane has come. */
export function filled() {
  if (!wanted || !line(wanted)) return;
  line(wanted)?.select();
  wanted = "";
}

/**
 * Look for what was typed; for nothing where that is empty.
 * @param {string} name
 * @param {string} words
 */
export const look = (name, words) => address.navigate({ tab: "step", [name]: words.trim() });

/**
 * Go to a hit; ask what to look for where nothing is.
 * @param {string} move
 */
export const walk = (move) => (address.says("break") ? address.navigate({ go: move }) : ask("break"));
