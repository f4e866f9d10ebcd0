/* Time as people read it: round ticks, one unit for a whole ruler. Times are nanoseconds.
   A trace without a clock has an order alone: its moments are positions, POSITION apart. */
/** @type {[string, number][]} */
const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

const POSITION = 1000;
let hasClock = true;

/** @param {boolean} has  a clock: the trace that is shown */
export function clock(has) {
  hasClock = has;
}

/** @param {number} ns */
const position = (ns) => `position ${grouped(String(Math.round(ns / POSITION)))}`;

/** @param {number} ns */
const unitFor = (ns) => UNITS.find(([, size]) => Math.abs(ns) >= size) || UNITS[3];

/**
 * Round steps (1, 2, 5 times a power of ten) so that at most `most` ticks cover t0..t1.
 * @param {number} t0
 * @param {number} t1
 * @param {number} most
 */
export function ticks(t0, t1, most) {
  const rough = Math.max(hasClock ? 1 : POSITION, (t1 - t0) / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((times) => times * power >= rough) || 10);
  const times = [];
  for (let t = Math.ceil(t0 / step) * step; t <= t1; t += step) times.push(t);
  const labels = labelled(times, step, t1);
  return times.map((t, at) => ({ t, label: labels[at] }));
}

/**
 * Times that are `step` apart in one unit, that of the last time in view.
 * @param {number[]} times
 * @param {number} step
 * @param {number} last
 */
export function labelled(times, step, last) {
  if (!hasClock) return times.map(position);
  const [unit, size] = unitFor(Math.max(Math.abs(last), step));
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return times.map((t) => `${grouped((t / size).toFixed(digits))} ${unit}`);
}

/** @param {string} number */
const grouped = (number) => number.replace(/\B(?=(\d{3})+(?=\.|$))(?<!\.\d*)/g, ",");

/**
 * A length of time with four significant digits; without a clock, a number of positions.
 * @param {number} ns
 */
export function duration(ns) {
  const places = Math.round(ns / POSITION);
  return hasClock ? stated(ns) : `${grouped(String(places))} position${places === 1 ? "" : "s"}`;
}

/** @param {number} ns  that were recorded as a duration */
function stated(ns) {
  const [unit, size] = unitFor(ns);
  return `${Number((ns / size).toPrecision(4))} ${unit}`;
}

/**
 * What a counter says, in its unit.
 * @param {number} value
 * @param {string} unit
 */
export const amount = (value, unit) => (unit === "ns" ? stated(value) : `${value.toLocaleString("en")} ${unit}`.trim());

/**
 * A moment, fine enough to tell the pixels of a view of `span` ns apart.
 * @param {number} ns
 * @param {number} span
 */
export function moment(ns, span) {
  if (!hasClock) return position(ns);
  const [unit, size] = unitFor(Math.max(Math.abs(ns), 1));
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(Math.max(1, span / 1000) / size))));
  return `${grouped((ns / size).toFixed(digits))} ${unit}`;
}
