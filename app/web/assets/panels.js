/* The edges of the panels: dragged, or moved by keys. The browser remembers where they were put; a
   window that is small now shows all panels, and what was wanted comes back with the room. */
import { byId } from "./dom.js";

const KEY = "stepscope.panels";
const STEP = 16; // pixels that a key moves an edge
const LEAST_STAGE = 160; // pixels that are left of the timeline, across and down

/** A panel by the custom property of its size: whether it is as wide as it says or as high, which way
 * it grows, and the least that it has.
 * @typedef {{across: boolean, grows: 1 | -1, least: number}} Panel */

/** @type {Record<string, Panel>} */
const PANELS = {
  drawer: { across: false, grows: -1, least: 60 },
  details: { across: true, grows: -1, least: 160 },
  gutter: { across: true, grows: 1, least: 72 },
};

/** What was wanted of each, in pixels.
 * @type {Record<string, number>} */
let wanted = {};

function remembered() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) || "{}");
    return Object.fromEntries(Object.keys(PANELS).flatMap((name) => (Number.isFinite(found?.[name]) ? [[name, found[name]]] : [])));
  } catch {
    return {};
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, JSON.stringify(wanted));
  } catch {
    // A browser that keeps nothing begins anew the next time.
  }
}

const style = () => byId("page").style;
/** @param {string} name */
const edge = (name) => byId(`edge-${name}`);
/** @param {string} name */
const sizeOf = (name) => parseFloat(getComputedStyle(byId("page")).getPropertyValue(`--${name}`));

/** The most that a panel can have in this window beside the others.
 * @param {string} name */
function most(name) {
  const { across } = PANELS[name];
  const others = Object.keys(PANELS).filter((each) => each !== name && PANELS[each].across === across);
  const room = across ? innerWidth : innerHeight - byId("bar").offsetHeight - byId("map").offsetHeight;
  return room - LEAST_STAGE - others.reduce((sum, each) => sum + sizeOf(each), 0);
}

/** Give every panel what is wanted of it, as far as the window has it. */
function arrange() {
  for (const [name, { least }] of Object.entries(PANELS)) {
    if (name in wanted) style().setProperty(`--${name}`, `${Math.round(Math.max(least, Math.min(wanted[name], most(name))))}px`);
    else style().removeProperty(`--${name}`);
    const told = { now: sizeOf(name), min: least, max: Math.max(least, most(name)) };
    for (const [what, value] of Object.entries(told)) edge(name).setAttribute(`aria-value${what}`, String(Math.round(value)));
  }
}

/**
 * @param {string} name
 * @param {number | null} size  null: as it was at first
 */
function resize(name, size) {
  if (size === null) delete wanted[name];
  else wanted[name] = Math.round(Math.max(PANELS[name].least, Math.min(size, most(name))));
  if (name === "drawer") byId("page").classList.remove("low");
  arrange();
  remember();
}

/**
 * @param {string} name
 * @param {KeyboardEvent} event
 */
function byKey(name, event) {
  const { across, grows, least } = PANELS[name];
  const [less, more] = across ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  const by = event.key === more ? STEP * grows : event.key === less ? -STEP * grows : 0;
  if (by) resize(name, sizeOf(name) + by);
  else if (event.key === "Home") resize(name, least);
  else if (event.key === "End") resize(name, most(name));
  else if (event.key === "Enter") resize(name, null);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** @param {string} name */
function attach(name) {
  const { across, grows } = PANELS[name];
  const grip = edge(name);
  /** @type {{from: number, size: number} | null} */
  let held = null;
  /** @param {PointerEvent} event */
  const at = (event) => (across ? event.clientX : event.clientY);
  grip.addEventListener("keydown", (event) => byKey(name, event));
  grip.addEventListener("dblclick", () => resize(name, null));
  grip.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    event.preventDefault();
    held = { from: at(event), size: sizeOf(name) };
    grip.setPointerCapture(event.pointerId);
  });
  grip.addEventListener("pointermove", (event) => held && resize(name, held.size + grows * (at(event) - held.from)));
  for (const end of ["pointerup", "pointercancel"]) grip.addEventListener(end, () => (held = null));
}

export function open() {
  wanted = remembered();
  for (const name of Object.keys(PANELS)) attach(name);
  addEventListener("resize", arrange);
  arrange();
}
