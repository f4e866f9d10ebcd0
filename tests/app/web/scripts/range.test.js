/* Ranges on the page move as those of the server do: what that says comes on standard input. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { anchor, slid, turned, within, zoomed } from "../../../../app/web/assets/range.js";

const { factors, length, moves } = JSON.parse(readFileSync(0, "utf8"));

/** @param {[number, number]} pair */
const near = ([t0, t1], range) =>
  assert.ok(Math.abs(range.t0 - t0) <= 1 && Math.abs(range.t1 - t1) <= 1, `${JSON.stringify(range)} is not ${t0}..${t1}`);

test("a range is zoomed and moved as the server does it", () => {
  assert.ok(moves.length > 100);
  for (const { range: [t0, t1], zoom, at, pan, zoomed: then, panned } of moves) {
    near(then, zoomed({ t0, t1 }, zoom, at, length, factors));
    near(panned, slid({ t0, t1 }, pan * (t1 - t0), length, factors));
  }
});

test("a range never leaves the trace, however far it is moved or zoomed", () => {
  for (const [t0, span] of [[-1e15, 10], [1e15, 1e4], [5, 1e15], [length - 1, 1]]) {
    const { t0: from, t1: to } = within(t0, span, length, factors);
    assert.ok(from >= 0 && to <= length && from < to);
  }
});

test("of a trace that is shorter than the narrowest view all is shown", () => {
  assert.deepEqual(within(3, 1, 7, factors), { t0: 0, t1: 7 });
});

test("a key zooms at the cursor where it can be seen, else in the middle", () => {
  assert.equal(anchor({ t0: 100, t1: 200 }, 130), 130);
  assert.equal(anchor({ t0: 100, t1: 200 }, 200), 150);
});

test("a notch of the wheel away from the user zooms in by the factor of the wheel", () => {
  assert.equal(turned(-100, factors), factors.wheel);
  assert.equal(turned(100, factors), 1 / factors.wheel);
  assert.equal(turned(9999, factors), turned(120, factors));
});
