/* Flags on the ruler: each at its time, with as much of its name as there is room for. */
import { moment } from "./scale.js";
/** @import { FlagAt, Frame, Pen, View } from "./types.js" */

const GLYPH = "⚑";
const LONGEST = 130; // pixels of a name
const NEAR = 6;      // pixels beside a flag that count as on it
const TALL = 14;

/**
 * The flags in view, where they stand on the canvas; of those at one pixel the first.
 * @param {View} view
 * @param {(t: number) => number} xOf
 * @returns {[number, FlagAt][]}
 */
function shown(view, xOf) {
  /** @type {Map<number, FlagAt>} */
  const found = new Map();
  for (const flag of view.flags || []) {
    const x = Math.round(xOf(flag[2]));
    if (flag[2] >= view.t0 && flag[2] <= view.t1 && !found.has(x)) found.set(x, flag);
  }
  return [...found].sort((one, other) => one[0] - other[0]);
}

/**
 * @param {Pen} ctx
 * @param {Frame} frame
 * @param {number} ruler  pixels that it is high
 */
export function paintFlags(ctx, { view, placed, colours, width, height, xOf }, ruler) {
  const flags = shown(view, xOf);
  for (const [at, [x, [name, , , lane]]] of flags.entries()) {
    const room = Math.min(LONGEST, (flags[at + 1]?.[0] ?? width) - x - 6);
    const text = fitted(ctx, name, room - ctx.measureText(GLYPH).width - 4);
    const label = text ? `${GLYPH} ${text}` : GLYPH;
    ctx.fillStyle = colours.raised;
    ctx.fillRect(x, 1, ctx.measureText(label).width + 6, TALL);
    ctx.fillStyle = colours.flag;
    ctx.fillRect(x, 1, 1, ruler - 1);
    ctx.fillText(label, x + 3, 12);
    ctx.fillStyle = `${colours.flag}59`;
    if (lane === null) ctx.fillRect(x, ruler, 1, height);
    ctx.fillStyle = colours.flag;
    const place = lane === null ? undefined : placed.findLast(({ row }) => row.kind === "lane" && row.lanes.includes(lane));
    if (place && place.y + place.row.height > ruler) ctx.fillRect(x, Math.max(ruler, place.y), 2, place.row.height);
  }
}

/**
 * @param {Pen} ctx
 * @param {string} text
 * @param {number} room
 */
function fitted(ctx, text, room) {
  let cut = text;
  while (cut && ctx.measureText(cut).width > room) cut = cut === "…" ? "" : `${cut.replace(/…$/, "").slice(0, -1)}…`;
  return cut === "…" ? "" : cut;
}

/**
 * The flag on which the mouse is, on the ruler: at its stem, or at its name.
 * @param {View} view
 * @param {(t: number) => number} xOf
 * @param {number} x
 * @returns {FlagAt | null}
 */
export function flagNear(view, xOf, x) {
  const before = shown(view, xOf).filter(([at]) => at - NEAR <= x);
  const [at, flag] = before.at(-1) || [0, null];
  return flag && x - at <= 3 * NEAR ? flag : null;
}

/** A flag in words, for who points at it.
 * @param {FlagAt} flag
 * @returns {[string, string]} */
export const told = ([name, note, t]) => [`@${name}`, [note, moment(t, 1000)].filter(Boolean).join(" · ")];
