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
  made.ariaHidden = "true"; // the row says whether it is expanded; keys collapse and pin
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
 * What a screen reader is told of a row: how deep it lies, whether it is open, whether one is there.
 * @param {HTMLElement} made
 * @param {Laid} row
 * @param {View} view
 * @param {boolean} current
 */
function outline(made, row, view, current) {
  const names = [row.kind === "section" ? "" : row.group, row.name, row.part].filter(Boolean);
  const state = { "aria-level": row.pinned || row.kind === "section" ? 1 : row.under.length + 1, "aria-label": [...new Set(names)].join(" ") || "lane", "aria-selected": current };
  made.setAttribute("role", "treeitem");
  for (const [name, value] of Object.entries(state)) made.setAttribute(name, String(value));
  if (row.key) made.setAttribute("aria-expanded", String(!view.collapse.includes(row.key)));
}

/**
 * A list of rows is a tree; an empty one is nothing.
 * @param {HTMLElement} list
 * @param {string} name
 */
function tree(list, name) {
  if (!list.childElementCount) return list.removeAttribute("role");
  list.setAttribute("role", "tree");
  return list.setAttribute("aria-label", name);
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
  outline(made, row, view, Boolean(classes.current));
  if (row.key) {
    const shut = view.collapse.includes(row.key);
    made.append(button("twist", shut ? "▸" : "▾", shut ? "expand" : "collapse", () => acts.collapse(row.key)));
  }
  made.append(named(row.name));
  if (row.part) made.append(" ", element("span", "part", row.part));
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
  tree(byId("names"), "lanes");
  tree(byId("pinned"), "pinned lanes");
}
