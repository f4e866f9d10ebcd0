/* The note beside the mouse: what it is over. */
import { byId, canvas, element } from "./dom.js";
import { told } from "./flags.js";
import { amount, duration, moment } from "./scale.js";
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
  if (!hover || !said) return;
  tip.replaceChildren(element("b", "", said[0]), element("span", "", said[1]));
  const bounds = canvas().getBoundingClientRect();
  const left = Math.min(bounds.left + hover.x + 14, innerWidth - tip.offsetWidth - 8);
  const below = bounds.top + hover.y + 18;
  const top = below + tip.offsetHeight < innerHeight ? below : below - tip.offsetHeight - 32;
  tip.style.transform = `translate(${left}px, ${top}px)`;
}
