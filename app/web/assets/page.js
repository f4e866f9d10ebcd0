/* Ties the page together: what Dash hands over goes to the parts, and buttons to their acts. */
import * as address from "./address.js";
import * as both from "./both.js";
import * as busy from "./busy.js";
import * as charts from "./charts.js";
import { flagAt, hide, otherColours } from "./choosing.js";
import { setProps, start } from "./dash.js";
import { byId, element, overlay } from "./dom.js";
import * as flagging from "./flagging.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import { whenMoved } from "./moving.js";
import * as panels from "./panels.js";
import * as query from "./query.js";
import { savePicture, saveSvg } from "./saving.js";
import * as stage from "./stage.js";
import * as stops from "./stops.js";
import * as theme from "./theme.js";
/** @import { HelpSection, Model, View } from "./types.js" */

/** What the lines to type in are for.
 * @type {Record<string, string>} */
const LINES = { find: "find a request, task, core or step", sql: "query in SQL", break: "look for", value: "value over the run" };

/** @param {Element} chip */
const stateOf = (chip) => /** @type {HTMLElement} */ (chip).dataset.state || "";

/** @param {Model} model */
function open(model) {
  if (stage.ready()) return live.renew(model);
  if (both.isElsewhere(model)) return undefined;
  panels.open();
  stage.open(model, { askAt: (t, x) => flagging.askAt(t, flagAt(x)) });
  watchLegend();
  fillHelp(keys.bind(model.keymap, model.first_keys));
  theme.follow(() => {
    stage.recolour();
    for (const wanted of ["panes", "load"]) busy.begin(wanted);
    setProps("light", { data: theme.isLight() });
  });
  whenMoved(live.looked);
  live.open(model);
  return address.navigate({}, true);
}

/** Say where the legend has lines that are not seen. */
function watchLegend() {
  const legend = byId("legend");
  const tell = () => legend.classList.toggle("more", legend.scrollHeight > legend.clientHeight + 4 && !legend.matches(":hover, :focus-within"));
  new ResizeObserver(tell).observe(legend);
  for (const event of ["pointerleave", "focusout"]) legend.addEventListener(event, tell);
}

/**
 * @param {Element} tab
 * @param {boolean} on
 */
function marked(tab, on) {
  tab.classList.toggle("on", on);
  tab.ariaCurrent = on ? "page" : null;
  if (on) byId("pane").ariaLabel = tab.textContent;
}

/**
 * @param {Element} chip
 * @param {boolean} off
 */
function press(chip, off) {
  chip.classList.toggle("off", off);
  chip.ariaPressed = String(!off);
}

/** @param {View | null} view */
function receive(view) {
  if (!view) return;
  address.receive(view);
  stage.adopt(view);
  byId("page").classList.toggle("other-colours", otherColours());
  for (const tab of document.querySelectorAll(".leaf")) marked(tab, tab.id === `tab-${view.tab}`);
  for (const chip of document.querySelectorAll(".chip")) press(chip, view.hide.includes(stateOf(chip)));
  overlay("explain", new URLSearchParams(view.search).has("explain"));
  byId("said").textContent = view.said || "";
}

/** @param {HelpSection[]} sections */
function fillHelp(sections) {
  const shown = sections.flatMap(([title, listed]) => {
    const list = element("dl", "keys", "");
    for (const [names, what] of listed) {
      const keycaps = element("dt", "", "");
      keycaps.append(...names.flatMap((key) => [element("kbd", "", key.replace("Arrow", "").replace("Escape", "Esc")), " "]));
      list.append(keycaps, element("dd", "", what));
    }
    return [element("h3", "", title), list];
  });
  const mouse = "Drag moves, wheel zooms, shift and wheel pans, shift and drag marks lanes over a range, click selects, double click fits.";
  byId("keys").replaceChildren(element("h2", "", "Keys"), ...shown, element("p", "muted", mouse));
}

/** A click on a bar of a chart goes to its step.
 * @param {{points?: {customdata?: number, x?: number}[]} | null} clicked */
function step(clicked) {
  const point = clicked && clicked.points && clicked.points[0];
  const number = point && (point.customdata ?? point.x);
  if (Number.isInteger(number)) address.navigate(address.changesOf(`?step=${number}&tab=step`));
}

/** A click on the line of a value goes to the step or the time of its row.
 * @param {{points?: {customdata?: string}[]} | null} clicked */
function place(clicked) {
  const there = clicked && clicked.points && clicked.points[0] && clicked.points[0].customdata;
  if (there) address.navigate(address.changesOf(`?tab=step&${there}`));
}

const runQuery = () =>
  address.navigate({ tab: "sql", sql: /** @type {HTMLTextAreaElement} */ (byId("sql")).value });

/** Have the sums of the mark, or the answer of a query in a form, as a file.
 * @param {string} [form] */
function exportAs(form = "") {
  address.flush();
  setProps("export", { data: { search: location.search, asked: performance.now(), form } });
}

/** Only a page of this machine, or one that came encrypted, may write to the clipboard.
 * @param {Element} button */
function copyLink(button) {
  address.flush();
  const copied = navigator.clipboard ? navigator.clipboard.writeText(location.href) : Promise.reject();
  copied.then(() => (button.textContent = "copied"), () => (button.textContent = location.href));
}

addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  if (target.closest("#what-choices a")) stops.want("what");
  const chip = target.closest(".chip");
  if (chip) {
    hide(stateOf(chip));
    press(chip, stage.state().hide.includes(stateOf(chip)));
  }
  const copy = target.closest("#copy");
  const way = /** @type {HTMLElement | null} */ (target.closest("[data-align]"));
  if (way) both.change(way.dataset.align || "");
  if (target.closest("#save")) savePicture(byId("trace").dataset.file ?? "");
  if (target.closest("#save-svg")) saveSvg(byId("trace").dataset.file ?? "");
  if (target.closest("#theme")) theme.toggle();
  if (target.closest("#ask-help")) overlay("help", !byId("help").matches(".open"));
  else if (target.id === "help") overlay("help", false);
  if (target.id === "explain") address.navigate({ explain: null }, true);
  if (target.closest("#lower")) byId("page").classList.toggle("low");
  if (target.closest(".leaf")) byId("page").classList.remove("low");
  if (copy) copyLink(copy);
  if (target.closest("#run")) runQuery();
  if (target.closest("#export-area")) exportAs();
  const form = target.closest(".export");
  if (form) exportAs(form.id.replace("export-", ""));
  if (target.closest(".hit") || !target.closest("#search")) closeSearch();
});

/** @param {unknown[] | null} shown  the address, the revision and the step that the panes are of */
function filled(shown) {
  if (!shown) return;
  charts.awaitThem();
  busy.end("panes");
  stops.filled();
  for (const [id, says] of Object.entries(LINES)) document.getElementById(id)?.setAttribute("aria-label", says);
}

function closeSearch() {
  const hits = document.getElementById("hits");
  if (hits && hits.childElementCount) setProps("find", { value: "" });
}

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.id === "sql" && event.key === "Enter" && (event.ctrlKey || event.metaKey)) runQuery();
  else if (target.id === "sql" && query.pressed(event)) return void event.preventDefault();
  if (stops.ASKS.includes(target.id) && event.key === "Enter") {
    stops.look(target.id, /** @type {HTMLInputElement} */ (target).value);
    target.blur();
  }
  if (target.id !== "find") return;
  if (event.key === "Enter") {
    /** @type {HTMLElement | null} */
    const hit = document.querySelector("#hits a");
    if (hit) hit.click();
    target.blur();
  } else if (event.key === "Escape") closeSearch();
});

start({
  open,
  receive,
  filled,
  loaded: () => busy.end("load"),
  step,
  place,
  suggested: query.suggested,
  flagged: flagging.flagged,
});
