/* A report: opens the timeline of a trace over the plates that it holds, and goes to its findings. */
import * as busy from "./busy.js";
import { byId, element } from "./dom.js";
import { lastUpTo } from "./picture.js";
import { follow } from "./places.js";
import { explain, open, read, spansOf, stored } from "./plates.js";
import { savePicture, saveSvg } from "./saving.js";
import { duration, moment } from "./scale.js";
import { width } from "./seen.js";
import * as stage from "./stage.js";
import * as theme from "./theme.js";
/** @import { FlagAt, Finding, Model, Range } from "./types.js" */
/** What is said of something, from top to bottom: a paragraph, a heading, a fact, a table with its rows.
 * @typedef {["p" | "h4", string] | ["fact", string, string] | ["table", string, string[], (string | {kind: string})[][], string]} Block */
/** @typedef {{lane: number, start: number, end: number, blocks: Block[]}} Wait */
/** @typedef {Model & {during: [number, number] | null, flags: FlagAt[], waits: Wait[]}} Held */

const FRAMED = 0.2; // share of the view that a finding takes, as a jump on the page has it
const MOMENT = 0.02; // share of the run that is shown around what has no length

const letters = ["A", "B"].filter((letter) => document.getElementById(`${letter}-model`));
const letter = letters.find((each) => location.hash === `#trace-${each}`) || letters[0];

/** @type {Held | null} */
let held = null;

/** @returns {Held} */
function model() {
  if (!held) throw new Error("the report has not been unpacked yet");
  return held;
}

/** The nearest range around something, within the run.
 * @param {number} start
 * @param {number} end
 * @returns {Range} */
function framing(start, end) {
  const { length, factors } = model();
  const wanted = end > start ? (end - start) / FRAMED : length * MOMENT;
  const span = Math.min(length, Math.max(factors.min_span, Math.round(wanted)));
  const t0 = Math.max(0, Math.min(Math.round((start + end - span) / 2), length - span));
  return { t0, t1: t0 + span };
}

/** @param {Finding} found */
function goTo(found) {
  if (found.start === null || found.end === null) return;
  const range = framing(found.start, found.end);
  const over = found.lane === null ? [] : [model().lanes[found.lane]].flatMap((lane) => [lane.section, `${lane.section}/${lane.group}`]);
  const collapse = stage.state().collapse.filter((key) => !over.includes(key));
  stage.adopt({ ...stage.state(), ...range, collapse, finding: found.key, lane: found.lane, at: found.start, selection: null });
  about(found.key);
}

/** Go to a flag, at the same zoom, and say what is noted there.
 * @param {FlagAt} flag */
function goToFlag([name, note, t, lane]) {
  const { length } = model();
  const { t0, t1, collapse } = stage.state();
  const from = t >= t0 && t < t1 ? t0 : Math.max(0, Math.min(t - (t1 - t0) / 2, length - (t1 - t0)));
  const over = lane === null ? [] : [model().lanes[lane]].flatMap((each) => [each.section, `${each.section}/${each.group}`]);
  stage.adopt({ ...stage.state(), t0: from, t1: from + t1 - t0, collapse: collapse.filter((key) => !over.includes(key)), lane, at: t, selection: null, finding: null });
  byId("about").replaceChildren(element("h2", "", `⚑ @${name}`), element("p", "", note));
}

/** The flag before where one is, or after it.
 * @param {number} by */
function walkFlags(by) {
  const { flags } = model();
  const { at } = stage.state();
  const next = by > 0 ? flags.find(([, , t]) => t > at) : flags.findLast(([, , t]) => t < at);
  if (next) goToFlag(next);
}

/** What is said of a finding stands beside the timeline, too.
 * @param {string} key */
function about(key) {
  const told = document.getElementById(`${letter}-${key}`);
  const copy = [...(told ? told.querySelectorAll(".body") : [])].map((each) => each.cloneNode(true));
  byId("about").replaceChildren(element("h2", "", told ? key : ""), ...copy);
}

/** @param {number} by */
function walk(by) {
  const placed = model().findings.filter((each) => each.start !== null);
  const here = placed.findIndex((each) => each.key === stage.state().finding);
  const next = placed[here < 0 ? (by > 0 ? 0 : placed.length - 1) : (here + by + placed.length) % placed.length];
  if (next) goTo(next);
}

/** Select what a lane shows at a time.
 * @param {number} lane
 * @param {number} t */
function select(lane, t) {
  const spans = spansOf(lane);
  const at = spans ? lastUpTo(spans.start, t) : -1;
  const is = spans && at >= 0 && spans.end[at] > t;
  const selection = is ? { start: spans.start[at], end: spans.end[at], label: spans.label[at] } : null;
  stage.adopt({ ...stage.state(), lane, at: t, selection, finding: null });
  const name = [model().lanes[lane].name, model().lanes[lane].part].filter(Boolean).join(" ");
  if (!selection || !spans) return byId("about").replaceChildren(element("h2", "", name));
  const length = selection.end - selection.start;
  const facts = element("dl", "facts", "");
  for (const [label, value] of [
    ["lane", name], ["state", model().states[spans.state[at]].called],
    ["starts", moment(selection.start, 1000)], ["ends", moment(selection.end, 1000)], ["takes", duration(length)],
  ]) facts.append(element("dt", "", label), element("dd", "", value));
  const wait = waitAt(lane, selection.start);
  const title = element("h2", "", selection.label || model().states[spans.state[at]].called);
  return byId("about").replaceChildren(title, ...(wait ? wait.blocks.map(written) : []), facts);
}

/** The wait of a lane's request at a time, where the report explains it.
 * @param {number} lane
 * @param {number} t */
const waitAt = (lane, t) => model().waits.find((each) => each.lane === lane && each.start <= t && t < each.end);

/** A block of what is said of a wait.
 * @param {Block} block
 * @returns {HTMLElement} */
function written(block) {
  if (block[0] === "fact") {
    const fact = element("dl", "facts", "");
    fact.append(element("dt", "", block[1]), element("dd", "", block[2]));
    return fact;
  }
  if (block[0] !== "table") return element(block[0], "", block[1]);
  const [, title, columns, rows, more] = block;
  const body = element("table", "", "");
  const head = element("tr", "", "");
  head.append(...columns.map((name) => element("th", "", name)));
  body.append(head, ...rows.map((cells) => {
    const row = element("tr", "", "");
    row.append(...cells.map((cell) => {
      const made = element("td", "", typeof cell === "string" ? cell : "");
      if (typeof cell !== "string") made.append(element("span", cell.kind, ""));
      return made;
    }));
    return row;
  }));
  const whole = element("div", "wide", "");
  whole.append(...(title ? [element("h4", "", title)] : []), body, ...(more ? [element("p", "muted", more)] : []));
  return whole;
}

/** Fit what is marked or selected. */
function focus() {
  const { mark, selection, finding } = stage.state();
  const found = model().findings.find((each) => each.key === finding);
  const ends = mark || (selection ? [selection.start, selection.end] : found && found.start !== null ? [found.start, found.end || found.start] : null);
  if (ends) stage.adopt({ ...stage.state(), ...framing(ends[0], ends[1]) });
}

function clear() {
  stage.adopt({ ...stage.state(), mark: null, begun: null, selection: null, finding: null });
  byId("about").replaceChildren();
}

/** @type {Record<string, () => void>} */
const MOVES = { focus, clear, rules: () => document.querySelectorAll("details.codes").forEach((each) => each.toggleAttribute("open")), picture: () => savePicture(model().name), "next-finding": () => walk(1), "previous-finding": () => walk(-1), "next-flag": () => walkFlags(1), "previous-flag": () => walkFlags(-1) };

follow((changes) => {
  if (changes.go) MOVES[changes.go]?.();
  const flag = model().flags.find(([name]) => changes.go === `flag-${name}`);
  if (flag) goToFlag(flag);
  if (changes.sel) select(Number(changes.sel.split("@")[0]), Number(changes.sel.split("@")[1]));
  if (changes.mark) {
    const [from, to] = changes.mark.split("..").map(Number);
    stage.adopt({ ...stage.state(), mark: [from, to], begun: null });
  }
});

/** Marks of findings over the load: of those that would overlap, the first. */
function marks() {
  const { findings, length } = model();
  /** @type {Set<number>} */
  const taken = new Set();
  for (const found of findings) {
    const place = found.start === null ? null : Math.round((400 * found.start) / length);
    if (place === null || taken.has(place)) continue;
    taken.add(place);
    const made = element("a", found.severity, found.severity === "info" ? "●" : "▲");
    made.title = found.key;
    made.style.left = `${place / 4}%`;
    made.addEventListener("click", () => goTo(found));
    byId("marks").append(made);
  }
}

/** What of a trace is beside its timeline: the load, the legend, what is not there. */
function beside() {
  const own = /** @type {HTMLTemplateElement} */ (byId(`${letter}-own`)).content;
  const load = /** @type {HTMLElement | null} */ (own.querySelector(".load"));
  if (load) {
    byId("load").append(...load.childNodes);
    byId("load-of").textContent = load.dataset.of || "";
    load.remove();
  } else byId("page").hidden = true;
  byId("page").after(own);
  for (const each of document.querySelectorAll(".choose")) each.classList.toggle("on", /** @type {HTMLElement} */ (each).dataset.trace === letter);
}

/** Another trace, or another report: the timeline begins anew.
 * @param {string} which */
function choose(which) {
  location.hash = `#trace-${which}`;
  location.reload();
}

addEventListener("click", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const flagged = /** @type {HTMLAnchorElement | null} */ (target.closest(".flag-mark"));
  if (flagged) {
    event.preventDefault();
    const flag = model().flags.find(([name]) => flagged.getAttribute("href") === `?go=flag-${name}`);
    if (flag) goToFlag(flag);
  }
  const told = target.closest(".show") && /** @type {HTMLElement | null} */ (target.closest(".found"));
  const found = told && model().findings.find((each) => each.key === told.dataset.key);
  if (told && told.dataset.trace !== letter) choose(told.dataset.trace || letter);
  else if (found) {
    goTo(found);
    byId("part-timeline").scrollIntoView();
  }
  const chosen = /** @type {HTMLElement | null} */ (target.closest(".choose"));
  if (chosen) choose(chosen.dataset.trace || letter);
  if (target.closest("#theme")) theme.toggle();
  if (target.closest("#save")) savePicture(model().name);
  if (target.closest("#save-svg")) saveSvg(model().name);
  const { during } = model();
  if (target.closest("#diverge") && during) stage.adopt({ ...stage.state(), ...framing(...during), during });
});

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !stage.ready()) return;
  const known = model().keymap.find(({ keys }) => keys.includes(event.key));
  const act = known && (MOVES[known.action] || stage.MOVES[known.action]);
  if (!act) return;
  event.preventDefault();
  act();
});

async function begin() {
  busy.begin("report");
  const told = await stored(`${letter}-model`);
  if (!told) return;
  held = told.head;
  beside();
  const plates = [];
  for (let at = 0; ; at++) {
    const next = await stored(`${letter}-plate-${at}`);
    if (!next) break;
    plates.push(read(next));
  }
  if (plates.length) {
    explain((lane, t) => String(waitAt(lane, t)?.blocks[0]?.[1] || ""));
    open(plates, stage.state, (pixel) => {
      const middle = (stage.state().t0 + stage.state().t1) / 2;
      const coarse = pixel > (2 * (stage.state().t1 - stage.state().t0)) / width();
      return `middle ${moment(middle, (stage.state().t1 - stage.state().t0) / 1000)}${coarse ? ` · crowded lanes and counters are held here by ${duration(pixel)}` : ""}`;
    });
    const title = document.title;
    stage.open(model());
    document.title = title;
    const { collapsed, length, during, flags } = model();
    stage.adopt({ ...stage.state(), t0: 0, t1: length, lane: null, collapse: collapsed, during, flags });
    marks();
  }
  busy.end("report");
}

theme.follow(() => stage.ready() && stage.recolour());
begin();
