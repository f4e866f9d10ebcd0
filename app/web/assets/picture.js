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
    mark: bytes(head.mark),
    sparse: head.sparse.map((/** @type {any} */ each) => ({ ...each, start: floats(each.start), end: floats(each.end), state: bytes(each.state), parts: each.parts && bytes(each.parts) })),
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
  const { t0, t1, width, lanes, state, density, marked, mark, beside } = answer;
  const row = new Map(lanes.map((id, at) => /** @type {const} */ ([id, at])));
  const sparse = new Map(answer.sparse.map((each) => /** @type {const} */ ([
    each.lane,
    { start: each.start, end: each.end, state: each.state, parts: each.parts, label: each.label.map((at) => answer.labels[at]) },
  ])));
  const counters = new Map(answer.counters.map((line) => /** @type {const} */ ([line.lane, line])));
  const dense = answer.dense.map((id) => row.get(id) ?? 0);
  const place = new Map(answer.dense.map((id, at) => /** @type {const} */ ([id, at])));
  const signs = new Map(marked.map((id, at) => {
    const first = (row.get(id) ?? 0) * width;
    return /** @type {const} */ ([id, signsOf(state.subarray(first, first + width), mark.subarray(at * width, (at + 1) * width))]);
  }));
  return { t0, t1, width, row, dense, place, signs, sparse, counters, beside, state, density };
}

/**
 * Where a lane of pixels has the sign of a state that is a mark: where another fills the pixel, and
 * where a run of its pixels begins.
 * @param {Uint8Array} state
 * @param {Uint8Array} mark
 */
function signsOf(state, mark) {
  /** @type {[number, number][]} */
  const signs = [];
  for (let x = 0; x < mark.length; x++) if (mark[x] && (mark[x] !== state[x] || mark[x] !== mark[x - 1])) signs.push([x, mark[x]]);
  return signs;
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
