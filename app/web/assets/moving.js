/* Moving about the time of a trace: what needs nothing of the server is followed at once. */
import * as address from "./address.js";
import { redraw } from "./asking.js";
import * as range from "./range.js";
import { hovered, model, seen } from "./seen.js";
/** @import { Range } from "./types.js" */

let hasMoved = () => {};
/** @param {() => void} told  whenever another range is looked at */
export const whenMoved = (told) => (hasMoved = told);
/** Tell that another range is looked at. */
export const moved = () => hasMoved();

/** @param {Range} to */
export function look(to) {
  Object.assign(seen.view, to);
  moved();
  address.note({ t: `${seen.view.t0}..${seen.view.t1}` });
  redraw();
}

/** @param {number} by */
const shift = (by) => look(range.slid(seen.view, by, model().length, model().factors));
/** @param {number} t0 */
export const slide = (t0) => shift(t0 - seen.view.t0);
/** @param {number} share  of the width of the view; to later times when positive */
export const pan = (share) => shift(share * (seen.view.t1 - seen.view.t0));
/**
 * @param {number} factor
 * @param {number} t
 */
export const zoom = (factor, t) => look(range.zoomed(seen.view, factor, t, model().length, model().factors));
/**
 * @param {number} pixels
 * @param {number} t
 */
export const wheel = (pixels, t) => zoom(range.turned(pixels, model().factors), t);

/** Where a key zooms: under the mouse, else at the cursor, else in the middle. */
export function here() {
  const under = hovered();
  return under ? Math.floor(under.t) : range.anchor(seen.view, seen.view.at);
}

/** Look at the end of the trace, at so much of it as is in view, or at `span` ns.
 * @param {number} [span] */
export function newest(span) {
  const { length } = model();
  const wide = Math.min(span || seen.view.t1 - seen.view.t0, length);
  look({ t0: length - wide, t1: length });
}

export const atEnd = () => seen.view.t1 >= model().length;
