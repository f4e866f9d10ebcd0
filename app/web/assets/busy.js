/* What the page still waits for, told to whoever watches it (`aria-busy`): readers, tests. */
import { byId } from "./dom.js";

/** @type {Set<string>} */
const awaited = new Set();

const tell = () => byId("page").setAttribute("aria-busy", String(awaited.size > 0));

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
