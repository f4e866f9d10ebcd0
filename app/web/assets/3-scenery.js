/* One frame of the timeline: rows, what ran in them, findings, selection, ruler, cursor. */
(function (own) {
  "use strict";

  const GLYPHS = { error: "✖", warning: "▲", info: "●" };
  const PAD = 2; // between a row's edge and its spans

  function paint(ctx, scene) {
    const { view, picture, colours, width, height } = scene;
    const map = { t0: view.t0, scale: width / (view.t1 - view.t0), width, states: shown(scene), muted: colours.muted };
    ctx.fillStyle = colours.background;
    ctx.fillRect(0, 0, width, height);
    const ticks = own.scale.ticks(view.t0, view.t1, width / 110);
    grid(ctx, scene, ticks);
    for (const place of scene.placed) {
      ground(ctx, scene, place);
      for (const part of parts(place)) {
        if (picture && picture.row.has(part.lane.id)) content(ctx, scene, map, part);
        else if (place.row.kind === "lane") awaited(ctx, scene, part);
      }
    }
    selected(ctx, scene);
    findings(ctx, scene);
    ruler(ctx, scene, ticks);
    during(ctx, scene);
    marked(ctx, scene);
    cursor(ctx, scene);
  }

  /* Hidden states stay as a trace of themselves. */
  const shown = ({ model, view }) =>
    model.states.map((state) => (view.hide.includes(state.name) ? { ...state, colour: `${state.colour}1c`, cue: "solid", ink: "transparent", rgb: state.rgb } : state));

  function grid(ctx, { xOf, height, colours }, ticks) {
    ctx.fillStyle = colours.panel;
    for (const { t } of ticks) ctx.fillRect(Math.round(xOf(t)), 0, 1, height);
  }

  function ground(ctx, { width, colours, view }, { row, y }) {
    if (row.kind === "section" || row.pinned) {
      ctx.fillStyle = row.pinned ? colours.raised : colours.panel;
      ctx.fillRect(0, y, width, row.height);
    } else if (view.selection && row.lane && row.lane.id === view.selection.lane) {
      ctx.fillStyle = `${colours.accent}14`;
      ctx.fillRect(0, y, width, row.height);
    }
    ctx.fillStyle = row.kind === "section" ? colours.border : `${colours.border}59`;
    ctx.fillRect(0, y + row.height - 1, width, 1);
    if (!row.note) return;
    ctx.fillStyle = colours.muted;
    ctx.fillText(row.note, 4, y + 15);
  }

  /* Where each lane of a row is drawn: a strip shows its lanes thinly, one above the other. */
  function parts({ row, y }) {
    const part = (row.height - 2 * PAD) / Math.max(1, row.lanes.length);
    return row.lanes.map((lane, at) => ({ lane, y: y + PAD + at * part, height: row.lanes.length > 1 ? Math.max(1, part - 1) : part }));
  }

  /* A lane of which the server has not told yet is not one in which nothing ran. */
  function awaited(ctx, { colours }, { y, height }) {
    ctx.fillStyle = colours.muted;
    ctx.fillText("…", 4, y + height / 2 + 3);
  }

  function content(ctx, scene, map, { lane, y, height }) {
    const { picture, colours } = scene;
    if (picture.sparse.has(lane.id)) return own.paint.spans(ctx, picture.sparse.get(lane.id), map, y, height);
    if (picture.counters.has(lane.id))
      return own.paint.counter(ctx, picture.counters.get(lane.id), picture, map, y, height, colours.muted, colours.muted);
    if (!picture.place.has(lane.id)) return undefined;
    const from = scene.xOf(picture.t0);
    const wide = scene.xOf(picture.t1) - from;
    ctx.imageSmoothingEnabled = false;
    return ctx.drawImage(picture.image, 0, picture.place.get(lane.id) * own.paint.TALL, picture.width, own.paint.TALL, from, y, wide, height);
  }

  function placeOf(scene, lane) {
    return scene.placed.findLast(({ row }) => row.lanes.some(({ id }) => id === lane));
  }

  /* Every finding has a tick over its lane; the current one is framed and has a line through all. */
  function findings(ctx, scene) {
    const { model, view, colours, xOf, width } = scene;
    for (const found of model.findings) {
      if (found.start === null || found.lane === null) continue;
      const from = xOf(found.start);
      const to = Math.max(xOf(found.end), from + 3);
      const current = found.key === view.finding;
      if (to < 0 || from > width) continue;
      const place = placeOf(scene, found.lane);
      if (current) through(ctx, scene, from);
      if (!place || (place.row.kind !== "lane" && !current)) continue;
      ctx.strokeStyle = ctx.fillStyle = colours[found.severity];
      if (!current) flag(ctx, from, place.y);
      else frame(ctx, from, to, place, GLYPHS[found.severity], colours);
    }
  }

  function through(ctx, { height, colours }, x) {
    ctx.save();
    ctx.setLineDash([3, 3]);
    ctx.strokeStyle = colours.accent;
    ctx.beginPath();
    ctx.moveTo(Math.round(x) + 0.5, 0);
    ctx.lineTo(Math.round(x) + 0.5, height);
    ctx.stroke();
    ctx.restore();
  }

  function flag(ctx, x, y) {
    ctx.beginPath();
    ctx.moveTo(x - 3.5, y);
    ctx.lineTo(x + 3.5, y);
    ctx.lineTo(x, y + 5);
    ctx.fill();
  }

  function frame(ctx, from, to, { row, y }, glyph, colours) {
    ctx.lineWidth = 2;
    ctx.strokeRect(Math.round(from) - 1, y + 1, Math.round(to - from) + 2, row.height - 2);
    ctx.lineWidth = 1;
    const badge = ctx.fillStyle;
    ctx.fillStyle = colours.background;
    ctx.beginPath();
    ctx.arc(from - 10, y + row.height / 2, 7.5, 0, 7);
    ctx.fill();
    ctx.fillStyle = badge;
    ctx.textAlign = "center";
    ctx.fillText(glyph, from - 10, y + row.height / 2 + 4);
    ctx.textAlign = "start";
  }

  function marked(ctx, { view, band, colours, xOf, height, ruler }) {
    const range = band || view.mark;
    if (!range) return;
    const [from, to] = [Math.min(...range), Math.max(...range)];
    const [left, right] = [xOf(from), xOf(to)];
    ctx.fillStyle = `${colours.accent}1f`;
    ctx.fillRect(left, ruler, right - left, height);
    ctx.fillStyle = colours.accent;
    ctx.fillRect(left, ruler - 3, Math.max(1, right - left), 2);
    for (const x of [left, right]) ctx.fillRect(Math.round(x), ruler - 3, 1, height);
    chip(ctx, own.scale.duration(to - from), (Math.max(0, left) + right) / 2, ruler + 3, colours.accent, colours.background);
  }

  function chip(ctx, text, x, y, ground, ink) {
    const wide = ctx.measureText(text).width + 10;
    const left = Math.max(0, x - wide / 2);
    ctx.fillStyle = ground;
    ctx.beginPath();
    ctx.roundRect(left, y, wide, 16, 3);
    ctx.fill();
    ctx.fillStyle = ink;
    ctx.fillText(text, left + 5, y + 12);
  }

  function outline(ctx, place, from, to) {
    ctx.beginPath();
    ctx.roundRect(from - 1, place.y + 1, Math.max(3, to - from) + 1, place.row.height - 2, 3);
    ctx.stroke();
  }

  /* The selected span, thinly what belongs to it: the other parts of its block, the finding's. */
  function selected(ctx, scene) {
    const { view, colours, xOf } = scene;
    const chosen = view.selection;
    if (!chosen) return;
    ctx.strokeStyle = colours.accent;
    for (const place of scene.placed) kin(ctx, scene, place);
    const place = placeOf(scene, chosen.lane);
    if (!place || place.row.kind !== "lane") return;
    ctx.lineWidth = 2;
    outline(ctx, place, xOf(chosen.start), xOf(chosen.end));
    ctx.lineWidth = 1;
  }

  function kin(ctx, { view, picture, xOf }, place) {
    const { row } = place;
    const spans = picture && row.kind === "lane" && row.lane.section === "core groups" && picture.sparse.get(row.lane.id);
    if (!spans) return;
    spans.label.forEach((label, i) => {
      if (view.kin.includes(label) && spans.end[i] > view.t0 && spans.start[i] < view.t1)
        outline(ctx, place, xOf(spans.start[i]), xOf(spans.end[i]));
    });
  }

  function ruler(ctx, { width, colours, xOf, ruler: tall }, ticks) {
    ctx.fillStyle = colours.background;
    ctx.fillRect(0, 0, width, tall);
    ctx.fillStyle = colours.border;
    ctx.fillRect(0, tall - 1, width, 1);
    for (const { t, label } of ticks) {
      const x = Math.round(xOf(t));
      ctx.fillStyle = colours.border;
      ctx.fillRect(x, 8, 1, tall - 8);
      ctx.fillStyle = colours.muted;
      ctx.fillText(label, x + 5, 16);
    }
  }

  /* The step in question, bracketed on the ruler. */
  function during(ctx, { view, colours, xOf, ruler: tall }) {
    if (!view.during) return;
    const [from, to] = view.during.map(xOf);
    ctx.fillStyle = colours.accent;
    ctx.fillRect(from, tall - 3, Math.max(2, to - from), 2);
    for (const x of [from, to]) ctx.fillRect(Math.round(x), tall - 8, 1, 7);
  }

  function cursor(ctx, { hover, view, colours, height, ruler: tall }) {
    if (!hover) return;
    ctx.fillStyle = `${colours.muted}66`;
    ctx.fillRect(Math.round(hover.x), tall, 1, height);
    chip(ctx, own.scale.moment(hover.t, view.t1 - view.t0), hover.x, 4, colours.raised, colours.text);
  }

  own.scenery = { paint };
})((window.stepscope = window.stepscope || {}));
