/* Ranges of time within a trace that begins at 0 and is `length` ns long; every move gives a new one.

   They move as `app/timeline/viewport.py` has it, by whole ns, so that the page follows a wheel or a
   drag at once. */
/** @import { Factors, Range } from "./types.js" */

/**
 * The nearest range of this width within the trace; the whole trace when it is wider.
 * @param {number} t0
 * @param {number} span
 * @param {number} length
 * @param {Factors} factors
 * @returns {Range}
 */
export function within(t0, span, length, factors) {
  const width = Math.min(Math.max(Math.round(span), factors.min_span), length);
  const from = Math.max(0, Math.min(Math.floor(t0), length - width));
  return { t0: from, t1: from + width };
}

/**
 * `factor` times less time (more, below 1); the time `at` keeps its place.
 * @param {Range} range
 * @param {number} factor
 * @param {number} at
 * @param {number} length
 * @param {Factors} factors
 */
export function zoomed({ t0, t1 }, factor, at, length, factors) {
  const span = Math.max(Math.round((t1 - t0) / factor), factors.min_span);
  return within(at - Math.floor(((at - t0) * span) / (t1 - t0)), span, length, factors);
}

/**
 * The same width, later by `shift` ns.
 * @param {Range} range
 * @param {number} shift
 * @param {number} length
 * @param {Factors} factors
 */
export const slid = ({ t0, t1 }, shift, length, factors) =>
  within(t0 + Math.round(shift), t1 - t0, length, factors);

/**
 * What zooming by a key keeps in place: the cursor where it is on the screen, else the middle.
 * @param {Range} range
 * @param {number} cursor
 */
export const anchor = ({ t0, t1 }, cursor) =>
  cursor >= t0 && cursor < t1 ? cursor : t0 + Math.floor((t1 - t0) / 2);

/**
 * How many times less is shown after the wheel has turned by so many pixels, 100 of them a notch.
 * @param {number} pixels  positive towards the user
 * @param {Factors} factors
 */
export const turned = (pixels, factors) =>
  factors.wheel ** (-Math.max(-120, Math.min(120, pixels)) / 100);
