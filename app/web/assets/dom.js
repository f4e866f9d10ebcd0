/* Elements of the page: text nodes only, whatever a trace calls its things. */
/** @import { Pen } from "./types.js" */

/**
 * The element of an id, which is there.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
}

/** @type {Element | null} */
let before = null; // what had the focus when an overlay was opened

/**
 * Open or close what lies over the page; the focus goes there, and back to where it was.
 * @param {string} id
 * @param {boolean} open
 */
export function overlay(id, open) {
  const over = byId(id);
  if (over.classList.contains("open") === open) return;
  over.classList.toggle("open", open);
  if (open) before = document.activeElement;
  const next = open ? over.firstElementChild : before;
  if (next instanceof HTMLElement) next.focus();
}

/** @returns {HTMLCanvasElement} */
export const canvas = () => /** @type {HTMLCanvasElement} */ (byId("canvas"));

/**
 * The pen of a canvas that is so large on the page, with as many pixels as the screen has there.
 * @param {HTMLCanvasElement} surface
 * @param {number} width
 * @param {number} height
 * @returns {Pen}
 */
export function penOf(surface, width, height) {
  const ratio = devicePixelRatio || 1;
  if (surface.width !== Math.round(width * ratio) || surface.height !== Math.round(height * ratio)) {
    surface.width = Math.round(width * ratio);
    surface.height = Math.round(height * ratio);
    Object.assign(surface.style, { width: `${width}px`, height: `${height}px` });
  }
  const ctx = /** @type {Pen} */ (surface.getContext("2d"));
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  return ctx;
}

/**
 * @param {string} tag
 * @param {string} kind
 * @param {string} text
 */
export function element(tag, kind, text) {
  const made = document.createElement(tag);
  made.className = kind;
  made.textContent = text;
  return made;
}
