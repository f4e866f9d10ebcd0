/* The window over the load of the whole trace: drag it, or click where to look. */
(function (own) {
  "use strict";

  const byId = (id) => document.getElementById(id);

  function show(view, model) {
    const style = byId("window").style;
    style.left = `${(100 * view.t0) / model.length}%`;
    style.width = `${(100 * (view.t1 - view.t0)) / model.length}%`;
  }

  function attach(model) {
    const map = byId("overview");
    let grip = null;
    const follow = (t) => own.stage.slide(t - grip);
    const at = (event) => {
      const bounds = map.getBoundingClientRect();
      return ((event.clientX - bounds.left) / bounds.width) * model.length;
    };
    map.addEventListener("pointerdown", (event) => {
      if (event.button || event.target.closest("a")) return;
      const t = at(event);
      const { t0, t1 } = own.stage.state();
      grip = t >= t0 && t <= t1 ? t - t0 : (t1 - t0) / 2;
      map.setPointerCapture(event.pointerId);
      follow(t);
    });
    map.addEventListener("pointermove", (event) => grip !== null && follow(at(event)));
    map.addEventListener("pointerup", () => (grip = null));
    map.addEventListener("wheel", (event) => {
      event.preventDefault();
      own.stage.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) / 400), own.stage.xOf(at(event)));
    }, { passive: false });
  }

  own.minimap = { show, attach };
})((window.stepscope = window.stepscope || {}));
