/* The numbers of lanes: as an address spells them, and those that they get where more was recorded. */
import * as address from "./address.js";
import { redraw } from "./asking.js";
import { arrange } from "./drawing.js";
import * as range from "./range.js";
import { model, seen } from "./seen.js";
import { tint } from "./tints.js";
/** @import { Lane, Model } from "./types.js" */

/** Lanes as an address spells them: 3-7,9.
 * @param {number[]} lanes */
export function ranges(lanes) {
  /** @type {number[][]} */
  const found = [];
  for (const lane of [...new Set(lanes)].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && lane === last[1] + 1) last[1] = lane;
    else found.push([lane, lane]);
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

/** What tells each lane from the others, whatever its number is.
 * @param {Lane[]} lanes */
function keysOf(lanes) {
  /** @type {Map<string, number>} */
  const known = new Map();
  return lanes.map(({ section, group, name, part }) => {
    const named = JSON.stringify([section, group, name, part]);
    known.set(named, (known.get(named) || 0) + 1);
    return `${named}${known.get(named)}`;
  });
}

/** @param {Model} given */
export function take(given) {
  seen.model = given;
  tint();
}

/** Take over a trace to which more was added, and look where one looked, or at its end.
 * @param {Model} given
 * @param {boolean} atItsEnd */
export function renew(given, atItsEnd) {
  const { view } = seen;
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
  seen.picture = null;
  arrange();
  redraw();
  address.navigate({
    t: `${t0}..${t1}`, sel: place("sel"), at: place("at"), pin: view.pin.join(","), lanes: ranges(view.lanes),
  }, true);
}
