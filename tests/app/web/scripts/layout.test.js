/* Rows in their places, spans in a picture, times on a ruler. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { lastUpTo, read, shownAt } from "../../../../app/web/assets/picture.js";
import { layout, rowOf } from "../../../../app/web/assets/rows.js";
import { amount, clock, duration, moment, ticks } from "../../../../app/web/assets/scale.js";

const lane = (id, section, group, kind = "spans") => ({ id, section, group, kind, name: `lane ${id}`, part: "" });
const row = (kind, lanes, key, under) => ({ kind, lanes, key, under, group: "", name: "" });
const MODEL = {
  lanes: [lane(0, "steps", ""), lane(1, "core groups", "group 0"), lane(2, "core groups", "group 0"), lane(3, "counters", "", "counter")],
  rows: [
    row("section", [], "steps", []),
    row("lane", [0], "", ["steps"]),
    row("section", [], "core groups", []),
    row("strip", [1, 2], "core groups/group 0", ["core groups"]),
    row("lane", [1], "core groups/group 0", ["core groups", "core groups/group 0"]),
    row("lane", [2], "", ["core groups", "core groups/group 0"]),
    row("section", [], "counters", []),
    row("lane", [3], "", ["counters"]),
  ],
};
const kinds = (plan) => plan.rows.map(({ kind }) => kind).join(" ");

test("rows lie below each other without a gap", () => {
  const { rows, height } = layout(MODEL, [], []);
  assert.deepEqual(rows.slice(1).map(({ top }) => top), rows.slice(0, -1).map((each) => each.top + each.height));
  assert.equal(height, rows.at(-1).top + rows.at(-1).height);
});

test("a counter is taller than a lane of spans", () => {
  const plan = layout(MODEL, [], []);
  assert.ok(rowOf(plan, 3).height > rowOf(plan, 0).height);
});

test("a collapsed section keeps its header alone", () => {
  assert.equal(kinds(layout(MODEL, [], ["core groups"])), "section lane section section lane");
});

test("a collapsed group is a strip that shows all its lanes", () => {
  const plan = layout(MODEL, [], ["core groups/group 0"]);
  assert.equal(kinds(plan), "section lane section strip section lane");
  assert.deepEqual(rowOf(plan, 2).lanes, [1, 2]);
});

test("a pinned lane lies on top and stays in its section", () => {
  const plan = layout(MODEL, [2], []);
  assert.deepEqual(plan.pinned.map(({ lanes }) => lanes), [[2]]);
  assert.ok(rowOf(plan, 2));
});

test("a pinned lane is called as the server says", () => {
  const lanes = [{ ...lane(0, "core groups", "group 0"), name: "group 0", part: "AIV1" }];
  const [{ name, part }] = layout({ lanes, rows: [] }, [0], []).pinned;
  assert.deepEqual([name, part], ["group 0", "AIV1"]);
});

const ANSWER = {
  t0: 0, t1: 100, width: 4, lanes: [5, 6], dense: [6], marked: [6], mark: Uint8Array.of(7, 7, 3, 0), labels: ["up"], counters: [], position: "",
  state: Uint8Array.of(0, 0, 0, 0, 7, 0, 7, 7), density: Uint8Array.of(0, 0, 0, 0, 255, 0, 51, 255),
  sparse: [{ lane: 5, start: Float64Array.of(10, 50), end: Float64Array.of(20, 90), state: Uint8Array.of(1, 2), label: [0, 0] }],
};

test("a span is found at its times, and nothing between two", () => {
  const picture = read(ANSWER);
  assert.deepEqual(shownAt(picture, 5, 60, 1), { start: 50, end: 90, state: 2, label: "up" });
  assert.equal(shownAt(picture, 5, 35, 1), null);
});

test("of many spans the share of a pixel is told", () => {
  const picture = read(ANSWER);
  assert.deepEqual(shownAt(picture, 6, 60, 1), { state: 7, share: 0.2 });
  assert.equal(shownAt(picture, 6, 30, 1), null);
  assert.equal(shownAt(picture, 6, 100, 1), null);
});

test("a mark has its sign where another state fills the pixel, and where it begins", () => {
  assert.deepEqual(read(ANSWER).signs.get(6), [[0, 7], [1, 7], [2, 3]]);
  const [state, mark] = [Uint8Array.of(0, 0, 0, 0, 7, 7, 7, 7), Uint8Array.of(7, 7, 0, 7)];
  assert.deepEqual(read({ ...ANSWER, state, mark }).signs.get(6), [[0, 7], [3, 7]]);
});

test("the last entry up to a value is found, or none", () => {
  assert.deepEqual([0, 1, 2, 9].map((limit) => lastUpTo([1, 2, 2, 5], limit)), [-1, 0, 2, 3]);
});

test("a ruler has round times in one unit, and no more than fit", () => {
  assert.deepEqual(ticks(0, 1000, 5).map(({ label }) => label), ["0.0 µs", "0.2 µs", "0.4 µs", "0.6 µs", "0.8 µs", "1.0 µs"]);
  for (const most of [1, 3, 10]) assert.ok(ticks(123, 98765, most).length <= most + 1);
});

test("times are told in the unit that people read", () => {
  assert.equal(duration(12345), "12.35 µs");
  assert.equal(moment(1234567890, 1e6), "1.234568 s");
});

test("without a clock a ruler counts positions", () => {
  clock(false);
  try {
    assert.deepEqual(ticks(0, 20000, 5).map(({ label }) => label), [0, 5, 10, 15, 20].map((at) => `position ${at}`));
    assert.deepEqual([moment(7000, 1), duration(7000), duration(1000)], ["position 7", "7 positions", "1 position"]);
    assert.equal(amount(3040, "ns"), "3.04 µs");
  } finally {
    clock(true);
  }
});
