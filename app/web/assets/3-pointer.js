/* The mouse on the timeline: drag moves, wheel zooms, shift marks a range, click selects. */
(function (own) {
  "use strict";

  const STILL = 4; // pixels that a click may move

  function attach(canvas, stage) {
    let held = null;
    const at = (event) => {
      const bounds = canvas.getBoundingClientRect();
      return [event.clientX - bounds.left, event.clientY - bounds.top];
    };

    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const [x, y] = at(event);
      held = { x, y, from: own.stage.timeAt(x), view: { ...own.stage.state() }, top: stage.scrollTop, moved: false, marks: event.shiftKey || y < own.stage.RULER };
      canvas.setPointerCapture(event.pointerId);
    });

    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (!held) return own.stage.point(x, y);
      held.moved ||= Math.hypot(x - held.x, y - held.y) > STILL;
      if (!held.moved) return undefined;
      own.stage.point(null);
      if (held.marks) return own.stage.stretch(held.from, own.stage.timeAt(x));
      return drag(x, y);
    });

    function drag(x, y) {
      canvas.classList.add("dragging");
      const { t0, t1 } = held.view;
      own.stage.slide(t0 + ((held.x - x) / own.stage.width()) * (t1 - t0));
      stage.scrollTop = held.top + held.y - y;
    }

    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = at(event);
      const was = held;
      held = null;
      canvas.classList.remove("dragging");
      if (!was) return;
      if (was.moved && was.marks) {
        own.stage.stretch(null);
        own.stage.mark([was.from, own.stage.timeAt(x)]);
      } else if (!was.moved) {
        const { lane, row, t } = own.stage.at(x, y);
        if (lane) own.stage.select(lane.id, t);
        else if (row && row.fold) own.stage.fold(row.fold);
      }
    });

    canvas.addEventListener("pointerleave", () => own.stage.point(null));
    canvas.addEventListener("dblclick", () => own.stage.focus());

    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x] = at(event);
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) own.stage.pan(sideways / own.stage.width());
      else if (event.altKey) stage.scrollTop += event.deltaY;
      else own.stage.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) / 400), x);
    }, { passive: false });
  }

  own.pointer = { attach };
})((window.stepscope = window.stepscope || {}));
