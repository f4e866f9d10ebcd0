/* The mouse on the timeline: drag moves, wheel zooms, shift marks a range, click selects. */
import { RULER } from "./overlays.js";
/** @import { Lane, Laid, Range } from "./types.js" */

const STILL = 4; // pixels that a click may move

/**
 * What the mouse does to the timeline; `x` and `y` are pixels of the canvas.
 * @typedef {object} Acts
 * @property {() => Range} range
 * @property {() => number} width
 * @property {(x: number) => number} timeAt
 * @property {(x: number, y: number) => {lane: Lane | null, row: Laid | null, t: number}} at
 * @property {(x: number | null, y?: number) => void} point
 * @property {(ends: [number, number] | null, heights?: [number, number]) => void} sketch
 * @property {(ends: [number, number], heights: [number, number]) => void} mark
 * @property {(lane: number, t: number) => void} select
 * @property {(key: string) => void} collapse
 * @property {(t0: number) => void} slide
 * @property {(share: number) => void} pan
 * @property {(pixels: number, t: number) => void} wheel
 * @property {(t: number, x: number) => void} ruler  it was clicked there
 * @property {(t: number, x: number) => void} flag  it was clicked twice
 * @property {() => void} focus */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} stage  what scrolls
 * @param {Acts} acts
 */
export function attach(canvas, stage, acts) {
  /** @type {{x: number, y: number, from: number, range: Range, top: number, moved: boolean, marks: boolean} | null} */
  let held = null;
  /**
   * @param {MouseEvent} event
   * @returns {[number, number]}
   */
  const at = (event) => {
    const bounds = canvas.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const [x, y] = at(event);
    held = { x, y, from: acts.timeAt(x), range: acts.range(), top: stage.scrollTop, moved: false, marks: event.shiftKey || y < RULER };
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (!held) return acts.point(x, y);
    held.moved ||= Math.hypot(x - held.x, y - held.y) > STILL;
    if (!held.moved) return undefined;
    acts.point(null);
    if (held.marks) return acts.sketch([held.from, acts.timeAt(x)], [held.y, y]);
    canvas.classList.add("dragging");
    acts.slide(held.range.t0 + ((held.x - x) / acts.width()) * (held.range.t1 - held.range.t0));
    stage.scrollTop = held.top + held.y - y;
    return undefined;
  });

  canvas.addEventListener("pointerup", (event) => {
    const [x, y] = at(event);
    const was = held;
    held = null;
    canvas.classList.remove("dragging");
    if (!was) return;
    if (was.moved && was.marks) {
      acts.sketch(null);
      acts.mark([was.from, acts.timeAt(x)], [was.y, y]);
    } else if (!was.moved) {
      const { lane, row, t } = acts.at(x, y);
      if (y < RULER) acts.ruler(t, x);
      else if (lane) acts.select(lane.id, t);
      else if (row && row.key) acts.collapse(row.key);
    }
  });

  canvas.addEventListener("pointerleave", () => acts.point(null));
  canvas.addEventListener("dblclick", (event) => {
    const [x, y] = at(event);
    if (y < RULER) acts.flag(acts.timeAt(x), x);
    else acts.focus();
  });

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) acts.pan(sideways / acts.width());
    else if (event.altKey) stage.scrollTop += event.deltaY;
    else acts.wheel(event.deltaY, acts.timeAt(at(event)[0]));
  }, { passive: false });
}
