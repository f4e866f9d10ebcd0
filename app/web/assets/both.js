/* Two traces on one page: how B lies on A is part of the address, and the server draws each way anew. */
import * as address from "./address.js";
import { setProps } from "./dash.js";
/** @import { Model } from "./types.js" */

/** Which way the address asks for; empty where it is as at first. */
const wanted = () => new URLSearchParams(location.search).get("align") || "";

/** Ask for another way. @param {string} align */
function ask(align) {
  setProps("revision", { data: align });
  setProps("news", { data: { align, reload: false, asked: performance.now() } });
}

/** Whether the address asks for another way than this, which is then asked for.
 * @param {Model} model */
export function isElsewhere(model) {
  const align = wanted();
  if (typeof model.revision !== "string" || !align || align === model.revision) return false;
  ask(align);
  return true;
}

/** Lay B on A otherwise, or exchange them; what was selected is let go with its lane's number.
 * @param {string} align */
export function change(align) {
  address.navigate({ ...address.NOWHERE, mark: null, align }, true);
  ask(align);
}

/** The next way that is possible. */
export function next() {
  const ways = /** @type {HTMLButtonElement[]} */ ([...document.querySelectorAll("#ways button:not(:disabled)")]);
  ways[(ways.findIndex((each) => each.classList.contains("on")) + 1) % ways.length]?.click();
}
