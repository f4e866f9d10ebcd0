/* Asking the server for what is looked at: one picture at a time, the last of what was wanted. */
import * as busy from "./busy.js";
import { setProps } from "./dash.js";
import { byId } from "./dom.js";
import { draw } from "./drawing.js";
import { image } from "./paint.js";
import { read } from "./picture.js";
import { placed } from "./placing.js";
import { model, seen, width } from "./seen.js";
/** @import { Answer } from "./types.js" */

const MARGIN = 0.5;       // of the view, asked for on both sides so that a pan has something to show
const PATIENCE_MS = 5000; // a picture that takes longer no longer holds up the next

let asked = 0;      // when the picture under way was asked for; 0 when none is
let again = false;  // whether something else is to be drawn by now

function ask() {
  if (!seen.model || !seen.model.lanes.length) return;
  again = asked > 0 && performance.now() - asked < PATIENCE_MS;
  if (again) return;
  asked = performance.now();
  busy.begin("picture");
  const { view } = seen;
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
  seen.picture = read(answer);
  seen.picture.image = image(seen.picture, model().states);
  byId("position").textContent = answer.position;
  asked = 0;
  draw();
  if (again) ask();
  else busy.end("picture");
}

/** Draw what there is of what is looked at by now, and ask for the rest. */
export function redraw() {
  draw();
  ask();
}
