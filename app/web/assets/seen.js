/* What is on the screen: the trace, what is looked at of it, and the last picture. Every module of
   the timeline reads it here; it is changed by whoever moves, chooses, places or hears the server. */
import { byId, canvas } from "./dom.js";
/** @import { Hover, Model, Picture, Plan, View } from "./types.js" */

/** @type {View} */
export const NO_VIEW = {
  t0: 0, t1: 1, lane: null, at: 0, pin: [], hide: [], collapse: [], mark: null, begun: null,
  selection: null, related: [], finding: null, during: null, hits: null,
  lanes: [], colours: "", outlines: [], flags: [], flag: null,
};

/** `sketched` is a range that is being marked, `dragged` are the lanes over which it is.
 * @type {{model: Model | null, view: View, plan: Plan, picture: Picture | null, hover: Hover | null, sketched: [number, number] | null, dragged: number[]}} */
export const seen = {
  model: null,
  view: { ...NO_VIEW },
  plan: { pinned: [], rows: [], pinnedHeight: 0, height: 0 },
  picture: null,
  hover: null,
  sketched: null,
  dragged: [],
};

/** @returns {Model} */
export function model() {
  if (!seen.model) throw new Error("the trace has not been told of yet");
  return seen.model;
}

export const box = () => byId("stage");
export const width = () => Math.max(50, box().clientWidth - canvas().offsetLeft);
export const height = () => box().clientHeight;
/** @param {number} x */
export const timeAt = (x) => seen.view.t0 + (x / width()) * (seen.view.t1 - seen.view.t0);
/** @param {number} t */
export const xOf = (t) => ((t - seen.view.t0) / (seen.view.t1 - seen.view.t0)) * width();

/** What is under the mouse, at the time that is there now: it may rest while the view moves. */
export const hovered = () => seen.hover && { ...seen.hover, t: timeAt(seen.hover.x) };
