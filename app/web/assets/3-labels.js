/* The names of the rows on the left: text nodes only, whatever a trace calls its lanes. */
(function (own) {
  "use strict";

  const SPARE = 300; // pixels above and below the screen whose rows are kept

  const byId = (id) => document.getElementById(id);

  function element(tag, kind, text) {
    const made = document.createElement(tag);
    made.className = kind;
    made.textContent = text;
    return made;
  }

  function button(kind, text, title, act) {
    const made = element("span", kind, text);
    made.title = title;
    made.addEventListener("click", (event) => { event.stopPropagation(); act(); });
    return made;
  }

  function label(row, y, view) {
    const current = row.lane && view.selection && row.lane.id === view.selection.lane;
    const made = element("div", `row ${row.kind}${row.pinned ? " pinned" : ""}${row.deep ? " deep" : ""}${current ? " current" : ""}`, "");
    Object.assign(made.style, { top: `${y}px`, height: `${row.height}px` });
    if (row.fold) made.append(button("twist", row.shut ? "▸" : "▾", row.shut ? "unfold" : "fold", () => own.stage.fold(row.fold)));
    const name = element("span", "name", row.name);
    name.title = row.name;
    made.append(name);
    if (row.part) made.append(element("span", "part", row.part));
    if (row.lane) {
      made.append(button("pin", row.pinned ? "●" : "○", row.pinned ? "let go" : "pin on top", () => own.stage.pin(row.lane.id)));
      made.dataset.lane = row.lane.id;
    } else made.addEventListener("click", () => own.stage.fold(row.fold));
    return made;
  }

  let drawn = "";

  function show(plan, view, ruler) {
    const stage = byId("stage");
    const first = ruler + plan.pinnedHeight;
    const [above, below] = [stage.scrollTop - SPARE, stage.scrollTop + stage.clientHeight + SPARE];
    const rows = plan.rows.filter((row) => first + row.top + row.height > above && first + row.top < below);
    const key = JSON.stringify([rows.map((row) => [row.top, row.name, row.part, row.shut]), view.pin, view.selection && view.selection.lane, plan.pinnedHeight]);
    if (key === drawn) return;
    drawn = key;
    byId("names").replaceChildren(...rows.map((row) => label(row, first + row.top, view)));
    byId("pinned").replaceChildren(...plan.pinned.map((row) => label(row, ruler + row.top, view)));
  }

  own.labels = { show, element };
})((window.stepscope = window.stepscope || {}));
