/* Keys: what is pressed is looked up in the keymap that the server tells of. */
import * as address from "./address.js";
import * as both from "./both.js";
import { byId, overlay } from "./dom.js";
import * as flagging from "./flagging.js";
import * as live from "./live.js";
import * as query from "./query.js";
import { savePicture } from "./saving.js";
import * as stage from "./stage.js";
import * as stops from "./stops.js";
import * as theme from "./theme.js";
/** @import { HelpSection, Key } from "./types.js" */

/** @param {string} what */
const click = (what) => /** @type {HTMLElement | null} */ (document.querySelector(what))?.click();

/** Keys of the page alone: those of the tabs are where the server put them.
 * @returns {[string, string, () => void][]} */
const ownKeys = () => [
  ["2", "the timeline alone, or the pane below it again", () => click("#lower")],
  ["e", "explain the finding", () => click("#about a")],
  ...(document.getElementById("open-other") ? [/** @type {[string, string, () => void]} */ (["O", "open another trace", () => click("#open-other")])] : []),
  ...[...document.querySelectorAll(".leaf")].map((each) => {
    const leaf = /** @type {HTMLElement} */ (each);
    return /** @type {[string, string, () => void]} */ ([leaf.dataset.key, leaf.title, () => leaf.click()]);
  }),
];

/** What an action of the keymap does that is no move of the timeline.
 * @type {Record<string, () => void>} */
const OPENS = {
  search: () => byId("find").focus(),
  picture: () => savePicture(byId("trace").dataset.file ?? ""),
  light: theme.toggle,
  rules: () => document.querySelectorAll("#about details.codes").forEach((each) => each.toggleAttribute("open")),
  help: () => overlay("help", !byId("help").matches(".open")),
  clear,
  follow: live.follow,
  pause: live.pause,
  reload: live.reload,
  break: () => stops.ask("break"),
  value: () => stops.ask("value"),
  align: both.next,
  exchange: () => click("#exchange"),
  flag: flagging.ask,
  "what-if": () => stops.ask("what"),
  "next-hit": () => stops.walk("next-hit"),
  "previous-hit": () => stops.walk("previous-hit"),
};

function clear() {
  if (flagging.isOpen()) return flagging.close();
  if (document.querySelector("#explain.open")) return address.navigate({ explain: null }, true);
  if (document.querySelector("#help.open")) return overlay("help", false);
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  return address.go("clear");
}

/** Escape in a line leaves that line alone, and what lies over the page with it.
 * @param {HTMLElement} typing */
function leave(typing) {
  typing.blur();
  if (flagging.isOpen()) flagging.close();
}

/** @type {Map<string, () => void>} */
const byKey = new Map();

/**
 * What the help lists, in sections: the keys that matter first, all of the keymap, and the page's own.
 * @param {Key[]} keymap
 * @param {[string[], string][]} first
 * @returns {HelpSection[]}
 */
export function bind(keymap, first) {
  for (const { keys, action } of keymap) {
    const act = OPENS[action] || stage.MOVES[action] || (() => address.go(action));
    for (const key of keys) byKey.set(key, act);
  }
  const own = ownKeys();
  for (const [key, , act] of own) byKey.set(key, act);
  /** @type {Map<string, [string[], string][]>} */
  const sections = new Map([["first of all", first]]);
  for (const { keys, says, section } of keymap) sections.set(section, [...(sections.get(section) || []), [keys, says]]);
  const page = own.map(([key, says]) => /** @type {[string[], string]} */ ([[key], says]));
  sections.set("the page", [...(sections.get("the page") || []), ...page]);
  return [...sections];
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /** @type {Element} */ (event.target).closest("input, textarea, select");
  if (typing && event.key === "Escape" && !query.isOffering()) leave(/** @type {HTMLElement} */ (typing));
  if (typing) return;
  const act = byKey.get(event.key);
  if (!act || !stage.ready()) return;
  event.preventDefault();
  act();
});
