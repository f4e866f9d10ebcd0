/* The charts: whether they are drawn. Plotly is large and comes last, after all that a pane says. */
import * as busy from "./busy.js";
import { byId } from "./dom.js";

/** Charts that are on the screen and empty yet. */
const awaited = () =>
  [...document.querySelectorAll(".dash-graph")].filter(
    (each) => each.checkVisibility() && !each.querySelector(".main-svg"),
  );

/** @type {MutationObserver | null} */
let watching = null;

function look() {
  if (awaited().length) return;
  watching?.disconnect();
  watching = null;
  busy.end("charts");
}

/** A pane has come, whose charts are drawn next: the page is busy until they are. */
export function awaitThem() {
  busy.begin("charts");
  watching ||= new MutationObserver(look);
  watching.observe(byId("page"), { childList: true, subtree: true });
  look();
}
