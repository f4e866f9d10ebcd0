/* Stands where the page asks its server: answers from the plates that a report holds. */
import { unpacked } from "./columns.js";
import { lastUpTo } from "./picture.js";
/** @import { Unpacked } from "./columns.js" */
/** @import { Answer, Asked, Counter, Range, Spans } from "./types.js" */

/** A window that the report holds: spans of some lanes, pixels of the others. A finer plate leaves
 * out the lanes that the first lists.
 * @typedef {object} Plate
 * @property {number} t0
 * @property {number} t1
 * @property {number} width
 * @property {Map<number, number>} dense  rows of `state` and `density` by lane
 * @property {Uint8Array} state
 * @property {Uint8Array} density
 * @property {Map<number, Uint8Array>} mark  of the lanes that have marks
 * @property {Map<number, Spans>} sparse
 * @property {Map<number, Counter>} counters */

/** @type {Plate[]} */
let plates = [];
/** @type {(finest: number) => string} */
let position = () => "";
/** @type {() => Range} */
let range = () => ({ t0: 0, t1: 1 });

/**
 * @param {Plate[]} given  the whole run first
 * @param {() => Range} seen  what is on the screen
 * @param {(finest: number) => string} told  says where that is, given the length of a pixel that
 *   lanes share in a picture of it, 0 where none does
 */
export function open(given, seen, told) {
  [plates, range, position] = [given, seen, told];
}

/**
 * A picture of what is asked for, from what the report holds.
 * @param {Asked} asked
 * @returns {Promise<Answer | null>}
 */
export const pictureOf = async (asked) => (plates.length ? answer(asked) : null);

/** @type {(lane: number, t: number) => string} */
let explained = () => "";

/** @param {(lane: number, t: number) => string} given  why the request of a lane waits at a time */
export function explain(given) {
  explained = given;
}

/**
 * Why the request of a lane waits at a time, where the report says so.
 * @param {{lane: number, t: number}} asked
 */
export const sentenceOf = async ({ lane, t }) => explained(lane, t);

/** The page of a report is there from the first.
 * @param {() => void} act */
export const onPage = (act) => act();

/** The finest plate that has all of a range.
 * @param {Range} seen */
function plateOf(seen) {
  const whole = plates[0];
  const [t0, t1] = [Math.max(seen.t0, whole.t0), Math.min(seen.t1, whole.t1)];
  const covering = plates.filter((each) => each.t0 <= t0 && each.t1 >= t1);
  return covering.reduce((best, each) => (each.t1 - each.t0 < best.t1 - best.t0 ? each : best), whole);
}

/**
 * The spans of a lane at a time and after it.
 * @param {number} lane
 * @returns {Spans | undefined}
 */
export const spansOf = (lane) => plateOf(range()).sparse.get(lane) || plates[0]?.sparse.get(lane);

/**
 * @param {Asked} asked
 * @returns {Answer}
 */
function answer(asked) {
  const plate = plateOf(range());
  const pixel = (plate.t1 - plate.t0) / plate.width;
  const from = Math.max(0, Math.min(plate.width - 1, Math.floor((asked.t0 - plate.t0) / pixel)));
  const to = Math.max(from + 1, Math.min(plate.width, Math.ceil((asked.t1 - plate.t0) / pixel)));
  const width = to - from;
  const [state, density] = [new Uint8Array(asked.lanes.length * width), new Uint8Array(asked.lanes.length * width)];
  /** @type {number[]} */
  const dense = [];
  /** @type {string[]} */
  const labels = [];
  const sparse = [];
  const counters = [];
  /** @type {number[]} */
  const marked = [];
  /** @type {number[]} */
  const mark = [];
  for (const [row, lane] of asked.lanes.entries()) {
    const spans = plate.sparse.get(lane) || plates[0].sparse.get(lane);
    const line = plate.counters.get(lane);
    const drawn = plate.dense.get(lane);
    if (spans) sparse.push(cut(spans, lane, asked, labels));
    else if (line) counters.push({ ...line, values: line.values.slice(from, to) });
    else if (drawn !== undefined) {
      dense.push(lane);
      const first = drawn * plate.width;
      state.set(plate.state.subarray(first + from, first + to), row * width);
      density.set(plate.density.subarray(first + from, first + to), row * width);
      const marks = plate.mark.get(lane);
      if (marks) {
        marked.push(lane);
        mark.push(...marks.subarray(from, to));
      }
    }
  }
  const [t0, t1] = [plate.t0 + from * pixel, plate.t0 + to * pixel];
  return {
    t0, t1, width, lanes: asked.lanes, dense, state, density, marked, mark: Uint8Array.from(mark), sparse, labels, counters,
    position: position(dense.length || counters.length ? pixel : 0), revision: asked.revision,
  };
}

/**
 * The spans of a lane that touch a range.
 * @param {Spans} spans
 * @param {number} lane
 * @param {Asked} asked
 * @param {string[]} labels  to which theirs are added
 */
function cut(spans, lane, asked, labels) {
  const last = lastUpTo(spans.start, asked.t1) + 1;
  let first = Math.max(0, lastUpTo(spans.start, asked.t0));
  while (first < last && spans.end[first] < asked.t0) first++;
  const label = [];
  for (let at = first; at < last; at++) label.push(labels.push(spans.label[at]) - 1);
  const wide = spans.parts ? spans.parts.length / spans.start.length : 0;
  const parts = spans.parts?.slice(first * wide, last * wide);
  return { lane, label, start: spans.start.slice(first, last), end: spans.end.slice(first, last), state: spans.state.slice(first, last), parts };
}

/**
 * What stands in the report by an id: a line of JSON, and the columns behind it.
 * @param {string} id
 * @returns {Promise<Unpacked | null>}
 */
export async function stored(id) {
  const block = document.getElementById(id);
  if (!block) return null;
  const raw = atob(block.textContent || "");
  const bytes = Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return unpacked(await new Response(stream).arrayBuffer());
}

/**
 * A plate as it is drawn from.
 * @param {Unpacked} packed
 * @returns {Plate}
 */
export function read({ head, bytes, floats }) {
  const sparse = new Map(head.sparse.map((/** @type {any} */ each) => [each.lane, { ...spansFrom(each, bytes(each.state), head.labels), parts: each.parts && bytes(each.parts) }]));
  const counters = new Map(head.counters.map((/** @type {any} */ each) => [each.lane, { ...each, values: floats(each.values) }]));
  const dense = new Map(head.dense.map((/** @type {number} */ lane, /** @type {number} */ at) => [lane, at]));
  const mark = new Map(head.marked.map((/** @type {number} */ lane, /** @type {number} */ at) => [lane, bytes(head.mark).subarray(at * head.width, (at + 1) * head.width)]));
  return { t0: head.t0, t1: head.t1, width: head.width, dense, mark, sparse, counters, state: bytes(head.state), density: bytes(head.density) };
}

/**
 * @param {{gap: number[], dur: number[], label: number[]}} packed  what lies before each, how long it is
 * @param {Uint8Array} state
 * @param {string[]} labels
 * @returns {Spans}
 */
function spansFrom({ gap, dur, label }, state, labels) {
  const [start, end] = [new Float64Array(gap.length), new Float64Array(gap.length)];
  let before = 0;
  for (let at = 0; at < gap.length; at++) {
    start[at] = before + gap[at];
    before = end[at] = start[at] + dur[at];
  }
  return { start, end, state, label: label.map((at) => labels[at]) };
}
