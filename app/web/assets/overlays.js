/* What lies over the rows of a frame: selection, arrows, findings, ruler, the step in question, mark, cursor. */
import { paintFlags } from "./flags.js";
import { paintFlows } from "./flows.js";
import { duration, labelled, moment } from "./scale.js";
/** @import { Frame, Pen, Placed, Ticks } from "./types.js" */

export const RULER = 26;
const HALF = 13;
const GLYPHS = { error: "✖", warning: "▲", info: "●" };

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {Ticks} marks
 */
export function paintOver(ctx, frame, marks) {
  paintFlows(ctx, frame, RULER);
  selected(ctx, frame);
  findings(ctx, frame);
  ruler(ctx, frame, marks);
  paintFlags(ctx, frame, RULER);
  during(ctx, frame);
  marked(ctx, frame);
  diverged(ctx, frame);
  cursor(ctx, frame);
}

/**
 * Where two traces diverge: a line through all, and whose it is on the ruler.
 * @param {Pen} ctx
 * @param {Frame} frame
 */
function diverged(ctx, frame) {
  const [a, b] = frame.view.diverged || [];
  if (a === undefined || b === undefined) return;
  const places = a === b ? [[a, "≠ A B"]] : [[a, "≠ A"], [b, "≠ B"]];
  for (const [t, label] of /** @type {[number, string][]} */ (places)) {
    const x = frame.xOf(t);
    if (x < 0 || x > frame.width) continue;
    through(ctx, frame, x);
    ctx.fillStyle = frame.colours.raised;
    ctx.fillRect(x + 1, 1, ctx.measureText(label).width + 6, 13);
    ctx.fillStyle = frame.colours.accent;
    ctx.fillText(label, x + 4, 11);
  }
}

/**
 * @param {Frame} frame
 * @param {number} lane
 */
const placeOf = (frame, lane) => frame.placed.findLast(({ row }) => row.lanes.includes(lane));

/** The header of the collapsed section that a lane is in.
 * @param {Frame} frame
 * @param {number} lane
 */
function headerOf({ model, placed, view }, lane) {
  const { section } = model.lanes[lane];
  return view.collapse.includes(section) ? placed.find(({ row }) => row.kind === "section" && row.key === section) : undefined;
}

/**
 * Every finding has a tick over its lane, or over the header of the section that hides it; the
 * current one is framed and has a line through all.
 * @param {Pen} ctx
 * @param {Frame} frame
 */
function findings(ctx, frame) {
  const { model, view, colours, xOf, width } = frame;
  for (const found of model.findings.toReversed()) { // the worst lies on top
    if (found.start === null || found.end === null || found.lane === null) continue;
    const from = xOf(found.start);
    const to = Math.max(xOf(found.end), from + 3);
    const current = found.key === view.finding;
    if (to < 0 || from > width) continue;
    const place = placeOf(frame, found.lane);
    if (current) through(ctx, frame, from);
    const header = place ? undefined : headerOf(frame, found.lane);
    if (header) {
      ctx.fillStyle = colours[found.severity];
      flag(ctx, from, header.y + 4);
    }
    if (!place || (place.row.kind !== "lane" && !current)) continue;
    ctx.strokeStyle = ctx.fillStyle = colours[found.severity];
    if (!current) flag(ctx, from, place.y);
    else bracket(ctx, from, to, place, GLYPHS[found.severity], colours);
  }
}

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {number} x
 */
function through(ctx, { height, colours }, x) {
  ctx.save();
  ctx.setLineDash([3, 3]);
  ctx.strokeStyle = colours.accent;
  ctx.beginPath();
  ctx.moveTo(Math.round(x) + 0.5, 0);
  ctx.lineTo(Math.round(x) + 0.5, height);
  ctx.stroke();
  ctx.restore();
}

/**
 * @param {Pen} ctx
 * @param {number} x
 * @param {number} y
 */
function flag(ctx, x, y) {
  ctx.beginPath();
  ctx.moveTo(x - 5, y);
  ctx.lineTo(x + 5, y);
  ctx.lineTo(x, y + 8);
  ctx.fill();
}

/**
 * @param {Pen} ctx
 * @param {number} from
 * @param {number} to
 * @param {Placed} place
 * @param {string} glyph
 * @param {Record<string, string>} colours
 */
function bracket(ctx, from, to, { row, y }, glyph, colours) {
  ctx.lineWidth = 2;
  ctx.strokeRect(Math.round(from) - 1, y + 1, Math.round(to - from) + 2, row.height - 2);
  ctx.lineWidth = 1;
  const badge = ctx.fillStyle;
  ctx.fillStyle = colours.background;
  ctx.beginPath();
  ctx.arc(from - 10, y + row.height / 2, 7.5, 0, 7);
  ctx.fill();
  ctx.fillStyle = badge;
  ctx.textAlign = "center";
  ctx.fillText(glyph, from - 10, y + row.height / 2 + 4);
  ctx.textAlign = "start";
}

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 */
function marked(ctx, { view, sketched, dragged, placed, colours, xOf, height }) {
  ctx.fillStyle = colours.accent;
  if (view.begun !== null) ctx.fillRect(Math.round(xOf(view.begun)), RULER - 3, 1, height);
  const range = sketched || view.mark;
  if (!range) return;
  const [from, to] = [Math.min(...range), Math.max(...range)];
  const [left, right] = [xOf(from), xOf(to)];
  ctx.fillStyle = `${colours.accent}1f`;
  const lanes = sketched ? dragged : view.lanes;
  if (!lanes.length) ctx.fillRect(left, RULER, right - left, height);
  for (const { row, y } of placed)
    if (row.lanes.some((lane) => lanes.includes(lane))) ctx.fillRect(left, Math.max(RULER, y), right - left, row.height);
  ctx.fillStyle = colours.accent;
  ctx.fillRect(left, RULER - 3, Math.max(1, right - left), 2);
  for (const x of [left, right]) ctx.fillRect(Math.round(x), RULER - 3, 1, height);
  chip(ctx, duration(to - from), (Math.max(0, left) + right) / 2, RULER + 3, colours.accent, colours.background);
}

/**
 * @param {Pen} ctx
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {string} surface
 * @param {string} ink
 */
function chip(ctx, text, x, y, surface, ink) {
  const wide = ctx.measureText(text).width + 10;
  const left = Math.max(0, x - wide / 2);
  ctx.fillStyle = surface;
  ctx.beginPath();
  ctx.roundRect(left, y, wide, 16, 3);
  ctx.fill();
  ctx.fillStyle = ink;
  ctx.fillText(text, left + 5, y + 12);
}

/**
 * @param {Pen} ctx
 * @param {Placed} place
 * @param {number} from
 * @param {number} to
 */
function outline(ctx, place, from, to) {
  ctx.beginPath();
  ctx.roundRect(from - 1, place.y + 1, Math.max(3, to - from) + 1, place.row.height - 2, 3);
  ctx.stroke();
}

/**
 * The selected span, thinly what belongs to it: the other parts of its block, the finding's.
 * @param {Pen} ctx
 * @param {Frame} frame
 */
function selected(ctx, frame) {
  const { view, colours, xOf } = frame;
  const chosen = view.selection;
  ctx.strokeStyle = colours.accent;
  for (const place of frame.placed) related(ctx, frame, place);
  const place = view.lane === null ? undefined : placeOf(frame, view.lane);
  if (!chosen || !place || place.row.kind !== "lane") return;
  ctx.lineWidth = 2;
  outline(ctx, place, xOf(chosen.start), xOf(chosen.end));
  ctx.lineWidth = 1;
}

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {Placed} place
 */
function related(ctx, { model, view, picture, xOf }, place) {
  const { row } = place;
  if (!picture || row.kind !== "lane" || model.lanes[row.lanes[0]].section !== "core groups") return;
  const spans = picture.sparse.get(row.lanes[0]);
  spans?.label.forEach((label, i) => {
    if (view.related.includes(label) && spans.end[i] > view.t0 && spans.start[i] < view.t1)
      outline(ctx, place, xOf(spans.start[i]), xOf(spans.end[i]));
  });
}

/**
 * The times; of two traces those of A above those of B.
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {Ticks} marks
 */
function ruler(ctx, frame, marks) {
  const { width, colours, model, picture } = frame;
  ctx.fillStyle = colours.background;
  ctx.fillRect(0, 0, width, RULER);
  ctx.fillStyle = colours.border;
  ctx.fillRect(0, RULER - 1, width, 1);
  if (!model.is_two) return times(ctx, frame, marks, 8, RULER, 16);
  times(ctx, frame, marks, 0, HALF, HALF - 3);
  const { step, last, at, own } = picture?.beside || { step: 1, last: 0, at: [], own: [] };
  const labels = labelled(own, step, last);
  return times(ctx, frame, at.map((t, place) => ({ t, label: labels[place] })), HALF, RULER, RULER - 4);
}

/**
 * Times between two heights, with their labels on a line; one that would lie on another is left out, and
 * the label of one so late that it would be cut.
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {Ticks} marks
 * @param {number} top
 * @param {number} bottom
 * @param {number} line
 */
function times(ctx, { colours, width, xOf }, marks, top, bottom, line) {
  let free = -Infinity;
  for (const { t, label } of marks) {
    const x = Math.round(xOf(t));
    if (x < free) continue;
    ctx.fillStyle = colours.border;
    ctx.fillRect(x, top, 1, bottom - top);
    free = x + 5 + ctx.measureText(label).width;
    ctx.fillStyle = colours.muted;
    if (free <= width) ctx.fillText(label, x + 5, line);
  }
}

/**
 * The step in question, bracketed on the ruler.
 * @param {Pen} ctx
 * @param {Frame} frame
 */
function during(ctx, { view, colours, xOf }) {
  if (!view.during) return;
  const [from, to] = view.during.map(xOf);
  ctx.fillStyle = colours.accent;
  ctx.fillRect(from, RULER - 3, Math.max(2, to - from), 2);
  for (const x of [from, to]) ctx.fillRect(Math.round(x), RULER - 8, 1, 7);
}

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 */
function cursor(ctx, { hover, view, colours, height }) {
  if (!hover) return;
  ctx.fillStyle = `${colours.muted}66`;
  ctx.fillRect(Math.round(hover.x), RULER, 1, height);
  chip(ctx, moment(hover.t, view.t1 - view.t0), hover.x, 4, colours.raised, colours.text);
}
