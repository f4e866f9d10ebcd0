/* What the page still waits for, told to whoever watches it (`aria-busy`): readers, tests. */

/** @type {Set<string>} */
const awaited = new Set();

// Dash may be about to make the page, or to make it anew.
const tell = () => document.getElementById("page")?.setAttribute("aria-busy", String(awaited.size > 0));

/** @param {string} what */
export function begin(what) {
  awaited.add(what);
  tell();
}

/** What nobody began does not end: Dash hands over a first, empty chart before the page is open.
 * @param {string} what */
export function end(what) {
  if (awaited.delete(what)) tell();
}
