/* The note beside the mouse: what it is over. */
import { byId, canvas, element } from "./dom.js";
import { told } from "./flags.js";
import { amount, duration, moment } from "./scale.js";
import { sentenceOf } from "./pictures.js";
import { FRAMED } from "./shared.js";
/** @import { FlagAt, Hover, Lane, Model, Shown } from "./types.js" */

/**
 * @param {Shown | null} shown
 * @param {Lane} lane
 * @param {Model} model
 * @param {boolean} otherwise  whether colours are not as at first
 * @returns {[string, string] | null}
 */
function lines(shown, lane, model, otherwise) {
  const name = [lane.name, lane.part].filter(Boolean).join(" ");
  if (!shown) return null;
  if ("value" in shown) return [name, amount(shown.value, shown.unit)];
  const { called, called_otherwise } = model.states[shown.state];
  const isQueue = lane.section === "waiting queue"; // whose shades tell requests apart
  const state = isQueue ? "waiting" : otherwise ? called_otherwise : called;
  if ("share" in shown) return [name, `mostly ${state}, ${Math.round(100 * shown.share)}% busy`];
  const length = shown.end - shown.start;
  return [shown.label || state, `${name} · ${state} · ${duration(length)} from ${moment(shown.start, length)}`];
}

const DWELL = 120; // ms that the mouse rests on a wait before the server is asked why
const MOST_SENTENCES = 500;
const WAITS = new Set(["waiting", "preempted", "front-end"]);
/** Sentences that have come, by lane and beginning.
 * @type {Map<string, string>} */
const sentences = new Map();
let resting = 0;
let over = "";

/**
 * Add why a request waits: from what is known, or once the mouse rests there.
 * @param {Hover | null} hover
 * @param {Model} model
 */
function explain(hover, model) {
  clearTimeout(resting);
  over = "";
  if (!hover) return;
  const { shown, lane } = hover;
  if (!shown || !lane || "value" in shown || "share" in shown || lane.section !== "requests") return;
  const { cue, name } = model.states[shown.state];
  if (!FRAMED.has(cue) && !WAITS.has(name)) return;
  const revision = model.revision || 0;
  over = [revision, lane.id, shown.start].join(" ");
  const asked = { lane: lane.id, t: shown.start, revision };
  const own = over;
  const known = sentences.get(own);
  if (known !== undefined) write(known, hover);
  else resting = setTimeout(() => sentenceOf(asked).then((sentence) => {
    if (sentences.size >= MOST_SENTENCES) sentences.clear();
    sentences.set(own, sentence);
    if (own === over) write(sentence, hover);
  }), DWELL);
}

/**
 * @param {string} sentence
 * @param {Hover} hover
 */
function write(sentence, hover) {
  if (!sentence) return;
  const tip = byId("tip");
  tip.append(element("span", "sentence", sentence));
  place(tip, hover);
}

/**
 * @param {Hover | null} hover
 * @param {Model} model
 * @param {boolean} otherwise
 * @param {FlagAt | null} flag  of the ruler
 */
export function show(hover, model, otherwise, flag) {
  const tip = byId("tip");
  const said = flag ? told(flag) : hover && hover.lane && lines(hover.shown, hover.lane, model, otherwise);
  tip.style.visibility = said ? "visible" : "hidden";
  if (!hover || !said) return explain(null, model);
  tip.replaceChildren(element("b", "", said[0]), element("span", "", said[1]));
  place(tip, hover);
  return explain(flag ? null : hover, model);
}

/**
 * @param {HTMLElement} tip
 * @param {Hover} hover
 */
function place(tip, hover) {
  const bounds = canvas().getBoundingClientRect();
  const left = Math.min(bounds.left + hover.x + 14, innerWidth - tip.offsetWidth - 8);
  const below = bounds.top + hover.y + 18;
  const top = below + tip.offsetHeight < innerHeight ? below : below - tip.offsetHeight - 32;
  tip.style.transform = `translate(${left}px, ${top}px)`;
}
