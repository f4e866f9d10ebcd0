/* Stands where the page keeps its address: in a report a jump is answered at once, and the address
   stays what it is. */

/** @typedef {Record<string, string | null>} Changes */

/** What says where one is, left out.
 * @type {Changes} */
export const NOWHERE = { finding: null, sel: null, at: null, step: null, seq: null, ts: null };

/** @type {(changes: Changes) => void} */
let act = () => {};

/** @param {(changes: Changes) => void} given  is told of every jump */
export function follow(given) {
  act = given;
}

/** @param {Changes} changes */
export const navigate = (changes) => act(changes);

/** @param {string} move */
export const go = (move) => act({ go: move });

/** What was panned or zoomed is written nowhere. */
export const note = () => undefined;
