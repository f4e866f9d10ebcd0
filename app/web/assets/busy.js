/* What the page still waits for, told to whoever watches it (`aria-busy`): readers, tests. */

/** @type {Set<string>} */
const awaited = new Set();

/** What is done once nothing else is waited for, and what it ends.
 * @type {{ends: string, act: () => void} | null} */
let comesLast = null;

function tell() {
  // Dash may be about to make the page, or to make it anew.
  document.getElementById("page")?.setAttribute("aria-busy", String(awaited.size > 0));
  if (!comesLast || [...awaited].some((each) => each !== comesLast?.ends)) return;
  const { act } = comesLast;
  comesLast = null;
  act();
}

/** @param {string} what */
export function begin(what) {
  awaited.add(what);
  tell();
}

/** Do something as soon as nothing is waited for but what it ends.
 * @param {string} ends
 * @param {() => void} act */
export function doLast(ends, act) {
  comesLast = { ends, act };
  tell();
}

/** What nobody began does not end: Dash hands over a first, empty chart before the page is open.
 * @param {string} what */
export function end(what) {
  if (awaited.delete(what)) tell();
}
