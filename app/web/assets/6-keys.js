/* One table of keys: what is pressed, what it does, what the help says. */
(function (own) {
  "use strict";

  const go = (verb) => () => {
    own.address.flush();
    own.address.travel({ go: verb }, true);
  };
  const click = (what) => document.querySelector(what)?.click();
  const stage = (verb, ...given) => () => own.stage[verb](...given);

  const ACTIONS = [
    [["w"], "zoom in", stage("zoom", 1 / 1.5)],
    [["s"], "zoom out", stage("zoom", 1.5)],
    [["a"], "pan left", stage("pan", -0.2)],
    [["d"], "pan right", stage("pan", 0.2)],
    [["h", ",", "ArrowLeft"], "previous span", go("previous-span")],
    [["l", ".", "ArrowRight"], "next span", go("next-span")],
    [["j", "ArrowDown"], "lane below", stage("lane", 1)],
    [["k", "ArrowUp"], "lane above", stage("lane", -1)],
    [["f"], "centre, then fit", stage("focus")],
    [["0"], "whole trace", stage("whole")],
    [["n"], "next finding", go("next-finding")],
    [["N"], "previous finding", go("previous-finding")],
    [["]"], "next step", go("next-step")],
    [["["], "previous step", go("previous-step")],
    [["g g"], "start", stage("edge", 0)],
    [["G"], "end", stage("edge", 1)],
    [["p"], "pin the lane", stage("pin")],
    [["m"], "mark the selection", stage("mark")],
    [["z"], "fold the section", stage("foldHere")],
    [["e"], "explain the finding", () => click("#about a")],
    [["/"], "search", () => document.getElementById("find").focus()],
    [["Esc"], "clear", () => clear()],
    [["?"], "this help", () => document.getElementById("help").classList.toggle("open")],
  ];
  const BY_KEY = new Map(ACTIONS.flatMap(([keys, , act]) => keys.map((key) => [key, act])));

  /* The panes below are those whose tabs the server made; each tab has its key and says what it opens. */
  const tabs = () => [...document.querySelectorAll(".leaf")].map((leaf) => [[leaf.dataset.key], leaf.title, () => leaf.click()]);
  const tabAt = (key) => tabs().find(([[own]]) => own === key)?.[2];

  function clear() {
    if (document.querySelector("#explain.open")) return own.address.travel({ explain: null }, true);
    if (document.querySelector("#help.open")) return document.getElementById("help").classList.remove("open");
    if (document.activeElement) document.activeElement.blur();
    return own.stage.clear();
  }

  let before = "";
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, textarea, select");
    if (typing && event.key !== "Escape") return;
    const key = event.key === "Escape" ? "Esc" : event.key;
    const name = key === "g" && before === "g" ? "g g" : key;
    before = name === "g" ? "g" : "";
    const act = BY_KEY.get(name) || tabAt(name);
    if (!act || !own.stage.ready()) return;
    event.preventDefault();
    act(key);
  }

  addEventListener("keydown", pressed);

  own.keys = { actions: () => [...ACTIONS, ...tabs()] };
})((window.stepscope = window.stepscope || {}));
