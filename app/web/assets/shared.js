/* The colours of pixels that spans share: a column of a lane has one, and a cue darkens parts of it. */
/** @import { Picture, State, Strips } from "./types.js" */

export const TALL = 16;           // pixels of a lane that are painted
export const FAINT = 0.32; // of a pixel that is hardly busy
export const DARK = 0.22;         // of what a cue darkens
export const PERIOD = 12;         // pixels across after which every cue begins anew
const LEVELS = 256;        // of how busy a pixel is

/** Whether a row of a lane lies inside of the frame that waits are drawn with.
 * @param {number} y */
const inside = (y) => y !== 1 && y !== 14;

/**
 * Whether a cue darkens the pixel at x, y of a lane: one pattern for boxes and shared pixels.
 * @type {Record<string, (x: number, y: number) => boolean>}
 */
export const CUES = {
  hollow: (_, y) => y !== 1 && y !== 14,
  hatch: (x, y) => (x + y) % 6 < 2,
  mark: (_, y) => y < 3 || y > 12,
  ticks: (x) => x % 4 === 3,
  blocks: (x, y) => inside(y) && (x % 4 > 1 || y % 4 > 1),
  rails: (_, y) => inside(y) && y % 4 !== 0,
  slopes: (x, y) => inside(y) && (x + y) % 4 !== 0,
  turns: (x, y) => inside(y) && (x % 12 < 6) === (y < TALL / 2),
  posts: (x, y) => inside(y) && x % 4 !== 0,
  dashes: (x, y) => inside(y) && (x % 12 > 6 || y % 6 > 1),
};
/** Cues of waits: a frame, and a pattern for what was waited for. */
export const FRAMED = new Set(["blocks", "rails", "slopes", "turns", "posts", "dashes"]);

/** What a cue does to a column: whether most of it is dark, and in which rows it is otherwise.
 * @typedef {{isDark: boolean, otherwise: number[]}} Pattern */

/** The colours of a state by how busy a pixel is, and what its cue does to each x in a period. What
 * is split has those of its halves: above, between them, below.
 * @typedef {{full: Uint32Array, dark: Uint32Array, cue: Pattern[] | null, halves?: Uint32Array[]}} Shades */

/** @type {Map<string, Pattern[]>} */
const patterns = new Map(Object.entries(CUES).map(([name, cue]) => [name, Array.from({ length: PERIOD }, (_, x) => pattern(cue, x))]));

/**
 * @param {(x: number, y: number) => boolean} cue
 * @param {number} x
 * @returns {Pattern}
 */
function pattern(cue, x) {
  const rows = [...Array(TALL).keys()];
  const dark = rows.filter((y) => cue(x, y));
  const isDark = dark.length > TALL / 2;
  return { isDark, otherwise: isDark ? rows.filter((y) => !cue(x, y)) : dark };
}

/** Known by the colour itself, which is another one in light.
 * @type {WeakMap<number[], Shades>} */
const known = new WeakMap();

/**
 * @param {State} state
 * @returns {Shades}
 */
function shadesOf({ rgb, cue }) {
  const found = known.get(rgb);
  if (found) return found;
  const made = { full: inked(rgb, 1), dark: inked(rgb, DARK), cue: patterns.get(cue) || null };
  known.set(rgb, made);
  return made;
}

/**
 * @param {number[]} rgb
 * @param {number} share  of it that is left
 */
function inked(rgb, share) {
  const made = new Uint32Array(LEVELS);
  for (let density = 0; density < LEVELS; density++) {
    const full = FAINT + (1 - FAINT) * (density / 255);
    made[density] = (Math.round(255 * full * share) << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0];
  }
  return made;
}

/**
 * Shared pixels as the server counted them, a strip for each lane: TALL rows where a cue has some
 * otherwise than others, else one row that is drawn as high as all.
 * @param {Picture} picture
 * @param {State[]} states
 * @returns {Strips}
 */
export function image(picture, states) {
  const { width, dense } = picture;
  const shades = states.map(shadesOf);
  states.forEach(({ parts }, at) => {
    if (parts.length) shades[at].halves = [shades[parts[parts.length - 2]].full, shades[at].full, shades[parts[parts.length - 1]].full];
  });
  let height = 0;
  const places = dense.map((row) => {
    const tall = isMixed(picture, row, shades) ? TALL : 1;
    height += tall;
    return { top: height - tall, tall };
  });
  const drawn = new OffscreenCanvas(width, Math.max(1, height));
  const pixels = new ImageData(drawn.width, drawn.height);
  const ink = new Uint32Array(pixels.data.buffer);
  places.forEach(({ top, tall }, at) => strip(ink.subarray(top * width, (top + tall) * width), picture, dense[at], shades));
  /** @type {OffscreenCanvasRenderingContext2D} */ (drawn.getContext("2d")).putImageData(pixels, 0, 0);
  return { drawn, places };
}

/**
 * Whether a column of a lane is not the same in all rows.
 * @param {Picture} picture
 * @param {number} row  of the lane in the picture
 * @param {Shades[]} shades  of each state
 */
function isMixed({ width, state, density }, row, shades) {
  const begin = row * width;
  for (let x = 0; x < width; x++) {
    const shade = shades[state[begin + x]];
    if (shade.halves ? density[begin + x] : cueAt(shade, density[begin + x], x)?.otherwise.length) return true;
  }
  return false;
}

/**
 * Paint a lane: its first row, which is copied to the others, and then what a cue has otherwise.
 * @param {Uint32Array} ink  of the lane
 * @param {Picture} picture
 * @param {number} row  of the lane in it
 * @param {Shades[]} shades  of each state
 */
function strip(ink, { width, state, density }, row, shades) {
  /** @type {number[]} */
  const mixed = [];
  /** @type {number[]} */
  const split = [];
  const begin = row * width;
  for (let x = 0; x < width; x++) {
    const level = density[begin + x];
    if (!level) continue;
    const shade = shades[state[begin + x]];
    if (shade.halves) split.push(x);
    const cue = cueAt(shade, level, x);
    ink[x] = (cue && cue.isDark ? shade.dark : shade.full)[level];
    if (cue && cue.otherwise.length) mixed.push(x);
  }
  for (let made = width; made < ink.length; made *= 2) ink.copyWithin(made, 0, made);
  for (const x of mixed) {
    const level = density[begin + x];
    const shade = shades[state[begin + x]];
    const cue = /** @type {Pattern} */ (cueAt(shade, level, x));
    const other = (cue.isDark ? shade.full : shade.dark)[level];
    for (const y of cue.otherwise) ink[y * width + x] = other;
  }
  for (const x of split) {
    const halves = /** @type {Uint32Array[]} */ (shades[state[begin + x]].halves);
    const level = density[begin + x];
    for (let y = 0; y < TALL; y++) ink[y * width + x] = halves[1 + Math.sign(y - TALL / 2)][level];
  }
}

/**
 * What darkens a column, if anything: a pattern of next to nothing could not be seen.
 * @param {Shades} shade
 * @param {number} level
 * @param {number} x
 */
const cueAt = ({ cue }, level, x) => (cue && level > 1 ? cue[x % PERIOD] : null);
