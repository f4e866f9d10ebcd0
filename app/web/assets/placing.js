/* Where lanes stand on the screen, and what stands where the mouse is. */
import { RULER } from "./overlays.js";
import { shownAt } from "./picture.js";
import { rowOf } from "./rows.js";
import { box, height, model, seen, timeAt, width } from "./seen.js";
/** @import { Hover, Lane, Placed } from "./types.js" */

/** Rows on screen with their place on the canvas, the pinned ones last: they lie on top.
 * @returns {Placed[]} */
export function placed() {
  const { plan } = seen;
  const first = RULER + plan.pinnedHeight;
  const shift = first - box().scrollTop;
  const below = plan.rows
    .filter((row) => row.top + row.height + shift > first && row.top + shift < height())
    .map((row) => ({ row, y: row.top + shift }));
  return [...below, ...plan.pinned.map((row) => ({ row, y: RULER + row.top }))];
}

/** Scroll so that a lane can be seen.
 * @param {number} id */
export function reveal(id) {
  const row = rowOf(seen.plan, id);
  if (!row) return;
  const room = height() - RULER - seen.plan.pinnedHeight;
  const near = 2 * row.height; // of a core, the others of its group
  if (row.top - near < box().scrollTop || row.top + row.height + near > box().scrollTop + room)
    box().scrollTop = Math.max(0, row.top - room / 2);
}

/** The lanes of the rows between two heights; none where it began on the ruler.
 * @param {[number, number]} heights
 * @returns {number[]} */
export function lanesBetween([from, to]) {
  if (from < RULER) return [];
  const [high, low] = [Math.min(from, to), Math.max(from, to)];
  return placed().flatMap(({ row, y }) => (y + row.height > high && y <= low ? row.lanes : []));
}

/** What is where the mouse is.
 * @param {number} x
 * @param {number} y
 * @returns {Hover}
 */
export function at(x, y) {
  const t = timeAt(x);
  const found = placed().reverse().find(({ row, y: top }) => y >= top && y < top + row.height);
  if (!found || y < RULER) return { x, y, t, row: null, lane: null, shown: null };
  const { row } = found;
  const id = row.lanes[Math.floor(((y - found.y) / row.height) * row.lanes.length)];
  /** @type {Lane | null} */
  const lane = id === undefined ? null : model().lanes[id];
  const { picture, view } = seen;
  const shown = lane && picture ? shownAt(picture, lane.id, t, (view.t1 - view.t0) / width()) : null;
  return { x, y, t, row, lane, shown };
}
