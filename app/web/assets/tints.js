/* The colours of light or dark, for what is drawn and not styled. */
import { model, seen } from "./seen.js";
import { image } from "./shared.js";
import * as theme from "./theme.js";

const COLOURS = ["background", "panel", "raised", "border", "text", "muted", "accent", "error", "warning", "info", "flag"];

/** By their names in the style sheet.
 * @type {Record<string, string>} */
export const colours = {};

/** Give what is drawn the colours of light or dark. */
export function tint() {
  const place = Number(theme.isLight());
  for (const each of model().states) {
    Object.assign(each, { colour: each.grounds[place], ink: each.inks[place] });
    each.rgb = [1, 3, 5].map((from) => parseInt(each.colour.slice(from, from + 2), 16));
  }
}

/** Take over the colours of light or dark; what is on the screen has to be drawn again. */
export function retint() {
  tint();
  const style = getComputedStyle(document.documentElement);
  for (const name of COLOURS) colours[name] = style.getPropertyValue(`--${name}`).trim();
  if (seen.picture) seen.picture.image = image(seen.picture, model().states);
}
