/* One frame of the timeline: rows, what ran in them, and what lies over them. */
import { paintOver } from "./overlays.js";
import * as paint from "./paint.js";
import { ticks } from "./scale.js";
/** @import { Frame, Lane, Pen, Picture, Placed, Ticks } from "./types.js" */

/** A lane where it is drawn.
 * @typedef {{lane: Lane, y: number, height: number}} Part */

const PAD = 2; // between a row's edge and its spans

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 */
export function paintFrame(ctx, frame) {
  const { view, picture, colours, width, height } = frame;
  const scale = { t0: view.t0, scale: width / (view.t1 - view.t0), width, states: shown(frame), muted: colours.muted, ground: colours.background };
  ctx.fillStyle = colours.background;
  ctx.fillRect(0, 0, width, height);
  const marks = ticks(view.t0, view.t1, width / 110);
  grid(ctx, frame, marks);
  for (const place of frame.placed) {
    ground(ctx, frame, place);
    for (const part of parts(frame, place)) {
      if (picture && picture.row.has(part.lane.id)) content(ctx, frame, picture, scale, part);
      else if (place.row.kind === "lane") awaited(ctx, frame, part);
    }
  }
  paintOver(ctx, frame, marks);
}

/**
 * Hidden states stay as a trace of themselves.
 * @param {Frame} frame
 */
const shown = ({ model, view }) =>
  model.states.map((state) => (view.hide.includes(state.name) ? { ...state, colour: `${state.colour}1c`, cue: "solid", ink: "transparent" } : state));

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {Ticks} marks
 */
function grid(ctx, { xOf, height, colours }, marks) {
  ctx.fillStyle = colours.panel;
  for (const { t } of marks) ctx.fillRect(Math.round(xOf(t)), 0, 1, height);
}

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {Placed} place
 */
function ground(ctx, { width, colours, view }, { row, y }) {
  if (row.kind === "section" || row.pinned) {
    ctx.fillStyle = row.pinned ? colours.raised : colours.panel;
    ctx.fillRect(0, y, width, row.height);
  } else if (view.lane !== null && row.lanes.includes(view.lane)) {
    ctx.fillStyle = `${colours.accent}14`;
    ctx.fillRect(0, y, width, row.height);
  }
  ctx.fillStyle = row.kind === "section" ? colours.border : `${colours.border}59`;
  ctx.fillRect(0, y + row.height - 1, width, 1);
  if (!row.note) return;
  ctx.fillStyle = colours.muted;
  ctx.fillText(row.note, 4, y + 15);
}

/**
 * Where each lane of a row is drawn: a strip shows its lanes thinly, one above the other.
 * @param {Frame} frame
 * @param {Placed} place
 * @returns {Part[]}
 */
function parts({ model }, { row, y }) {
  const part = (row.height - 2 * PAD) / Math.max(1, row.lanes.length);
  const height = row.lanes.length > 1 ? Math.max(1, part - 1) : part;
  return row.lanes.map((id, at) => ({ lane: model.lanes[id], y: y + PAD + at * part, height }));
}

/**
 * A lane of which the server has not told yet is not one in which nothing ran.
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {Part} part
 */
function awaited(ctx, { colours }, { y, height }) {
  ctx.fillStyle = colours.muted;
  ctx.fillText("…", 4, y + height / 2 + 3);
}

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {Picture} picture
 * @param {paint.Scale} scale
 * @param {Part} part
 */
function content(ctx, frame, picture, scale, { lane, y, height }) {
  const spans = picture.sparse.get(lane.id);
  if (spans) return paint.spans(ctx, spans, scale, y, height);
  const line = picture.counters.get(lane.id);
  if (line) return paint.counter(ctx, line, picture, scale, y, height);
  const place = picture.place.get(lane.id);
  if (place === undefined || !picture.image) return undefined;
  const { top, tall } = picture.image.places[place];
  const from = frame.xOf(picture.t0);
  const wide = frame.xOf(picture.t1) - from;
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(picture.image.drawn, 0, top, picture.width, tall, from, y, wide, height);
  const signs = picture.signs.get(lane.id) || [];
  return paint.signs(ctx, signs.map(([x, state]) => [from + ((x + 0.5) * wide) / picture.width, scale.states[state]]), y, height);
}
