/* What belongs to the selected span, drawn over the lanes: arrows to it and from it, the path that
   leads to it, and the spans of a row of sums. */
/** @import { Frame, Outline, Pen, Placed } from "./types.js" */

const HEAD = 5; // pixels of the head of an arrow
const BEND = 60; // pixels that an arrow swings out at most

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {number} ruler  how high it is
 */
export function paintFlows(ctx, frame, ruler) {
  const { outlines, selection, lane } = frame.view;
  if (!outlines.length) return;
  const at = new Map(frame.placed.flatMap((place) => place.row.lanes.map((each) => /** @type {const} */ ([each, place]))));
  for (const each of outlines) outlined(ctx, frame, at, each);
  /** @param {number} other */
  const heights = (other) => heightOf(frame, at, other, ruler);
  followed(ctx, frame, heights, outlines.filter(([, , , why]) => why === "path"));
  if (!selection || lane === null) return;
  const { start, end } = selection;
  for (const [other, from, until, why] of outlines) {
    if (why === "preceding") arrow(ctx, frame, heights, [other, Math.min(until, Math.max(from, start))], [lane, start]);
    if (why === "following") arrow(ctx, frame, heights, [lane, Math.min(end, Math.max(start, from))], [other, from]);
  }
}

/**
 * The height of a lane's middle; above or below all rows where it is not among them.
 * @param {Frame} frame
 * @param {Map<number, Placed>} at
 * @param {number} lane
 * @param {number} ruler
 */
function heightOf({ placed, height }, at, lane, ruler) {
  const place = at.get(lane);
  if (place) return place.y + place.row.height / 2;
  const shown = placed.filter(({ row }) => !row.pinned).flatMap(({ row }) => row.lanes);
  return shown.length && lane < Math.min(...shown) ? ruler : height;
}

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {Map<number, Placed>} at
 * @param {Outline} outline
 */
function outlined(ctx, { colours, xOf, width }, at, [lane, start, end, why]) {
  const place = at.get(lane);
  const [from, to] = [xOf(start), xOf(end)];
  if (!place || to < 0 || from > width) return;
  const wide = Math.max(2, to - from);
  if (why === "gap") {
    ctx.fillStyle = `${colours.text}66`;
    for (let x = Math.max(0, from); x < Math.min(to, width); x += 6) ctx.fillRect(x, place.y + place.row.height - 3, 3, 2);
    return;
  }
  ctx.strokeStyle = ctx.fillStyle = why === "path" || why === "picked" ? colours.text : colours.accent;
  if (why === "path" || wide < 4) ctx.fillRect(from, place.y + place.row.height - 3, wide, 2);
  if (wide < 4) return;
  ctx.strokeRect(Math.round(from) + 0.5, place.y + 1.5, wide - 1, place.row.height - 4);
}

/**
 * Lines from each span of the path to the next, where they are on different lanes.
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {(lane: number) => number} heights
 * @param {Outline[]} path
 */
function followed(ctx, frame, heights, path) {
  ctx.strokeStyle = `${frame.colours.text}b0`;
  ctx.beginPath();
  path.slice(1).forEach(([lane, start], before) => {
    const [other, , until] = path[before];
    const [from, to] = [frame.xOf(until), frame.xOf(start)];
    if (lane === other || Math.max(from, to) < 0 || Math.min(from, to) > frame.width) return;
    ctx.moveTo(from, heights(other));
    ctx.lineTo(to, heights(lane));
  });
  ctx.stroke();
}

/**
 * An arrow from a time on a lane to a time on another.
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {(lane: number) => number} heights
 * @param {[number, number]} source
 * @param {[number, number]} target
 */
function arrow(ctx, frame, heights, [lane, since], [other, until]) {
  const [x, to] = [frame.xOf(since), frame.xOf(until)];
  if (Math.max(x, to) < -BEND || Math.min(x, to) > frame.width + BEND) return;
  const [y, end] = [heights(lane), heights(other)];
  const bend = Math.min(BEND, Math.max(12, Math.abs(to - x) / 2));
  ctx.strokeStyle = ctx.fillStyle = frame.colours.accent;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.bezierCurveTo(x + bend, y, to - bend, end, to - HEAD, end);
  ctx.stroke();
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(to, end);
  ctx.lineTo(to - HEAD, end - HEAD / 1.5);
  ctx.lineTo(to - HEAD, end + HEAD / 1.5);
  ctx.fill();
}
