/* The view as a picture: the canvas as it is, or the same painted as SVG, and the names of its rows. */
import { byId, canvas } from "./dom.js";
import { paintWith } from "./drawing.js";
import { FONT } from "./paint.js";
import { svgPen } from "./svg.js";
/** @import { Pen } from "./types.js" */

const INSET = 14; // of a row's name, from the left
const BASE = 14; // of its letters, from the top of the row

/**
 * What is on the screen, with as many pixels as the screen has.
 * @returns {HTMLCanvasElement}
 */
function drawn() {
  const lanes = canvas();
  const ratio = devicePixelRatio || 1;
  const gutter = lanes.offsetLeft;
  const made = document.createElement("canvas");
  Object.assign(made, { width: Math.round((gutter + lanes.offsetWidth) * ratio), height: lanes.height });
  const pen = /** @type {CanvasRenderingContext2D} */ (made.getContext("2d"));
  const style = getComputedStyle(document.documentElement);
  pen.fillStyle = style.getPropertyValue("--background");
  pen.fillRect(0, 0, made.width, made.height);
  pen.drawImage(lanes, Math.round(gutter * ratio), 0);
  pen.scale(ratio, ratio);
  names(/** @type {Pen} */ (pen), gutter, style);
  return made;
}

/** The names of the rows that are seen.
 * @param {Pen} pen
 * @param {number} gutter
 * @param {CSSStyleDeclaration} style */
function names(pen, gutter, style) {
  const top = canvas().getBoundingClientRect().top;
  const pinned = byId("pinned").lastElementChild;
  const first = pinned ? pinned.getBoundingClientRect().bottom - top : byId("corner").offsetHeight;
  for (const [rows, from] of /** @type {[string, number][]} */ ([["#names .row", first], ["#pinned .row", 0]])) {
    for (const row of document.querySelectorAll(rows)) name(pen, row, top, from, gutter, style);
  }
}

/** The same painted anew, as SVG. */
function written() {
  const lanes = canvas();
  const [gutter, width, height] = [lanes.offsetLeft, lanes.offsetWidth, lanes.offsetHeight];
  const made = svgPen();
  const style = getComputedStyle(document.documentElement);
  made.fillStyle = style.getPropertyValue("--background").trim();
  made.fillRect(0, 0, gutter + width, height);
  made.part(gutter, width, height);
  paintWith(made.asPen);
  made.endPart();
  names(made.asPen, gutter, style);
  return made.file(gutter + width, height);
}

/**
 * @param {Pen} pen
 * @param {Element} row
 * @param {number} top  of the canvas, in the window
 * @param {number} from  below which rows are seen
 * @param {number} gutter
 * @param {CSSStyleDeclaration} style
 */
function name(pen, row, top, from, gutter, style) {
  const y = row.getBoundingClientRect().top - top;
  const said = [...row.querySelectorAll(".name, .part")].map((each) => each.textContent).filter(Boolean).join("  ");
  if (y < from - 1 || y > canvas().offsetHeight) return;
  pen.font = row.classList.contains("section") ? `600 ${FONT}` : FONT;
  pen.fillStyle = style.getPropertyValue("--text").trim();
  pen.fillText(fitted(pen, said, gutter - 2 * INSET), INSET, y + BASE);
}

/**
 * @param {Pen} pen
 * @param {string} text
 * @param {number} room
 */
function fitted(pen, text, room) {
  let shown = text;
  while (shown.length > 1 && pen.measureText(shown).width > room) shown = `${shown.replace(/…$/, "").slice(0, -1)}…`;
  return shown;
}

/** Offer the view as a PNG; the browser asks where to, or says where it is.
 * @param {string} called  the name of the trace */
export function savePicture(called) {
  drawn().toBlob((blob) => blob && offer(blob, called, "png"));
}

/** Offer the view as an SVG.
 * @param {string} called */
export const saveSvg = (called) => offer(new Blob([written()], { type: "image/svg+xml" }), called, "svg");

/**
 * @param {Blob} blob
 * @param {string} called
 * @param {string} ending
 */
function offer(blob, called, ending) {
  const link = document.createElement("a");
  link.download = `${called.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80) || "view"}.${ending}`;
  link.href = URL.createObjectURL(blob);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
