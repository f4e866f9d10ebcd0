/* The timeline on screen: what range and lanes it shows, and what is drawn over them. It asks the
   server to draw what it shows, and stretches the last picture until the next has come. */
import * as address from "./address.js";
import * as busy from "./busy.js";
import { setProps } from "./dash.js";
import { byId, canvas, penOf } from "./dom.js";
import { paintFrame } from "./frame.js";
import * as labels from "./labels.js";
import * as minimap from "./minimap.js";
import { RULER } from "./overlays.js";
import { FONT, image } from "./paint.js";
import { read, shownAt } from "./picture.js";
import * as pointer from "./pointer.js";
import * as range from "./range.js";
import { layout, rowOf } from "./rows.js";
import * as theme from "./theme.js";
import * as tip from "./tip.js";
/** @import { Answer, Hover, Lane, Model, Picture, Placed, Plan, Range, View } from "./types.js" */

const MARGIN = 0.5;       // of the view, asked for on both sides so that a pan has something to show
const PATIENCE_MS = 5000; // a picture that takes longer no longer holds up the next
const COLOURS = ["background", "panel", "raised", "border", "text", "muted", "accent", "error", "warning", "info"];

/** @type {View} */
const NO_VIEW = {
  t0: 0, t1: 1, lane: null, at: 0, pin: [], hide: [], collapse: [], mark: null, begun: null,
  selection: null, related: [], finding: null, during: null, hits: null,
  lanes: [], colours: "", outlines: [],
};

/** @type {Model | null} */
let known = null;
let view = { ...NO_VIEW };
/** @type {Plan} */
let plan = { pinned: [], rows: [], pinnedHeight: 0, height: 0 };
/** @type {Picture | null} */
let picture = null;
/** @type {Hover | null} */
let hover = null;
/** A range that is being marked.
 * @type {[number, number] | null} */
let sketched = null;
/** The lanes over which it is being marked.
 * @type {number[]} */
let dragged = [];
let frame = 0;
let hasMoved = () => {};
/** @param {() => void} told  whenever another range is looked at */
export const whenMoved = (told) => (hasMoved = told);
/** @type {Record<string, string>} */
const colours = {};

/** @returns {Model} */
function model() {
  if (!known) throw new Error("the trace has not been told of yet");
  return known;
}

const box = () => byId("stage");
export const width = () => Math.max(50, box().clientWidth - canvas().offsetLeft);
const height = () => box().clientHeight;
/** @param {number} x */
export const timeAt = (x) => view.t0 + (x / width()) * (view.t1 - view.t0);
/** @param {number} t */
const xOf = (t) => ((t - view.t0) / (view.t1 - view.t0)) * width();
export const ready = () => known !== null;
export const state = () => view;
export const otherColours = () => Boolean(known) && view.colours !== model().colours;
export const rows = () => plan.rows;

/* --- what is shown --- */

/** @param {Model} given */
export function open(given) {
  take(given);
  document.title = `${given.name} · stepscope`;
  recolour();
  pointer.attach(canvas(), box(), {
    range: state, width, timeAt, at, point, sketch, mark, select, collapse, slide, pan, wheel,
    focus: () => address.go("focus"),
  });
  minimap.attach(model, { range: state, slide, wheel });
  box().addEventListener("scroll", redraw);
  new ResizeObserver(redraw).observe(box());
}

/** Give what is drawn the colours of light or dark. */
function tint() {
  const place = Number(theme.isLight());
  for (const each of model().states) {
    Object.assign(each, { colour: each.grounds[place], ink: each.inks[place] });
    each.rgb = [1, 3, 5].map((from) => parseInt(each.colour.slice(from, from + 2), 16));
  }
}

/** Take over the colours of light or dark. */
export function recolour() {
  tint();
  const style = getComputedStyle(document.documentElement);
  for (const name of COLOURS) colours[name] = style.getPropertyValue(`--${name}`).trim();
  if (picture) picture.image = image(picture, model().states);
  draw();
}

/** @param {Model} given */
function take(given) {
  known = given;
  tint();
}

/** What tells each lane from the others, whatever its number is.
 * @param {Lane[]} lanes */
function keysOf(lanes) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  return lanes.map(({ section, group, name, part }) => {
    const named = JSON.stringify([section, group, name, part]);
    seen.set(named, (seen.get(named) || 0) + 1);
    return `${named}${seen.get(named)}`;
  });
}

/** Take over a trace to which more was added, and look where one looked, or at its end.
 * @param {Model} given
 * @param {boolean} atItsEnd */
export function renew(given, atItsEnd) {
  const old = keysOf(model().lanes);
  const places = new Map(keysOf(given.lanes).map((key, place) => [key, place]));
  /** @param {number | null} lane */
  const moved = (lane) => (lane === null ? null : places.get(old[lane]) ?? null);
  /** @param {number[]} lanes
   * @returns {number[]} */
  const allMoved = (lanes) => lanes.flatMap((lane) => moved(lane) ?? []);
  const said = new URLSearchParams(location.search);
  /** @param {string} name */
  const place = (name) => {
    const [lane, t] = (said.get(name) || "").split("@");
    const there = lane && t ? moved(Number(lane)) : null;
    return there === null ? null : `${there}@${t}`;
  };
  take(given);
  Object.assign(view, { lane: moved(view.lane), pin: allMoved(view.pin), lanes: allMoved(view.lanes) });
  const { t0, t1 } = atItsEnd ? range.slid(view, given.length - view.t1, given.length, given.factors) : view;
  Object.assign(view, { t0, t1 });
  picture = null;
  arrange();
  redraw();
  address.navigate({
    t: `${t0}..${t1}`, sel: place("sel"), at: place("at"), pin: view.pin.join(","), lanes: ranges(view.lanes),
  }, true);
}

/** Look at the end of the trace, at so much of it as is in view, or at `span` ns.
 * @param {number} [span] */
export function newest(span) {
  const { length } = model();
  const wide = Math.min(span || view.t1 - view.t0, length);
  look({ t0: length - wide, t1: length });
}

export const atEnd = () => view.t1 >= model().length;

/** Take over a view that the server has resolved.
 * @param {View} given */
export function adopt(given) {
  const before = view;
  view = { ...NO_VIEW, ...given };
  hasMoved();
  arrange();
  if (view.lane !== null && (before.lane !== view.lane || before.at !== view.at)) reveal(view.lane);
  redraw();
}

function redraw() {
  draw();
  ask();
}

function arrange() {
  plan = layout(model(), view.pin, view.collapse);
  byId("paper").style.height = `${RULER + plan.pinnedHeight + plan.height}px`;
  labels.show(plan, view, RULER, { collapse, pin });
}

/** Scroll so that a lane can be seen.
 * @param {number} id */
function reveal(id) {
  const row = rowOf(plan, id);
  if (!row) return;
  const room = height() - RULER - plan.pinnedHeight;
  const near = 2 * row.height; // of a core, the others of its group
  if (row.top - near < box().scrollTop || row.top + row.height + near > box().scrollTop + room)
    box().scrollTop = Math.max(0, row.top - room / 2);
}

/** Rows on screen with their place on the canvas, the pinned ones last: they lie on top.
 * @returns {Placed[]} */
function placed() {
  const first = RULER + plan.pinnedHeight;
  const shift = first - box().scrollTop;
  const below = plan.rows
    .filter((row) => row.top + row.height + shift > first && row.top + shift < height())
    .map((row) => ({ row, y: row.top + shift }));
  return [...below, ...plan.pinned.map((row) => ({ row, y: RULER + row.top }))];
}

/* --- asking --- */

let asked = 0;      // when the picture under way was asked for; 0 when none is
let again = false;  // whether something else is to be drawn by now

function ask() {
  if (!known || !known.lanes.length) return;
  again = asked > 0 && performance.now() - asked < PATIENCE_MS;
  if (again) return;
  asked = performance.now();
  busy.begin("picture");
  const span = view.t1 - view.t0;
  setProps("ask", { data: {
    t0: view.t0 - span * MARGIN, t1: view.t1 + span * MARGIN,
    width: Math.round(width() * (1 + 2 * MARGIN) * Math.min(2, devicePixelRatio)),
    lanes: [...new Set(placed().flatMap(({ row }) => row.lanes))], hide: view.hide,
    colours: view.colours || null,
  } });
}

/** @param {Answer} answer */
export function show(answer) {
  if ((answer.revision || 0) !== (model().revision || 0)) { // its lanes have other numbers by now
    asked = 0;
    return ask();
  }
  picture = read(answer);
  picture.image = image(picture, model().states);
  byId("position").textContent = answer.position;
  asked = 0;
  draw();
  if (again) ask();
  else busy.end("picture");
}

/* --- moving --- */

/** @param {Range} to */
function look(to) {
  Object.assign(view, to);
  hasMoved();
  address.note({ t: `${view.t0}..${view.t1}` });
  redraw();
}

/** @param {number} t0 */
const slide = (t0) => look(range.slid(view, t0 - view.t0, model().length, model().factors));
/** @param {number} share  of the width of the view; to later times when positive */
const pan = (share) => look(range.slid(view, share * (view.t1 - view.t0), model().length, model().factors));
/**
 * @param {number} factor
 * @param {number} t
 */
const zoom = (factor, t) => look(range.zoomed(view, factor, t, model().length, model().factors));
/**
 * @param {number} pixels
 * @param {number} t
 */
const wheel = (pixels, t) => zoom(range.turned(pixels, model().factors), t);

/** Where a key zooms: under the mouse, else at the cursor, else in the middle. */
const here = () => (hover ? Math.floor(hover.t) : range.anchor(view, view.at));

/** The moves that need nothing of the server: the page follows them at once.
 * @type {Record<string, () => void>} */
export const MOVES = {
  "zoom-in": () => zoom(model().factors.zoom, here()),
  "zoom-out": () => zoom(1 / model().factors.zoom, here()),
  "pan-left": () => pan(-model().factors.pan),
  "pan-right": () => pan(model().factors.pan),
  whole: () => look({ t0: 0, t1: model().length }),
  pin: () => pin(hover && hover.lane ? hover.lane.id : view.lane),
  "collapse-section": () => collapse(laneHere()?.section),
  "collapse-group": () => collapse(laneHere()?.group && `${laneHere()?.section}/${laneHere()?.group}`),
};

/* --- choosing --- */

const laneHere = () => (view.lane === null ? undefined : model().lanes[view.lane]);

/**
 * @param {number} lane
 * @param {number} t
 */
function select(lane, t) {
  address.navigate({ ...address.NOWHERE, sel: `${lane}@${Math.round(t)}` }, true);
}

/** Note in the address what has changed of the view.
 * @param {Record<string, string | null>} spelled */
function changed(spelled) {
  address.note(spelled);
  arrange();
  redraw();
}

/**
 * @template T
 * @param {T[]} list
 * @param {T} entry
 */
const toggled = (list, entry) => (list.includes(entry) ? list.filter((each) => each !== entry) : [...list, entry]);

/** @param {number | null} id */
function pin(id) {
  if (id === null) return;
  view.pin = toggled(view.pin, id);
  changed({ pin: view.pin.join(",") });
}

/** @param {string | undefined} key */
function collapse(key) {
  if (!key) return;
  view.collapse = toggled(view.collapse, key);
  const otherwise = [...model().collapsed, ...view.collapse].filter((each) => model().collapsed.includes(each) !== view.collapse.includes(each));
  changed({ collapse: otherwise.map(encodeURIComponent).join(",") });
}

/** @param {string} name  of a state */
export function hide(name) {
  view.hide = toggled(view.hide, name);
  changed({ hide: view.hide.join(",") });
}

/** The lanes of the rows between two heights; none where it began on the ruler.
 * @param {[number, number]} heights
 * @returns {number[]} */
function lanesBetween([from, to]) {
  if (from < RULER) return [];
  const [high, low] = [Math.min(from, to), Math.max(from, to)];
  return placed().flatMap(({ row, y }) => (y + row.height > high && y <= low ? row.lanes : []));
}

/** Lanes as an address spells them: 3-7,9.
 * @param {number[]} lanes */
function ranges(lanes) {
  /** @type {number[][]} */
  const found = [];
  for (const lane of [...new Set(lanes)].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && lane === last[1] + 1) last[1] = lane;
    else found.push([lane, lane]);
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

/**
 * @param {[number, number]} ends
 * @param {[number, number]} heights
 */
function mark(ends, heights) {
  view.mark = [Math.round(Math.min(...ends)), Math.round(Math.max(...ends))];
  view.begun = null;
  view.lanes = lanesBetween(heights);
  redraw();
  address.navigate({ mark: view.mark.join(".."), begun: null, lanes: ranges(view.lanes), pick: null }, true);
}

/* --- drawing --- */

function draw() {
  if (frame || !known) return;
  busy.begin("frame");
  frame = requestAnimationFrame(() => {
    frame = 0;
    if (!document.getElementById("stage")) return draw(); // Dash makes the page anew
    paint();
    busy.end("frame");
  });
}

function paint() {
  const [w, h] = [width(), height()];
  const ctx = penOf(canvas(), w, h);
  ctx.font = FONT;
  ctx.lineWidth = 1;
  paintFrame(ctx, { model: model(), view, picture, placed: placed(), hover, sketched, dragged, colours, width: w, height: h, xOf });
  minimap.show(view, model());
  minimap.mark(view.hits);
  labels.show(plan, view, RULER, { collapse, pin });
}

/* --- what the mouse is over --- */

/**
 * @param {number} x
 * @param {number} y
 * @returns {Hover}
 */
function at(x, y) {
  const t = timeAt(x);
  const found = placed().reverse().find(({ row, y: top }) => y >= top && y < top + row.height);
  if (!found || y < RULER) return { x, y, t, row: null, lane: null, shown: null };
  const { row } = found;
  const id = row.lanes[Math.floor(((y - found.y) / row.height) * row.lanes.length)];
  /** @type {Lane | null} */
  const lane = id === undefined ? null : model().lanes[id];
  const shown = lane && picture ? shownAt(picture, lane.id, t, (view.t1 - view.t0) / width()) : null;
  return { x, y, t, row, lane, shown };
}

/**
 * @param {number | null} x
 * @param {number} [y]
 */
function point(x, y = 0) {
  hover = x === null ? null : at(x, y);
  tip.show(hover, model(), otherColours());
  draw();
}

/**
 * @param {[number, number] | null} ends
 * @param {[number, number]} [heights]
 */
function sketch(ends, heights) {
  sketched = ends;
  dragged = heights ? lanesBetween(heights) : [];
  draw();
}
