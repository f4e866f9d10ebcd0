"""Pixels that spans share, against a plain formula for each of them, in a real browser."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.app.web.in_browser.hands import SMALL, Open
from tests.tiers import slow

pytestmark = pytest.mark.web

COMPARED = """async ([seed, width, lanes, only, most]) => {
  const { image } = await import("/assets/shared.js");
  const { seen } = await import("/assets/seen.js");
  const { states } = seen.model;
  const framed = (lit) => Object.fromEntries(Object.entries(lit).map(
    ([name, shows]) => [name, (x, y) => y !== 1 && y !== 14 && !shows(x, y)]
  ));
  const CUES = {
    hollow: (x, y) => y !== 1 && y !== 14, hatch: (x, y) => (x + y) % 6 < 2,
    mark: (x, y) => y < 3 || y > 12, ticks: (x) => x % 4 === 3,
    ...framed({
      blocks: (x, y) => x % 4 < 2 && y % 4 < 2, rails: (_, y) => y % 4 === 0,
      slopes: (x, y) => (x + y) % 4 === 0, turns: (x, y) => (x % 12 < 6) !== (y < 8),
      posts: (x) => x % 4 === 0, dashes: (x, y) => x % 12 < 7 && y % 6 < 2,
    }),
  };
  const drawn = (seed) => () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const random = drawn(seed);
  const chosen = [...states.keys()].filter((at) => !only || only.includes(states[at].cue));
  const length = width * lanes;
  const below = (limit) => Math.floor(random() * limit);
  const state = Uint8Array.from({ length }, () => chosen[below(chosen.length)]);
  const density = Uint8Array.from({ length }, () => below(most));
  const dense = [...Array(lanes).keys()].reverse();

  const plain = new ImageData(width, lanes * 16);
  dense.forEach((row, at) => {
    for (let y = 0; y < 16; y++) for (let x = 0; x < width; x++) {
      const level = density[row * width + x];
      if (!level) continue;
      const { rgb: own, cue, parts } = states[state[row * width + x]];
      const half = y === 8 ? own : states[parts[parts.length - (y < 8 ? 2 : 1)]]?.rgb;
      const rgb = parts.length ? half : own;
      const dark = level > 1 && CUES[cue] && CUES[cue](x, y);
      const alpha = Math.round(255 * (0.32 + (1 - 0.32) * (level / 255)) * (dark ? 0.22 : 1));
      plain.data.set([...rgb, alpha], 4 * ((at * 16 + y) * width + x));
    }
  });
  const before = new OffscreenCanvas(width, lanes * 16);
  before.getContext("2d").putImageData(plain, 0, 0);

  const made = image({ width, dense, state, density }, states);
  const shown = (draw, wide, high) => {
    const canvas = new OffscreenCanvas(Math.ceil(wide), high * lanes);
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    pen.fillStyle = "#0E1116";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.imageSmoothingEnabled = false;
    for (let at = 0; at < lanes; at++) draw(pen, at, at * high, wide, high);
    return pen.getImageData(0, 0, canvas.width, canvas.height).data;
  };
  const different = [];
  for (const [wide, high] of [[width, 16], [width * 1.37, 20], [width / 2, 12], [width, 3]]) {
    const one = shown((pen, at, y) => {
      pen.drawImage(before, 0, at * 16, width, 16, -0.4, y, wide, high);
    }, wide, high);
    const other = shown((pen, at, y) => {
      const { top, tall } = made.places[at];
      pen.drawImage(made.drawn, 0, top, width, tall, -0.4, y, wide, high);
    }, wide, high);
    different.push(one.filter((value, at) => value !== other[at]).length);
  }
  const cues = [...new Set(states.map(({ cue }) => cue))];
  return { different, colours: new Set(plain.data).size, rows: made.drawn.height, cues };
}"""


def compared(page: Page, seed: int, *given: Any) -> dict[str, Any]:
    """How many values of pixels are different in each size, and how many rows were painted."""
    found: dict[str, Any] = page.evaluate(COMPARED, [seed, *given])
    assert found["colours"] > 20
    return found


@slow
def test_every_pixel_is_what_the_formula_says_whatever_cues_lie_beside_each_other(
    revisit: Open,
) -> None:
    page = revisit(SMALL).go()

    for seed, most in product((1, 2), (3, 256)):
        found = compared(page, seed, 301, 7, None, most)

        assert {"hollow", "hatch", "mark", "ticks", "solid", "turns", "posts"} <= set(found["cues"])
        assert found["different"] == [0, 0, 0, 0], (seed, most)
        assert found["rows"] == 7 * 16, (seed, most)


def test_one_row_is_enough_for_what_is_the_same_in_all(revisit: Open) -> None:
    page = revisit(SMALL).go()
    rows = {("solid",): 1, ("ticks",): 1, ("solid", "ticks"): 1, ("hollow",): 16, ("mark",): 16,
            ("hatch",): 16, ("blocks",): 16, ("dashes",): 16}  # fmt: skip

    found = {cues: compared(page, 9, 250, 4, list(cues), 256) for cues in rows}

    assert {cues: each["rows"] for cues, each in found.items()} == {
        cues: 4 * number for cues, number in rows.items()
    }
    assert [cues for cues, each in found.items() if any(each["different"])] == []
