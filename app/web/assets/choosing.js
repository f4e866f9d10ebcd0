/* Choosing on the timeline: a place, lanes to pin or collapse, states to hide, a range to mark. */
import * as address from "./address.js";
import { redraw } from "./asking.js";
import { arrange, draw } from "./drawing.js";
import { flagNear } from "./flags.js";
import { ranges } from "./numbering.js";
import { RULER } from "./overlays.js";
import { at, lanesBetween } from "./placing.js";
import { model, seen, xOf } from "./seen.js";
import * as tip from "./tip.js";

export const laneHere = () => (seen.view.lane === null ? undefined : model().lanes[seen.view.lane]);
export const otherColours = () => Boolean(seen.model) && seen.view.colours !== model().colours;

/**
 * @param {number} lane
 * @param {number} t
 */
export function select(lane, t) {
  address.navigate({ ...address.NOWHERE, sel: `${lane}@${Math.round(t)}` }, true);
}

/** Note in the address what has changed of the view.
 * @param {Record<string, string | null>} spelled */
function changed(spelled) {
  address.note(spelled);
  arrange();
  redraw();
}

/**
 * @template T
 * @param {T[]} list
 * @param {T} entry
 */
const toggled = (list, entry) => (list.includes(entry) ? list.filter((each) => each !== entry) : [...list, entry]);

/** @param {number | null} id */
export function pin(id) {
  if (id === null) return;
  seen.view.pin = toggled(seen.view.pin, id);
  changed({ pin: seen.view.pin.join(",") });
}

/** @param {string | undefined} key */
export function collapse(key) {
  if (!key) return;
  const { view } = seen;
  view.collapse = toggled(view.collapse, key);
  const otherwise = [...model().collapsed, ...view.collapse].filter((each) => model().collapsed.includes(each) !== view.collapse.includes(each));
  changed({ collapse: otherwise.map(encodeURIComponent).join(",") });
}

/** @param {string} name  of a state */
export function hide(name) {
  seen.view.hide = toggled(seen.view.hide, name);
  changed({ hide: seen.view.hide.join(",") });
}

/** The flag at a place of the ruler.
 * @param {number} x */
export const flagAt = (x) => flagNear(seen.view, xOf, x);

/** @param {number} x  of the ruler */
export function goToFlag(x) {
  const flag = flagAt(x);
  if (flag) address.navigate({ go: `flag-${flag[0]}` });
}

/**
 * @param {[number, number]} ends
 * @param {[number, number]} heights
 */
export function mark(ends, heights) {
  const { view } = seen;
  view.mark = [Math.round(Math.min(...ends)), Math.round(Math.max(...ends))];
  view.begun = null;
  view.lanes = lanesBetween(heights);
  redraw();
  address.navigate({ mark: view.mark.join(".."), begun: null, lanes: ranges(view.lanes), pick: null }, true);
}

/**
 * @param {[number, number] | null} ends
 * @param {[number, number]} [heights]
 */
export function sketch(ends, heights) {
  seen.sketched = ends;
  seen.dragged = heights ? lanesBetween(heights) : [];
  draw();
}

/**
 * @param {number | null} x
 * @param {number} [y]
 */
export function point(x, y = 0) {
  seen.hover = x === null ? null : at(x, y);
  tip.show(seen.hover, model(), otherColours(), x === null || y >= RULER ? null : flagAt(x));
  draw();
}
