/* Paints spans: boxes where they are wide enough, shared pixels where they are not. */
import { amount } from "./scale.js";
import { CUES, DARK, FAINT, FRAMED, PERIOD } from "./shared.js";
/** @import { Counter, Pen, Picture, Spans, State } from "./types.js" */

/** Maps time to pixels: x = (t - t0) * scale.
 * @typedef {{t0: number, scale: number, width: number, states: State[], muted: string, ground: string}} Scale */

const NARROW = 2;    // spans below this many pixels share the pixels that they fall in
const MOMENT = 7;    // pixels across that a moment is painted, which takes no time
const LABELLED = 16; // spans below this many pixels get no label
const LEAST = 5;     // pixels of height that each part of what is split has
const SIGN = 11;     // pixels across that the letter of a state has
const SCALE = 11;    // pixels above a counter's line, for the most that it is
export const FONT = '11px system-ui, -apple-system, "Segoe UI", "Cantarell", "DejaVu Sans", sans-serif';

/** @type {Map<string, number>} */
const widths = new Map();

/**
 * How wide a text or a letter is, each measured once.
 * @param {Pen} ctx
 * @param {string} text
 */
function widthOf(ctx, text) {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    widths.set(text, (width = ctx.measureText(text).width));
  }
  return width;
}

/**
 * Text cut to fit, if three letters of it do.
 * @param {Pen} ctx
 * @param {string} text
 * @param {number} room
 */
function fitted(ctx, text, room) {
  if (widthOf(ctx, text) <= room) return text;
  let left = room - widthOf(ctx, "…");
  let keep = 0;
  while (keep < text.length && (left -= widthOf(ctx, text[keep])) >= 0) keep += 1;
  return keep >= 3 ? `${text.slice(0, keep)}…` : "";
}

const hatching = (function () {
  /** @type {CanvasPattern | null} */
  let made = null;
  /** @param {Pen} ctx */
  return (ctx) => {
    if (made) return made;
    const tile = new OffscreenCanvas(6, 6);
    const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (tile.getContext("2d"));
    pen.fillStyle = "rgb(0 0 0 / 45%)";
    for (let y = 0; y < 6; y++) for (let x = 0; x < 6; x++) if (CUES.hatch(x, y)) pen.fillRect(x, y, 1, 1);
    return (made = /** @type {CanvasPattern} */ (ctx.createPattern(tile, "repeat")));
  };
})();

/** What a pattern shows, for a pen that writes it: a colour and a cue.
 * @type {WeakMap<CanvasPattern, {colour: string, cue: string}>} */
export const shownBy = new WeakMap();

/** The pattern of a wait in the colour of its state.
 * @type {(ctx: Pen, state: State) => CanvasPattern} */
const patterned = (function () {
  /** @type {Map<string, CanvasPattern>} */
  const made = new Map();
  return (ctx, { colour, cue }) => {
    const found = made.get(colour + cue);
    if (found) return found;
    const tile = new OffscreenCanvas(PERIOD, PERIOD);
    const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (tile.getContext("2d"));
    pen.fillStyle = colour;
    for (let y = 0; y < PERIOD; y++) for (let x = 0; x < PERIOD; x++) {
      pen.globalAlpha = isLit(cue, x, y) ? 1 : DARK;
      pen.fillRect(x, y, 1, 1);
    }
    const pattern = /** @type {CanvasPattern} */ (ctx.createPattern(tile, "repeat"));
    shownBy.set(pattern, { colour, cue });
    made.set(colour + cue, pattern);
    return pattern;
  };
})();

/** Whether a pixel of a tile of a pattern is as bright as its frame; rows 2 to 13 of a lane are inside.
 * @param {string} cue
 * @param {number} x
 * @param {number} y */
export const isLit = (cue, x, y) => !CUES[cue](x, y < 2 ? y + PERIOD : y);

/**
 * @param {Pen} ctx
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {State} state
 */
function box(ctx, x, y, width, height, state) {
  ctx.beginPath();
  if (state.cue === "hollow" || FRAMED.has(state.cue)) {
    ctx.rect(x + 0.5, y + 1.5, Math.max(0.5, width - 1), height - 3);
    if (state.cue !== "hollow") {
      ctx.fillStyle = patterned(ctx, state);
      ctx.fill();
    }
    ctx.strokeStyle = state.colour;
    ctx.stroke();
    return;
  }
  ctx.roundRect(x, y, width, height, width > 5 ? 2 : 0);
  ctx.fillStyle = state.cue === "mark" ? `${state.colour}30` : state.colour;
  ctx.fill();
  if (state.cue === "hatch") {
    ctx.fillStyle = hatching(ctx);
    ctx.fill();
  }
}

/**
 * Marks that point down where a request lost its place; those that would touch are left out.
 * @param {Pen} ctx
 * @param {[number, State][]} points
 * @param {number} y
 */
function pointers(ctx, points, y) {
  let last = -Infinity;
  for (const [x, state] of points) {
    if (x - last < 12) continue;
    last = x;
    ctx.beginPath();
    ctx.moveTo(x - 5, y + 4);
    ctx.lineTo(x + 5, y + 4);
    ctx.lineTo(x, y + 13);
    ctx.fillStyle = state.colour;
    ctx.fill();
  }
}

/**
 * The letters of states where others fill the pixels; those that would touch are left out.
 * @param {Pen} ctx
 * @param {[number, State][]} points
 * @param {number} y
 * @param {number} height
 */
function letters(ctx, points, y, height) {
  const tall = Math.min(SIGN + 1, height);
  let last = -Infinity;
  for (const [at, state] of points) {
    const x = Math.max(at, SIGN / 2); // all of it is on the canvas
    if (x - last < SIGN + 1) continue;
    last = x;
    ctx.fillStyle = state.colour;
    if (tall < SIGN) {
      ctx.fillRect(x - 1, y, 2, height);
      continue;
    }
    ctx.fillRect(x - SIGN / 2, y + (height - tall) / 2, SIGN, tall);
    ctx.fillStyle = state.ink;
    ctx.textAlign = "center";
    ctx.fillText(state.glyph, x, y + height / 2 + 4);
    ctx.textAlign = "left";
  }
}

/**
 * The signs of states over a lane that comes as pixels.
 * @param {Pen} ctx
 * @param {[number, State][]} points
 * @param {number} y
 * @param {number} height
 */
export function signs(ctx, points, y, height) {
  if (height >= 12) pointers(ctx, points.filter(([, state]) => state.cue === "mark"), y);
  letters(ctx, points.filter(([, state]) => state.cue === "split"), y, height);
}

/** Where a part of what is split is: from the top, and how high.
 * @typedef {{state: State, top: number, tall: number}} Band */

/**
 * The parts of what is split, one above the other, by their shares; halves where nobody knows them.
 * @param {State} state
 * @param {ArrayLike<number>} shares
 * @param {State[]} states
 * @param {number} height
 * @returns {Band[]}
 */
function bands(state, shares, states, height) {
  const known = state.parts.map((part, at) => ({ state: states[part], share: shares[at] || 0 })).filter(({ share }) => share > 0);
  const shown = known.length ? known : state.parts.slice(-2).map((part) => ({ state: states[part], share: 1 }));
  const whole = shown.reduce((sum, { share }) => sum + share, 0);
  const spare = Math.max(0, height - LEAST * shown.length);
  let top = 0;
  return shown.map(({ state: own, share }) => {
    const tall = Math.min(LEAST, height / shown.length) + (spare * share) / whole;
    top += tall;
    return { state: own, top: top - tall, tall };
  });
}

/**
 * A split box: its parts, and a line between the last, which is decodes, and those above.
 * @param {Pen} ctx
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {State} state
 * @param {Band[]} parts
 */
function splitBox(ctx, x, y, width, height, state, parts) {
  for (const { state: own, top, tall } of parts) {
    ctx.fillStyle = own.colour;
    ctx.fillRect(x, y + top, width, tall);
    if (own.cue !== "hatch") continue;
    ctx.fillStyle = hatching(ctx);
    ctx.fillRect(x, y + top, width, tall);
  }
  ctx.fillStyle = state.colour;
  if (height >= 12) ctx.fillRect(x, y + parts[parts.length - 1].top - 0.5, width, 1);
}

/**
 * Whether a span takes no time, and stands apart from those that do.
 * @param {Spans} lane
 * @param {number} i
 */
function isMoment(lane, i) {
  const [start, end] = [lane.start[i], lane.end[i]];
  /** @param {number} j */
  const touches = (j) => lane.end[j] > lane.start[j] && lane.end[j] >= start && lane.start[j] <= end;
  return start === end && !touches(i - 1) && !touches(i + 1);
}

/**
 * Diamonds where something happened that took no time; those that would lie on each other are left out.
 * @param {Pen} ctx
 * @param {[number, State][]} moments
 * @param {number} y
 * @param {number} height
 * @param {Scale} view
 */
function diamonds(ctx, moments, y, height, view) {
  const [across, down] = [MOMENT / 2, Math.min(MOMENT, height - 4) / 2];
  const middle = y + height / 2;
  let last = -Infinity;
  for (const [x, state] of moments) {
    if (x - last < across) continue;
    last = x;
    ctx.beginPath();
    ctx.moveTo(x, middle - down);
    ctx.lineTo(x + across, middle);
    ctx.lineTo(x, middle + down);
    ctx.lineTo(x - across, middle);
    ctx.fillStyle = state.cue === "hollow" ? view.muted : state.colour;
    ctx.fill();
  }
}

/**
 * The spans of one lane.
 * @param {Pen} ctx
 * @param {Spans} lane
 * @param {Scale} view
 * @param {number} y
 * @param {number} height
 */
export function spans(ctx, lane, view, y, height) {
  /** @type {Shared} */
  const shared = { x: -1, share: 0, longest: 0, state: null, y, height, mark: null, marks: [], states: view.states };
  /** @type {[number, State][]} */
  const points = [];
  /** @type {[number, State][]} */
  const moments = [];
  for (let i = 0; i < lane.start.length; i++) {
    const from = (lane.start[i] - view.t0) * view.scale;
    const to = (lane.end[i] - view.t0) * view.scale;
    if (to < 0 || from > view.width) continue;
    const state = view.states[lane.state[i]];
    if (state.cue === "mark") points.push([from + Math.min(7, (to - from) / 2), state]);
    if (state.cue !== "mark" && isMoment(lane, i)) {
      moments.push([from, state]);
      continue;
    }
    if (to - from < NARROW) {
      gather(ctx, shared, Math.floor(from), to - from, state, y, height);
      continue;
    }
    const left = Math.max(-4, from);
    const width = Math.min(view.width + 4, to) - left - (to - from >= 4 ? 1 : 0);
    const parts = state.cue === "split" ? bands(state, lane.parts ? lane.parts.subarray(i * state.parts.length, (i + 1) * state.parts.length) : [], view.states, height) : [];
    if (parts.length) splitBox(ctx, left, y, width, height, state, parts);
    else box(ctx, left, y, width, height, state);
    if (width >= LABELLED && height >= 12) label(ctx, lane.label[i], left, y, width, height, inked(state, parts), view);
  }
  gather(ctx, shared, -1, 0, null, y, height);
  diamonds(ctx, moments, y, height, view);
  letters(ctx, shared.marks, y, height);
  if (height >= 12) pointers(ctx, points, y);
}

/**
 * A state with the ink of its highest part, if it has any.
 * @param {State} state
 * @param {Band[]} parts
 * @returns {State}
 */
const inked = (state, parts) =>
  parts.length ? { ...state, ink: parts.reduce((most, each) => (each.tall > most.tall ? each : most)).state.ink } : state;

/**
 * @param {Pen} ctx
 * @param {string} text
 * @param {number} left
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {State} state
 * @param {Scale} view
 */
function label(ctx, text, left, y, width, height, state, view) {
  const from = Math.max(0, left) + (state.cue === "mark" ? 15 : 4);
  const shown = text && fitted(ctx, text, left + width - from - 3);
  if (!shown || (state.name === "held" && shown !== text)) return;
  const isFramed = FRAMED.has(state.cue);
  if (state.cue === "hatch" || isFramed) {
    ctx.fillStyle = isFramed ? view.ground : state.colour;
    ctx.fillRect(from - 3, y + (isFramed ? 3 : 1), ctx.measureText(shown).width + 6, height - (isFramed ? 6 : 2));
  }
  const inks = new Map([["hollow", view.muted], ["mark", state.colour]]);
  ctx.fillStyle = isFramed ? view.muted : inks.get(state.cue) || state.ink;
  ctx.fillText(shown, from, y + height / 2 + 4);
}

/** A pixel that narrow spans share; `mark` is a split state in it, `marks` where such are seen otherwise.
 * @typedef {{x: number, share: number, longest: number, state: State | null, y: number, height: number, mark: State | null, marks: [number, State][], states: State[]}} Shared */

/**
 * Add a narrow span to the pixel it falls in; the pixel shows the longest, and how busy it is.
 * @param {Pen} ctx
 * @param {Shared} shared
 * @param {number} x
 * @param {number} width
 * @param {State | null} state
 * @param {number} y
 * @param {number} height
 */
function gather(ctx, shared, x, width, state, y, height) {
  if (x !== shared.x) {
    if (shared.state) {
      ctx.globalAlpha = FAINT + (1 - FAINT) * Math.min(1, shared.share);
      sliver(ctx, shared.x, shared.y, shared.height, shared.state, shared.states);
      ctx.globalAlpha = 1;
      if (shared.mark && shared.mark !== shared.state) shared.marks.push([shared.x, shared.mark]);
    }
    Object.assign(shared, { x, share: 0, longest: -1, y, height, mark: null });
    if (x < 0) return;
  }
  shared.share += width;
  if (state?.cue === "split") shared.mark = state;
  if (width > shared.longest) Object.assign(shared, { longest: width, state });
}

/**
 * @param {Pen} ctx
 * @param {number} x
 * @param {number} y
 * @param {number} height
 * @param {State} state
 * @param {State[]} states
 */
function sliver(ctx, x, y, height, state, states) {
  if (state.cue === "split") return splitBox(ctx, x, y, 1, height, state, bands(state, [], states, height));
  if (FRAMED.has(state.cue)) {
    ctx.fillStyle = patterned(ctx, state);
    ctx.fillRect(x, y + 2, 1, height - 4);
  }
  ctx.fillStyle = state.colour;
  if (state.cue === "hollow" || FRAMED.has(state.cue)) {
    ctx.fillRect(x, y + 1, 1, 1);
    ctx.fillRect(x, y + height - 2, 1, 1);
  } else if (!(state.cue === "ticks" && CUES.ticks(x, y))) ctx.fillRect(x, y, 1, height);
  return undefined;
}

/**
 * A line that holds each value until the next, with its scale in the corner.
 * @param {Pen} ctx
 * @param {Counter} line
 * @param {Picture} picture
 * @param {Scale} view
 * @param {number} y
 * @param {number} height
 */
export function counter(ctx, line, picture, view, y, height) {
  const spread = line.high - line.low || 1;
  /** @param {number} value */
  const scaled = (value) => y + height - 2 - ((value - line.low) / spread) * (height - SCALE - 4);
  const perPixel = (picture.t1 - picture.t0) / picture.width;
  /** @param {number} i */
  const at = (i) => (picture.t0 + i * perPixel - view.t0) * view.scale;
  ctx.beginPath();
  /** @type {number | null} */
  let begun = null;
  for (let i = 0; i < picture.width; i++) {
    const value = line.values[i];
    if (Number.isNaN(value)) continue;
    if (begun === null) ctx.moveTo((begun = at(i)), scaled(value));
    else ctx.lineTo(at(i), scaled(value));
    ctx.lineTo(at(i + 1), scaled(value));
  }
  if (begun === null) return;
  ctx.strokeStyle = view.muted;
  ctx.stroke();
  ctx.lineTo(at(picture.width), y + height);
  ctx.lineTo(begun, y + height);
  ctx.globalAlpha = 0.13;
  ctx.fillStyle = view.muted;
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.fillStyle = view.muted;
  ctx.fillText(amount(line.high, line.unit), 4, y + 9);
}
