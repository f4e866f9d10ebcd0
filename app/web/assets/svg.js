/* A pen that writes SVG: what is painted with it is what is painted on the canvas, as shapes and text
   that stay sharp at any size. It knows what our painters do, and no more. */
import { FONT, isLit, shownBy } from "./paint.js";
import { DARK, PERIOD } from "./shared.js";
/** @import { Pen } from "./types.js" */

const HATCH = "hatch";
const PAINTED_BY = "url"; // of a fill that is no colour
const PATTERN = `<pattern id="${HATCH}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M-1 1l2-2M0 6l6-6M5 7l2-2" stroke="#000" stroke-opacity=".45" stroke-width="1.5"/></pattern>`;

/** @param {string} text */
const escaped = (text) =>
  text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`).replace(/\p{Cc}|\p{Cs}/gu, "·");
/** @param {number} number */
const short = (number) => String(Math.round(number * 100) / 100);

/** The pattern of a wait, as it is on the canvas: a faint ground, and the lit pixels of each row.
 * @param {string} id @param {{colour: string, cue: string}} shown */
function definition(id, { colour, cue }) {
  const places = [...Array(PERIOD).keys()];
  const lit = places.flatMap((y) => places.filter((x) => isLit(cue, x, y)).map((x) => `M${x} ${y}h1v1h-1z`));
  const ground = `<rect width="${PERIOD}" height="${PERIOD}" fill="${colour}" fill-opacity="${DARK}"/>`;
  return `<pattern id="${id}" width="${PERIOD}" height="${PERIOD}" patternUnits="userSpaceOnUse">${ground}<path d="${lit.join("")}" fill="${colour}"/></pattern>`;
}

/** @param {string} name @param {string} value */
const attribute = (name, value) => `${name}="${value}"`;

/** What a pen writes with at a moment. */
class Ink {
  fillStyle = /** @type {string | CanvasPattern} */ ("#000");
  strokeStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = FONT;
  textAlign = "left";
  dashes = /** @type {number[]} */ ([]);
}

class SvgPen extends Ink {
  imageSmoothingEnabled = false;
  /** @type {string[]} */
  #written = [];
  /** @type {string[]} */
  #path = [];
  /** @type {Ink[]} */
  #saved = [];
  /** Patterns that were painted with, by their names.
   * @type {Map<string, string>} */
  #patterns = new Map([[HATCH, PATTERN]]);
  #measured = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

  /** As the painters take it.
   * @returns {Pen} */
  get asPen() {
    return /** @type {Pen} */ (/** @type {unknown} */ (this));
  }

  /** @param {string} text */
  measureText(text) {
    this.#measured.font = this.font;
    return this.#measured.measureText(text);
  }

  /** @param {CanvasImageSource} tile @param {string} how */
  createPattern(tile, how) {
    return this.#measured.createPattern(tile, how);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  fillRect(x, y, width, height) {
    this.#write(`<rect ${this.#box(x, y, width, height)} ${this.#fill()}/>`);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  strokeRect(x, y, width, height) {
    this.#write(`<rect ${this.#box(x, y, width, height)} fill="none" ${this.#stroke()}/>`);
  }

  beginPath() {
    this.#path = [];
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.#path.push(`M${short(x)} ${short(y)}`);
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.#path.push(`${this.#path.length ? "L" : "M"}${short(x)} ${short(y)}`);
  }

  /** @param {number[]} places  two that bend it, and its end */
  bezierCurveTo(...places) {
    this.#path.push(`C${places.map(short).join(" ")}`);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  rect(x, y, width, height) {
    this.#path.push(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {number} radius */
  roundRect(x, y, width, height, radius) {
    const r = Math.min(radius, Math.abs(width) / 2, height / 2);
    if (r <= 0) return this.rect(x, y, width, height);
    const [w, h, a] = [short(width - 2 * r), short(height - 2 * r), `a${short(r)} ${short(r)} 0 0 1 `];
    this.#path.push(`M${short(x + r)} ${short(y)}h${w}${a}${short(r)} ${short(r)}v${h}${a}${short(-r)} ${short(r)}h-${w}${a}${short(-r)} ${short(-r)}v-${h}${a}${short(r)} ${short(-r)}z`);
    return undefined;
  }

  /** A whole circle, as ours are.
   * @param {number} x @param {number} y @param {number} radius */
  arc(x, y, radius) {
    const [r, twice] = [short(radius), short(2 * radius)];
    this.#path.push(`M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${twice} 0a${r} ${r} 0 1 0 -${twice} 0z`);
  }

  fill() {
    this.#write(`<path d="${this.#path.join("")}" ${this.#fill()}/>`);
  }

  stroke() {
    this.#write(`<path d="${this.#path.join("")}" fill="none" ${this.#stroke()}/>`);
  }

  /** @param {number[]} dashes */
  setLineDash(dashes) {
    this.dashes = dashes;
  }

  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    const bold = this.font.startsWith("600") ? ' font-weight="600"' : "";
    const anchor = { center: ' text-anchor="middle"', right: ' text-anchor="end"' }[this.textAlign] || "";
    this.#write(`<text x="${short(x)}" y="${short(y)}" xml:space="preserve"${bold}${anchor} ${this.#fill()}>${escaped(text)}</text>`);
  }

  /** @param {OffscreenCanvas} image @param {number} sx @param {number} sy @param {number} sw @param {number} sh @param {number[]} place */
  drawImage(image, sx, sy, sw, sh, ...place) {
    const cut = document.createElement("canvas");
    Object.assign(cut, { width: sw, height: sh });
    /** @type {CanvasRenderingContext2D} */ (cut.getContext("2d")).drawImage(image, sx, sy, sw, sh, 0, 0, sw, sh);
    const [x, y, width, height] = place;
    this.#write(`<image ${this.#box(x, y, width, height)} preserveAspectRatio="none" image-rendering="pixelated" ${attribute("href", cut.toDataURL())}/>`);
  }

  save() {
    this.#saved.push(Object.assign(new Ink(), this));
  }

  restore() {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, dashes } = this.#saved.pop() || new Ink();
    Object.assign(this, { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, dashes });
  }

  /** Write the rest into a part that lies so far to the right, and is cut at its edges.
   * @param {number} x @param {number} width @param {number} height */
  part(x, width, height) {
    this.#write(`<svg x="${short(x)}" width="${short(width)}" height="${short(height)}">`);
  }

  endPart() {
    this.#write("</svg>");
  }

  /** All that was written, as a file.
   * @param {number} width @param {number} height */
  file(width, height) {
    const size = `width="${short(width)}" height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}"`;
    const font = escaped(FONT.replace("11px ", ""));
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${font}" font-size="11">${[...this.#patterns.values()].join("")}${this.#written.join("\n")}</svg>\n`;
  }

  /** @param {string} shape */
  #write(shape) {
    this.#written.push(shape);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  #box(x, y, width, height) {
    return `x="${short(width < 0 ? x + width : x)}" y="${short(y)}" width="${short(Math.abs(width))}" height="${short(Math.abs(height))}"`;
  }

  #alpha() {
    return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
  }

  #fill() {
    const of = typeof this.fillStyle === "string" ? this.fillStyle : `${PAINTED_BY}(#${this.#named(this.fillStyle)})`;
    return `fill="${escaped(of)}"${this.#alpha()}`;
  }

  /** @param {CanvasPattern} pattern */
  #named(pattern) {
    const shown = shownBy.get(pattern);
    if (!shown) return HATCH;
    const id = `${shown.cue}-${shown.colour.slice(1)}`;
    this.#patterns.set(id, definition(id, shown));
    return id;
  }

  #stroke() {
    const dashes = this.dashes.length ? ` stroke-dasharray="${this.dashes.join(" ")}"` : "";
    return `stroke="${escaped(this.strokeStyle)}" stroke-width="${short(this.lineWidth)}"${dashes}${this.#alpha()}`;
  }
}

export const svgPen = () => new SvgPen();
