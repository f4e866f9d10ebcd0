/* The timeline on screen: what range and lanes it shows, and what is drawn over them. It asks the
   server for a picture of what it shows and stretches the last one until the next has come. */
(function (own) {
  "use strict";

  const RULER = 26;
  const MARGIN = 0.5;      // of the view, asked for on both sides so that a pan has something to show
  const PATIENCE_MS = 5000; // a picture that takes longer no longer holds up the next
  const NO_VIEW = { t0: 0, t1: 1, pin: [], hide: [], fold: [], mark: null, selection: null, kin: [], finding: null, during: null };

  let model = null;        // lanes, states, findings, length of the trace
  let view = { ...NO_VIEW };
  let plan = { pinned: [], rows: [], pinnedHeight: 0, height: 0 };
  let picture = null;
  let hover = null;        // {x, y, t, row, lane, span}
  let band = null;         // a range being marked
  let frame = 0;
  let colours = {};

  const byId = (id) => document.getElementById(id);
  const box = () => byId("stage");
  const canvas = () => byId("canvas");
  const width = () => Math.max(50, box().clientWidth - canvas().offsetLeft);
  const height = () => box().clientHeight;
  const timeAt = (x) => view.t0 + (x / width()) * (view.t1 - view.t0);
  const xOf = (t) => ((t - view.t0) / (view.t1 - view.t0)) * width();

  /* --- what is shown --- */

  function open(given) {
    model = given;
    document.title = `${model.name} · stepscope`;
    for (const state of model.states) state.rgb = [1, 3, 5].map((at) => parseInt(state.colour.slice(at, at + 2), 16));
    const style = getComputedStyle(document.documentElement);
    for (const name of ["background", "panel", "raised", "border", "text", "muted", "accent", "error", "warning", "info"])
      colours[name] = style.getPropertyValue(`--${name}`).trim();
    own.pointer.attach(canvas(), box());
    box().addEventListener("scroll", () => { draw(); ask(); });
    new ResizeObserver(() => { draw(); ask(); }).observe(box());
  }

  function adopt(given) {
    const before = view.selection;
    view = { ...NO_VIEW, ...given };
    arrange();
    const chosen = view.selection;
    if (chosen && !(before && before.lane === chosen.lane && before.at === chosen.at)) reveal(chosen.lane);
    draw();
    ask();
  }

  function arrange() {
    plan = own.rows.layout(model, view.pin, view.fold);
    byId("paper").style.height = `${RULER + plan.pinnedHeight + plan.height}px`;
    own.labels.show(plan, view, RULER);
  }

  /* Scroll so that a lane can be seen, unfolding what hides it. */
  function reveal(id) {
    const lane = model.lanes[id];
    const hiding = [lane.section, `${lane.section}/${lane.group}`];
    if (hiding.some((key) => view.fold.includes(key))) change("fold", view.fold.filter((key) => !hiding.includes(key)));
    const row = own.rows.rowOf(plan, id);
    const top = RULER + plan.pinnedHeight;
    const room = height() - top;
    if (row.top < box().scrollTop || row.top + row.height > box().scrollTop + room)
      box().scrollTop = Math.max(0, row.top - room / 2);
  }

  /* Rows on screen with their place on the canvas, the pinned ones last: they lie on top. */
  function placed() {
    const first = RULER + plan.pinnedHeight;
    const shift = first - box().scrollTop;
    const rows = plan.rows
      .filter((row) => row.top + row.height + shift > first && row.top + shift < height())
      .map((row) => ({ row, y: row.top + shift }));
    return [...rows, ...plan.pinned.map((row) => ({ row, y: RULER + row.top }))];
  }

  /* --- asking --- */

  let asked = 0;      // when the picture under way was asked for; 0 when none is
  let again = false;  // whether something else is wanted by now

  function ask() {
    if (!model || !model.lanes.length) return;
    again = asked > 0 && performance.now() - asked < PATIENCE_MS;
    if (again) return;
    asked = performance.now();
    own.busy.with("picture");
    const span = view.t1 - view.t0;
    const lanes = [...new Set(placed().flatMap(({ row }) => row.lanes.map(({ id }) => id)))];
    dash_clientside.set_props("ask", { data: {
      t0: view.t0 - span * MARGIN, t1: view.t1 + span * MARGIN,
      width: Math.round(width() * (1 + 2 * MARGIN) * Math.min(2, devicePixelRatio)),
      lanes, hide: view.hide,
    } });
  }

  function show(answer) {
    picture = own.wire.read(answer);
    picture.image = own.paint.image(picture, model.states);
    byId("position").textContent = answer.position;
    asked = 0;
    draw();
    if (again) ask();
    else own.busy.without("picture");
  }

  /* --- moving --- */

  function look(range) {
    Object.assign(view, range);
    own.address.note({ t: `${Math.round(view.t0)}..${Math.round(view.t1)}` });
    draw();
    ask();
  }

  const { zoomed, slid, centred, fitted } = own.range;
  const zoom = (factor, x = hover ? hover.x : width() / 2) => look(zoomed(view, factor, timeAt(x), model.length));
  const slide = (t0) => look(slid(view, t0 - view.t0, model.length));
  const pan = (share) => look(slid(view, share * (view.t1 - view.t0), model.length));
  const edge = (end) => look(centred(view, end * model.length, model.length));
  const whole = () => look({ t0: 0, t1: model.length });

  /* Centre the mark or the selection; fit it when it is centred already. */
  function focus() {
    const chosen = view.mark || (view.selection && [view.selection.start, view.selection.end]);
    if (!chosen) return;
    const before = view.t0;
    look(centred(view, (chosen[0] + chosen[1]) / 2, model.length));
    if (Math.abs(view.t0 - before) < (view.t1 - view.t0) / 1000) look(fitted(...chosen, model.length));
  }

  /* --- choosing --- */

  function select(lane, t) {
    own.address.flush();
    own.address.travel({ sel: `${lane}@${Math.round(t)}`, finding: null }, true);
  }

  function lane(by) {
    const lanes = plan.rows.filter((row) => row.lane).map((row) => row.lane.id);
    if (!lanes.length) return;
    const here = view.selection ? lanes.indexOf(view.selection.lane) : -1;
    const next = lanes[Math.min(Math.max(here + by, 0), lanes.length - 1)];
    const t = view.selection ? view.selection.at : (view.t0 + view.t1) / 2;
    reveal(next);
    select(next, Math.min(Math.max(t, view.t0), view.t1));
  }

  /* Change a list or value of the view and note it in the address. */
  function change(name, value, spelled = value.join(",")) {
    view[name] = value;
    own.address.note({ [name]: spelled });
    arrange();
    draw();
    ask();
  }

  const toggled = (list, entry) => (list.includes(entry) ? list.filter((each) => each !== entry) : [...list, entry]);

  function pin(id = hover && hover.lane ? hover.lane.id : view.selection && view.selection.lane) {
    if (Number.isInteger(id)) change("pin", toggled(view.pin, id));
  }

  const foldHere = () => view.selection && fold(model.lanes[view.selection.lane].section);
  const fold = (key) => change("fold", toggled(view.fold, key), toggled(view.fold, key).map(encodeURIComponent).join(","));
  const hide = (name) => change("hide", toggled(view.hide, name));

  function mark(range = view.mark ? null : view.selection && [view.selection.start, view.selection.end]) {
    const [from, to] = range || [0, 0];
    change("mark", range, range ? `${Math.round(Math.min(from, to))}..${Math.round(Math.max(from, to))}` : null);
  }

  function clear() {
    own.address.flush();
    if (view.mark) return mark(null);
    if (view.selection || view.finding) return own.address.travel({ sel: null, finding: null, step: null }, true);
    if (view.hide.length) return change("hide", []);
  }

  /* --- drawing --- */

  function draw() {
    if (frame || !model) return;
    own.busy.with("frame");
    frame = requestAnimationFrame(() => { frame = 0; paint(); own.busy.without("frame"); });
  }

  function paint() {
    const ratio = devicePixelRatio || 1;
    const surface = canvas();
    const [w, h] = [width(), height()];
    if (surface.width !== Math.round(w * ratio) || surface.height !== Math.round(h * ratio)) {
      surface.width = Math.round(w * ratio);
      surface.height = Math.round(h * ratio);
      Object.assign(surface.style, { width: `${w}px`, height: `${h}px` });
    }
    const ctx = surface.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.font = own.paint.FONT;
    ctx.lineWidth = 1;
    own.scenery.paint(ctx, { model, view, picture, plan, placed: placed(), hover, band, colours, width: w, height: h, ruler: RULER, xOf });
    own.minimap.show(view, model);
    own.labels.show(plan, view, RULER);
  }

  /* --- what the mouse is over --- */

  function at(x, y) {
    const found = placed().reverse().find(({ row, y: top }) => y >= top && y < top + row.height);
    if (!found || y < RULER) return { x, y, t: timeAt(x), row: null, lane: null, span: null };
    const { row } = found;
    const part = Math.floor(((y - found.y) / row.height) * row.lanes.length);
    const lane = row.lane && (row.kind === "strip" ? row.lanes[part] : row.lane);
    return { x, y, t: timeAt(x), row, lane, span: lane && picture ? own.wire.spanAt(picture, lane.id, timeAt(x), (view.t1 - view.t0) / width()) : null };
  }

  function point(x, y) {
    hover = x === null ? null : at(x, y);
    own.tip.show(hover, model);
    draw();
  }

  const stretch = (from, to) => { band = from === null ? null : [from, to]; draw(); };
  const ready = () => model !== null;
  const state = () => view;

  own.stage = {
    RULER, open, adopt, show, zoom, slide, pan, edge, whole, focus, select, lane, pin, fold, foldHere, hide, mark, clear,
    at, point, stretch, timeAt, xOf, width, ready, state,
  };
})((window.stepscope = window.stepscope || {}));
