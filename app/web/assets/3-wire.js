/* What the server sends for a view, unpacked: columns travel as base64 of their bytes. */
(function (own) {
  "use strict";

  function bytes(text) {
    const raw = atob(text);
    const found = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
    return found;
  }

  const floats = (text) => new Float64Array(bytes(text).buffer);

  /* {t0, t1, width, dense, state, density, sparse, counters}: `dense` lists the rows of `state` and
     `density` whose lanes come as pixels, `sparse` has the spans of the others by lane. */
  function read(answer) {
    const { t0, t1, width, lanes } = answer;
    const row = new Map(lanes.map((id, at) => [id, at]));
    const sparse = new Map(answer.sparse.map(({ lane, start, end, state, label }) => [
      lane,
      { start: floats(start), end: floats(end), state: bytes(state), label: label.map((at) => answer.labels[at]) },
    ]));
    const counters = new Map(answer.counters.map((line) => [line.lane, { ...line, values: floats(line.values) }]));
    const dense = answer.dense.map((id) => row.get(id));
    const place = new Map(answer.dense.map((id, at) => [id, at]));
    return { t0, t1, width, row, dense, place, sparse, counters, state: bytes(answer.state), density: bytes(answer.density) };
  }

  /* Index of the last entry at or before a value; -1 when there is none. */
  function lastUpTo(values, limit) {
    let low = 0;
    let high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] <= limit) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /* The span, shared pixel or sample of a lane at a time; `pixel` is a pixel's length in ns. */
  function spanAt(picture, lane, t, pixel) {
    const spans = picture.sparse.get(lane);
    if (spans) {
      const i = lastUpTo(spans.start, t + pixel);
      if (i < 0 || spans.end[i] < t - pixel) return null;
      return { start: spans.start[i], end: spans.end[i], state: spans.state[i], label: spans.label[i] };
    }
    const x = Math.floor(((t - picture.t0) / (picture.t1 - picture.t0)) * picture.width);
    if (x < 0 || x >= picture.width) return null;
    const line = picture.counters.get(lane);
    if (line) return Number.isNaN(line.values[x]) ? null : { value: line.values[x], unit: line.unit };
    const at = picture.row.get(lane) * picture.width + x;
    return picture.density[at] ? { state: picture.state[at], share: picture.density[at] / 255 } : null;
  }

  own.wire = { read, spanAt, lastUpTo };
})((window.stepscope = window.stepscope || {}));
