/* Ties the page together: what Dash hands over goes to the parts, and buttons to their acts. */
(function (own) {
  "use strict";

  const byId = (id) => document.getElementById(id);
  const stateOf = (chip) => chip.id.replace("chip-", "");

  function open(model) {
    own.stage.open(model);
    own.minimap.attach(model);
    fillHelp();
    own.address.begin();
  }

  function arrive(view) {
    if (!view) return;
    own.address.arrive(view);
    own.stage.adopt(view);
    for (const tab of document.querySelectorAll(".leaf")) tab.classList.toggle("on", tab.id === `tab-${view.tab}`);
    for (const chip of document.querySelectorAll(".chip")) chip.classList.toggle("off", view.hide.includes(stateOf(chip)));
    byId("explain").classList.toggle("open", new URLSearchParams(view.search).has("explain"));
  }

  function fillHelp() {
    const { element } = own.labels;
    const list = element("dl", "keys", "");
    for (const [keys, what] of own.keys.actions()) {
      const shown = element("dt", "", "");
      shown.append(...keys.flatMap((key) => [element("kbd", "", key), " "]));
      list.append(shown, element("dd", "", what));
    }
    const mouse = "Drag moves, wheel zooms, shift and wheel pans, shift and drag marks, click selects, double click fits.";
    byId("keys").replaceChildren(element("h2", "", "Keys"), list, element("p", "muted", mouse));
  }

  /* A click on a bar of a chart goes to its step. */
  function step(clicked) {
    const point = clicked && clicked.points && clicked.points[0];
    const number = point && (point.customdata ?? point.x);
    if (Number.isInteger(number)) own.address.travel(own.address.changesOf(`?step=${number}&tab=step`));
  }

  const runQuery = () => own.address.travel({ tab: "sql", sql: byId("sql").value });

  /* Only a page of this machine, or one that came encrypted, may write to the clipboard. */
  function copyLink(button) {
    own.address.flush();
    const copied = navigator.clipboard ? navigator.clipboard.writeText(location.href) : Promise.reject();
    copied.then(() => (button.textContent = "copied"), () => (button.textContent = location.href));
  }

  addEventListener("click", ({ target }) => {
    const chip = target.closest(".chip");
    if (chip) {
      own.stage.hide(stateOf(chip));
      chip.classList.toggle("off", own.stage.state().hide.includes(stateOf(chip)));
    }
    if (target.closest("#ask-help")) byId("help").classList.toggle("open");
    else if (target.id === "help") byId("help").classList.remove("open");
    if (target.id === "explain") own.address.travel({ explain: null }, true);
    if (target.closest("#lower")) byId("page").classList.toggle("low");
    if (target.closest("#copy")) copyLink(target.closest("#copy"));
    if (target.closest("#run")) runQuery();
    if (target.closest(".hit") || !target.closest("#search")) closeSearch();
  });

  function closeSearch() {
    if (byId("hits") && byId("hits").childElementCount) dash_clientside.set_props("find", { value: "" });
  }

  addEventListener("keydown", (event) => {
    if (event.target.id === "sql" && event.key === "Enter" && (event.ctrlKey || event.metaKey)) runQuery();
    if (event.target.id !== "find") return;
    if (event.key === "Enter") {
      const hit = document.querySelector("#hits a");
      if (hit) hit.click();
      event.target.blur();
    } else if (event.key === "Escape") closeSearch();
  });

  const handed = (act) => (given) => { act(given); return dash_clientside.no_update; };

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.stepscope = {
    open: handed(open),
    arrive: handed(arrive),
    show: handed((picture) => picture && own.stage.show(picture)),
    filled: handed((search) => typeof search === "string" && own.busy.without("panes")),
    step: handed(step),
  };
})((window.stepscope = window.stepscope || {}));
