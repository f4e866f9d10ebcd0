/* Ranges of time within a trace that begins at 0 and is `length` ns long; every move gives a new one. */
(function (own) {
  "use strict";

  const MIN_SPAN_NS = 1000;

  /* The nearest range of this width within the trace; the whole trace when it is wider. */
  function within(t0, span, length) {
    const kept = Math.min(Math.max(span, MIN_SPAN_NS), length);
    const from = Math.min(Math.max(0, t0), length - kept);
    return { t0: from, t1: from + kept };
  }

  /* `factor` times as much time; the time `at` keeps its place. */
  function zoomed({ t0, t1 }, factor, at, length) {
    const span = Math.min(Math.max((t1 - t0) * factor, MIN_SPAN_NS), length);
    return within(at - ((at - t0) * span) / (t1 - t0), span, length);
  }

  const slid = ({ t0, t1 }, shift, length) => within(t0 + shift, t1 - t0, length);
  const centred = ({ t0, t1 }, t, length) => within(t - (t1 - t0) / 2, t1 - t0, length);

  /* Two ends with a quarter of their distance around them. */
  const fitted = (from, to, length) => within(from - (to - from) / 4, (to - from) * 1.5, length);

  own.range = { within, zoomed, slid, centred, fitted };
})((window.stepscope = window.stepscope || {}));
