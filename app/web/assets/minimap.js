/* The window over the load of the whole trace: drag it, or click where to look. */
import { byId, element } from "./dom.js";
/** @import { FlagAt, Hits, Model, Range } from "./types.js" */

const GLYPH = "◆";

/** @typedef {{slide: (t0: number) => void, wheel: (pixels: number, t: number) => void, range: () => Range}} Acts */

/**
 * @param {Range} view
 * @param {Model} model
 */
export function show(view, model) {
  const { style } = byId("window");
  style.left = `${(100 * view.t0) / model.length}%`;
  style.width = `${(100 * (view.t1 - view.t0)) / model.length}%`;
}

/** The hits that are marked.
 * @type {Hits | null} */
let marked = null;

/**
 * Mark where the condition is met that is looked for, and say which hit one is at.
 * @param {Hits | null} hits
 */
export function mark(hits) {
  if (hits === marked) return;
  marked = hits;
  const marks = (hits ? hits.places : []).map((place) => {
    const link = /** @type {HTMLAnchorElement} */ (element("a", "", (hits && hits.glyph) || GLYPH));
    link.href = `?go=${(hits && hits.go) || `hit-${place}`}`;
    link.title = link.ariaLabel = (hits && hits.says) || "go to the hit here";
    link.tabIndex = -1;
    link.style.left = `${place}%`;
    return link;
  });
  byId("stops").replaceChildren(...marks);
  byId("told-hits").textContent = hits && hits.told ? `${GLYPH} ${hits.told}` : "";
}

/** The flags that stand over the load.
 * @type {FlagAt[] | undefined} */
let flagged;

/**
 * Show flags over the load, each a link to where it is.
 * @param {FlagAt[] | undefined} flags
 * @param {number} length
 */
export function flag(flags, length) {
  if (flags === flagged) return;
  flagged = flags;
  const marks = (flags || []).filter(([, , t]) => t >= 0 && t <= length).map(([name, note, t]) => {
    const link = /** @type {HTMLAnchorElement} */ (element("a", "flag-mark", "⚑"));
    link.href = `?go=flag-${name}`;
    link.title = link.ariaLabel = `@${name}${note && `: ${note}`}`;
    link.tabIndex = -1;
    link.style.left = `${(100 * t) / length}%`;
    return link;
  });
  byId("flag-marks").replaceChildren(...marks);
}

/**
 * @param {() => Model} model
 * @param {Acts} acts
 */
export function attach(model, acts) {
  const map = byId("overview");
  /** @type {number | null} */
  let grip = null;
  /** @param {MouseEvent} event */
  const at = (event) => {
    const bounds = map.getBoundingClientRect();
    return ((event.clientX - bounds.left) / bounds.width) * model().length;
  };
  /** @param {MouseEvent} event */
  const follow = (event) => grip !== null && acts.slide(at(event) - grip);

  map.addEventListener("pointerdown", (event) => {
    if (event.button || /** @type {Element} */ (event.target).closest("a")) return;
    const t = at(event);
    const { t0, t1 } = acts.range();
    grip = t >= t0 && t <= t1 ? t - t0 : (t1 - t0) / 2;
    map.setPointerCapture(event.pointerId);
    follow(event);
  });
  map.addEventListener("pointermove", follow);
  map.addEventListener("pointerup", () => (grip = null));
  map.addEventListener("wheel", (event) => {
    event.preventDefault();
    acts.wheel(event.deltaY, at(event));
  }, { passive: false });
}
