/* Asking the server for what is looked at: one picture at a time, the last of what was wanted. */
import * as busy from "./busy.js";
import { onPage } from "./dash.js";
import { byId } from "./dom.js";
import { draw } from "./drawing.js";
import { read } from "./picture.js";
import { pictureOf } from "./pictures.js";
import { placed } from "./placing.js";
import { model, seen, width } from "./seen.js";
import { image } from "./shared.js";
/** @import { Answer, Asked } from "./types.js" */

const MARGIN = 0.5;       // of the view, asked for on both sides so that a pan has something to show
const PATIENCE_MS = 5000; // a picture that takes longer no longer holds up the next
const RETRY_MS = 1000;    // until one that could not be had is asked for again

let asked = 0;      // when the picture under way was asked for; 0 when none is
let again = false;  // whether something else is to be drawn by now
/** Gives up the question that was asked last.
 * @type {AbortController | null} */
let last = null;

function ask() {
  if (!seen.model || !seen.model.lanes.length) return;
  again = asked > 0 && performance.now() - asked < PATIENCE_MS;
  if (again) return;
  asked = performance.now();
  busy.begin("picture");
  last?.abort();
  answered(question(), (last = new AbortController()));
}

/** @returns {Asked} */
function question() {
  const { view } = seen;
  const span = view.t1 - view.t0;
  return {
    t0: view.t0 - span * MARGIN, t1: view.t1 + span * MARGIN,
    width: Math.round(width() * (1 + 2 * MARGIN) * Math.min(2, devicePixelRatio)),
    lanes: [...new Set(placed().flatMap(({ row }) => row.lanes))], hide: view.hide,
    colours: view.colours || null,
    revision: revision(),
  };
}

/** Of what is looked at: lanes have other numbers in another one. */
const revision = () => model().revision || 0;

/** Ask, and take the answer over unless something else was asked meanwhile.
 * @param {Asked} given
 * @param {AbortController} own */
async function answered(given, own) {
  const answer = await pictureOf(given, own.signal);
  onPage(() => own === last && come(answer, given, own));
}

/** @param {Answer | null} answer  none where it could not be had
 * @param {Asked} given
 * @param {AbortController} own */
function come(answer, given, own) {
  const isOurs = answer && (answer.revision || 0) === revision();
  if (isOurs) show(answer);
  asked = 0;
  if (again || given.revision !== revision()) return ask();
  if (!isOurs) setTimeout(retry, RETRY_MS, own);
  busy.end("picture");
}

/** Ask again, unless something else was asked meanwhile; a page that is hidden asks for nothing.
 * @param {AbortController} own */
function retry(own) {
  if (own !== last) return;
  if (document.hidden) setTimeout(retry, RETRY_MS, own);
  else ask();
}

/** @param {Answer} answer */
function show(answer) {
  const picture = read(answer);
  picture.image = image(picture, model().states);
  seen.picture = picture;
  byId("position").textContent = answer.position;
  draw();
}

/** Draw what there is of what is looked at by now, and ask for the rest. */
export function redraw() {
  draw();
  ask();
}
