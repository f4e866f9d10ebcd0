/* The names of the rows on the left. */
import { byId, element } from "./dom.js";
/** @import { Laid, Plan, View } from "./types.js" */

const SPARE = 300; // pixels above and below the screen whose rows are drawn
const TAIL = 14; // letters at the end of a long name that stay: names often differ there

/** @typedef {{collapse: (key: string) => void, pin: (lane: number) => void}} Acts */

/**
 * @param {string} kind
 * @param {string} text
 * @param {string} title
 * @param {() => void} act
 */
function button(kind, text, title, act) {
  const made = element("span", kind, text);
  made.title = title;
  made.addEventListener("click", (event) => { event.stopPropagation(); act(); });
  return made;
}

/**
 * A name of which the middle is cut where there is no room.
 * @param {string} text
 */
function named(text) {
  const letters = Array.from(text);
  const made = element("span", "name", letters.length > TAIL + 8 ? "" : text);
  made.title = text;
  if (letters.length > TAIL + 8) {
    made.classList.add("long");
    made.append(element("span", "head", letters.slice(0, -TAIL).join("")));
    made.append(element("span", "tail", letters.slice(-TAIL).join("")));
  }
  return made;
}

/**
 * @param {Laid} row
 * @param {number} y
 * @param {View} view
 * @param {Acts} acts
 */
function label(row, y, view, acts) {
  const lane = row.lanes[0];
  const classes = {
    pinned: row.pinned, current: view.lane !== null && row.lanes.includes(view.lane),
    deep: row.kind === "lane" && row.under.length > 1 && !row.part,
  };
  const made = element("div", `row ${row.kind}`, "");
  for (const [name, is] of Object.entries(classes)) made.classList.toggle(name, Boolean(is));
  Object.assign(made.style, { top: `${y}px`, height: `${row.height}px` });
  if (row.key) {
    const shut = view.collapse.includes(row.key);
    made.append(button("twist", shut ? "▸" : "▾", shut ? "expand" : "collapse", () => acts.collapse(row.key)));
  }
  made.append(named(row.name));
  if (row.part) made.append(element("span", "part", row.part));
  if (lane === undefined) made.addEventListener("click", () => acts.collapse(row.key));
  else {
    made.append(button("pin", row.pinned ? "●" : "○", row.pinned ? "unpin" : "pin on top", () => acts.pin(lane)));
    made.dataset.lane = String(lane);
  }
  return made;
}

let drawn = "";

/**
 * @param {Plan} plan
 * @param {View} view
 * @param {number} ruler
 * @param {Acts} acts
 */
export function show(plan, view, ruler, acts) {
  const stage = byId("stage");
  const first = ruler + plan.pinnedHeight;
  const [above, below] = [stage.scrollTop - SPARE, stage.scrollTop + stage.clientHeight + SPARE];
  const rows = plan.rows.filter((row) => first + row.top + row.height > above && first + row.top < below);
  const key = JSON.stringify([rows.map((row) => [row.top, row.name, row.part, row.kind]), view.collapse, view.pin, view.lane, plan.pinnedHeight]);
  if (key === drawn) return;
  drawn = key;
  byId("names").replaceChildren(...rows.map((row) => label(row, first + row.top, view, acts)));
  byId("pinned").replaceChildren(...plan.pinned.map((row) => label(row, ruler + row.top, view, acts)));
}
