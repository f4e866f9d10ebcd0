/* Where to stop: the line in the step's pane, and the way from hit to hit. */
import * as address from "./address.js";

let wanted = false; // the line, once its pane has come

/** @returns {HTMLInputElement | null} */
const line = () => /** @type {HTMLInputElement | null} */ (document.getElementById("break"));

/** Ask where to stop, in the step's pane. */
export function ask() {
  wanted = !line();
  if (wanted) address.navigate({ tab: "step" });
  else line()?.select();
}

/** A pane has come. */
export function filled() {
  if (!wanted || !line()) return;
  wanted = false;
  line()?.select();
}

/**
 * Look for what was typed; for nothing where that is empty.
 * @param {string} words
 */
export const look = (words) => address.navigate({ tab: "step", break: words.trim() });

/**
 * Go to a hit; ask what to look for where nothing is.
 * @param {string} move
 */
export const walk = (move) => (address.says("break") ? address.navigate({ go: move }) : ask());
