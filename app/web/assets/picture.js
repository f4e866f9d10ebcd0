/* What the server has drawn of a viewport, and what of it is where. */
/** @import { Unpacked } from "./columns.js" */
/** @import { Answer, Picture, Shown } from "./types.js" */

/** A picture as it was sent, with its columns.
 * @param {Unpacked} sent
 * @returns {Answer} */
export function answerOf({ head, bytes, floats }) {
  return {
    ...head,
    state: bytes(head.state),
    density: bytes(head.density),
    sparse: head.sparse.map((/** @type {any} */ each) => ({ ...each, start: floats(each.start), end: floats(each.end), state: bytes(each.state) })),
    counters: head.counters.map((/** @type {any} */ line) => ({ ...line, values: floats(line.values) })),
  };
}

/**
 * `dense` lists the rows of `state` and `density` whose lanes come as pixels, `sparse` has the
 * spans of the others by lane.
 * @param {Answer} answer
 * @returns {Picture}
 */
export function read(answer) {
  const { t0, t1, width, lanes, state, density, beside } = answer;
  const row = new Map(lanes.map((id, at) => /** @type {const} */ ([id, at])));
  const sparse = new Map(answer.sparse.map((each) => /** @type {const} */ ([
    each.lane,
    { start: each.start, end: each.end, state: each.state, label: each.label.map((at) => answer.labels[at]) },
  ])));
  const counters = new Map(answer.counters.map((line) => /** @type {const} */ ([line.lane, line])));
  const dense = answer.dense.map((id) => row.get(id) ?? 0);
  const place = new Map(answer.dense.map((id, at) => /** @type {const} */ ([id, at])));
  return { t0, t1, width, row, dense, place, sparse, counters, beside, state, density };
}

/**
 * Index of the last entry at or before a value; -1 when there is none.
 * @param {ArrayLike<number>} values
 * @param {number} limit
 */
export function lastUpTo(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * The span, shared pixel or sample of a lane at a time; `pixel` is a pixel's length in ns.
 * @param {Picture} picture
 * @param {number} lane
 * @param {number} t
 * @param {number} pixel
 * @returns {Shown | null}
 */
export function shownAt(picture, lane, t, pixel) {
  const spans = picture.sparse.get(lane);
  if (spans) {
    const i = lastUpTo(spans.start, t + pixel);
    if (i < 0 || spans.end[i] < t - pixel) return null;
    return { start: spans.start[i], end: spans.end[i], state: spans.state[i], label: spans.label[i] };
  }
  const x = Math.floor(((t - picture.t0) / (picture.t1 - picture.t0)) * picture.width);
  if (x < 0 || x >= picture.width) return null;
  const line = picture.counters.get(lane);
  if (line) return Number.isNaN(line.values[x]) ? null : { value: line.values[x], unit: line.unit };
  const row = picture.row.get(lane);
  if (row === undefined) return null;
  const at = row * picture.width + x;
  return picture.density[at] ? { state: picture.state[at], share: picture.density[at] / 255 } : null;
}
