/* The note beside the mouse: what it is over. */
(function (own) {
  "use strict";

  function lines({ span, lane, t }, model) {
    const name = [lane.group, lane.label].filter(Boolean).join(" ");
    if (!span) return null;
    if ("value" in span) return [name, `${span.value.toLocaleString("en")} ${span.unit}`];
    const state = model.states[span.state].name;
    if ("share" in span) return [name, `mostly ${state}, ${Math.round(100 * span.share)}% busy`];
    const length = own.scale.duration(span.end - span.start);
    return [span.label || state, `${name} · ${state} · ${length} from ${own.scale.moment(span.start, span.end - span.start)}`];
  }

  function show(hover, model) {
    const tip = document.getElementById("tip");
    const said = hover && hover.lane && lines(hover, model);
    tip.style.visibility = said ? "visible" : "hidden";
    if (!said) return;
    tip.replaceChildren(own.labels.element("b", "", said[0]), own.labels.element("span", "", said[1]));
    const canvas = document.getElementById("canvas").getBoundingClientRect();
    const left = Math.min(canvas.left + hover.x + 14, innerWidth - tip.offsetWidth - 8);
    const below = canvas.top + hover.y + 18;
    const top = below + tip.offsetHeight < innerHeight ? below : below - tip.offsetHeight - 32;
    tip.style.transform = `translate(${left}px, ${top}px)`;
  }

  own.tip = { show };
})((window.stepscope = window.stepscope || {}));
