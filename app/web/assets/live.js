/* A recording that goes on: asks for news while the page can be seen, and takes what is new where one
   looks, or at the end where the newest step is followed. A page that is hidden asks for nothing. */
import * as address from "./address.js";
import { setProps } from "./dash.js";
import { byId, element } from "./dom.js";
import { atEnd, newest } from "./moving.js";
import { renew as renewStage } from "./numbering.js";
/** @import { Model } from "./types.js" */

const LIVE_MS = 300;
const STILL_MS = 2000;    // what lies on the disk seldom changes
const PATIENCE_MS = 5000; // a revision that takes longer no longer holds up the next

/** @typedef {"NEWEST" | "HERE" | "PAUSED"} Following */
/** @typedef {{revision: number | null, told: [string, string][], live: boolean, checking: string, flags: number}} News */

/** @type {Following} */
let following = "NEWEST";
let isLive = false;
let isBeingChecked = false;
/** @type {number | string} */
let revision = 0;
let wanted = 0; // when a revision under way was asked for; 0 when none is
let timer = 0;
/** How often the flags were changed, as the server counts.
 * @type {number | null} */
let flags = null;

/** @param {Model} model */
export function open(model) {
  revision = model.revision || 0;
  isLive = Boolean(model.live);
  isBeingChecked = Boolean(model.checking);
  if (isLive && !new URLSearchParams(location.search).has("t")) newest(model.recent);
  else following = "HERE";
  document.addEventListener("visibilitychange", soon);
  soon();
}

/** Ask now, and then again and again; not while nobody looks. */
function soon() {
  clearTimeout(timer);
  if (document.hidden) return;
  timer = setTimeout(async () => { await ask(); soon(); }, isLive || isBeingChecked ? LIVE_MS : STILL_MS);
}

const isFollowed = () => following !== "PAUSED";

async function ask() {
  if (!isFollowed()) return;
  const answer = await fetch(`news?following=${following}`).catch(() => null);
  if (!answer || !answer.ok) return tell([["the server does not answer", "error"]]);
  /** @type {News} */
  const news = await answer.json();
  if (!isFollowed()) return;
  isLive = news.live;
  tell(news.told);
  if (isBeingChecked && news.checking) setProps("count-findings", { children: `${news.checking} …` });
  if (flags !== null && flags !== news.flags && !address.pending()) address.navigate({}, true); // somebody put one
  flags = news.flags;
  const isUnderWay = wanted > 0 && performance.now() - wanted < PATIENCE_MS;
  if (news.revision === null || news.revision === revision || isUnderWay || address.pending()) return;
  take(false);
}

/** @param {[string, string][]} told */
function tell(told) {
  const strip = document.getElementById("live");
  if (!strip) return; // Dash is about to make the page, or to make it anew
  strip.replaceChildren(...told.map(([text, tone]) => element("span", tone, text)));
  byId("page").classList.toggle("live", told.length > 0);
}

/** @param {boolean} reload  all that lies on the disk */
function take(reload) {
  wanted = performance.now();
  setProps("news", { data: { revision, reload, asked: wanted } });
}

/** Take over what came, and look where one looked.
 * @param {Model} model */
export function renew(model) {
  wanted = 0;
  revision = model.revision || 0;
  isLive = Boolean(model.live);
  isBeingChecked = Boolean(model.checking);
  setProps("revision", { data: revision });
  renewStage(model, following === "NEWEST");
}

/** Whether the end is in view still: who looks elsewhere follows no longer. */
export function looked() {
  if (following === "NEWEST" && !atEnd()) following = "HERE";
}

export function follow() {
  if (!isLive) return;
  following = following === "NEWEST" ? "HERE" : "NEWEST";
  if (following === "NEWEST") newest();
}

export function pause() {
  if (!isLive) return;
  following = following === "PAUSED" ? "HERE" : "PAUSED";
  if (following === "PAUSED") tell([["paused: H goes on", "warning"]]);
  soon();
}

export const reload = () => take(true);
