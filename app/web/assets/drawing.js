/* Drawing what is looked at: a frame at a time, on the canvas, beside it and over the load. */
import * as busy from "./busy.js";
import { byId, canvas, penOf } from "./dom.js";
import { paintFrame } from "./frame.js";
import * as labels from "./labels.js";
import * as minimap from "./minimap.js";
import { RULER } from "./overlays.js";
import { FONT } from "./paint.js";
import { placed } from "./placing.js";
import { layout } from "./rows.js";
import { height, hovered, model, seen, width, xOf } from "./seen.js";
import { colours } from "./tints.js";
/** @import { Pen } from "./types.js" */

let frame = 0;
/** What the buttons of a row do.
 * @type {{collapse: (key: string | undefined) => void, pin: (id: number | null) => void}} */
const acts = { collapse: () => {}, pin: () => {} };

/** @param {typeof acts} given  what the buttons of a row do */
export const whenPressed = (given) => Object.assign(acts, given);

/** Lay the rows out. */
export function arrange() {
  const { view } = seen;
  seen.plan = layout(model(), view.pin, view.collapse);
  byId("paper").style.height = `${RULER + seen.plan.pinnedHeight + seen.plan.height}px`;
  labels.show(seen.plan, view, RULER, acts);
}

/** Draw a frame as soon as there is one. */
export function draw() {
  if (frame || !seen.model) return;
  busy.begin("frame");
  frame = requestAnimationFrame(() => {
    frame = 0;
    if (!document.getElementById("stage")) return draw(); // Dash makes the page anew
    paint();
    busy.end("frame");
  });
}

/** Paint what is on the screen.
 * @param {Pen} ctx */
export function paintWith(ctx) {
  ctx.font = FONT;
  ctx.lineWidth = 1;
  paintFrame(ctx, { ...seen, hover: hovered(), model: model(), placed: placed(), colours, width: width(), height: height(), xOf });
}

function paint() {
  const { view, plan } = seen;
  paintWith(penOf(canvas(), width(), height()));
  minimap.show(view, model());
  minimap.mark(view.hits);
  minimap.flag(view.flags, model().length);
  labels.show(plan, view, RULER, acts);
}
