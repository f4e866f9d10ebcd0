/* The timeline on screen: what its parts do for the page. It asks the server to draw what it shows,
   and stretches the last picture until the next has come. */
import * as address from "./address.js";
import { redraw } from "./asking.js";
import * as choosing from "./choosing.js";
import { canvas } from "./dom.js";
import { arrange, draw, whenPressed } from "./drawing.js";
import * as minimap from "./minimap.js";
import * as moving from "./moving.js";
import { take } from "./numbering.js";
import { at, reveal } from "./placing.js";
import * as pointer from "./pointer.js";
import { clock } from "./scale.js";
import { NO_VIEW, box, model, seen, timeAt, width } from "./seen.js";
import { retint } from "./tints.js";
/** @import { Model, View } from "./types.js" */

export const ready = () => seen.model !== null;
export const state = () => seen.view;
export const rows = () => seen.plan.rows;

/** What a double click on the ruler does where no flag can be put.
 * @type {{askAt: (t: number, x: number) => void}} */
const NO_FLAGS = { askAt: () => {} };

/**
 * @param {Model} given
 * @param {typeof NO_FLAGS} [flags]  puts one at a time, or changes the one at a place of the canvas
 */
export function open(given, flags = NO_FLAGS) {
  clock(given.has_clock !== false);
  take(given);
  document.title = `${given.name} · stepscope`;
  recolour();
  const { slide, pan, wheel } = moving;
  const { point, sketch, mark, select, collapse, pin } = choosing;
  whenPressed({ collapse, pin });
  pointer.attach(canvas(), box(), {
    range: state, width, timeAt, at, point, sketch, mark, select, collapse, slide, pan, wheel,
    focus: () => address.go("focus"),
    ruler: (_, x) => choosing.goToFlag(x),
    flag: (t, x) => flags.askAt(t, x),
  });
  minimap.attach(model, { range: state, slide, wheel });
  box().addEventListener("scroll", redraw);
  new ResizeObserver(redraw).observe(box());
}

/** Take over the colours of light or dark. */
export function recolour() {
  retint();
  draw();
}

/** Take over a view that the server has resolved.
 * @param {View} given */
export function adopt(given) {
  const before = seen.view;
  const view = (seen.view = { ...NO_VIEW, ...given });
  moving.moved();
  arrange();
  if (view.lane !== null && (before.lane !== view.lane || before.at !== view.at)) reveal(view.lane);
  redraw();
}

/** The moves that need nothing of the server: the page follows them at once.
 * @type {Record<string, () => void>} */
export const MOVES = {
  "zoom-in": () => moving.zoom(model().factors.zoom, moving.here()),
  "zoom-out": () => moving.zoom(1 / model().factors.zoom, moving.here()),
  "pan-left": () => moving.pan(-model().factors.pan),
  "pan-right": () => moving.pan(model().factors.pan),
  whole: () => moving.look({ t0: 0, t1: model().length }),
  pin: () => choosing.pin(seen.hover && seen.hover.lane ? seen.hover.lane.id : seen.view.lane),
  "collapse-section": () => choosing.collapse(choosing.laneHere()?.section),
  "collapse-group": () => choosing.collapse(choosing.laneHere()?.group && `${choosing.laneHere()?.section}/${choosing.laneHere()?.group}`),
};
