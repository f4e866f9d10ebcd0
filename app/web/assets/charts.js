/* The charts: when they are drawn, and whether they are. A browser takes seconds to read Plotly for the
   first time, and does nothing else meanwhile: it comes last, after lanes and all that a pane says. */
import * as busy from "./busy.js";
import { byId } from "./dom.js";

const all = /** @type {any} */ (globalThis);
let read = () => {};
/** Dash's charts wait for what they find under this name, and fetch Plotly where they find nothing.
 * @type {unknown} */
all.Plotly ||= new Promise((resolve, reject) => {
  read = () => {
    const script = document.createElement("script");
    script.src = all._dashPlotlyJSURL;
    script.addEventListener("load", () => resolve(all.Plotly));
    script.addEventListener("error", reject);
    document.head.append(script);
    read = () => {};
  };
});

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
  busy.doLast("charts", () => read());
  watching ||= new MutationObserver(look);
  watching.observe(byId("page"), { childList: true, subtree: true });
  look();
}
