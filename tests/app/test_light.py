"""In dark and in light, text can be read and what lies in one legend is told apart by every eye."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from stepscope.app import light
from stepscope.app.palette import REASONS, SEVERITY_MARKS, STATES

Colour = npt.NDArray[np.float64]

READABLE, SEEN = 4.5, 3.0
"""What WCAG 2 asks of text (AA), and of what is drawn."""
EYES = {
    "usual": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                        [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                        [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                        [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
"""What linear RGB becomes for an eye that lacks a cone (Machado, Oliveira and Fernandes 2009)."""
TO_LMS = np.array([[0.4122214708, 0.5363325363, 0.0514459929],
                   [0.2119034982, 0.6806995451, 0.1073969566],
                   [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
TO_LAB = np.array([[0.2104542553, 0.7936177850, -0.0040720468],
                   [1.9779984951, -2.4285922050, 0.4505937099],
                   [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip
"""Linear RGB to OKLab, as Björn Ottosson published it."""
LEGENDS = {
    "states": ("waiting", "prefill", "decode", "preempted", "recompute"),
    "cores": ("AIC", "AIV", "MIX"),
    "kinds": ("gemm", "attention", "kernel", "communication", "copy"),
    "calls": ("communication", "blocked", "mismatched"),
    "waits": ("waiting", *(STATES[state].name for state in REASONS)),
    "names": tuple(f"name {number}" for number in range(1, 8)),
}
LEAST = {"states": 12, "cores": 12, "kinds": 12, "calls": 12, "waits": 6, "names": 7}
"""OKLab distance times 100; Okabe and Ito's seven have 7.6 among them.

What a request waits for is muted, and has a pattern and a letter of its own.
"""
COLOURS = {state.name: state.colour for state in STATES}
OUTLINED = {"nothing", "idle", "held", "front-end"}
"""What is drawn as an outline or a hatch, so that nobody takes it for work."""


def linear(colour: str) -> Colour:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def oklab(seen: Colour) -> Colour:
    found: Colour = TO_LAB @ np.cbrt(TO_LMS @ seen.clip(0, 1))
    return found


def apart(one: str, other: str) -> float:
    """How far two colours are apart for the eye that tells them apart worst."""
    return min(
        100 * float(np.linalg.norm(oklab(eye @ linear(one)) - oklab(eye @ linear(other))))
        for eye in EYES.values()
    )


@pytest.mark.parametrize("is_light", [False, True], ids=["dark", "light"])
def test_text_of_every_kind_can_be_read_on_every_surface(is_light: bool) -> None:
    named = light.surfaces(is_light=is_light)
    words = ("text", "muted", "accent", "hit", *SEVERITY_MARKS)

    for word in words:
        for surface in ("background", "panel", "raised"):
            assert light.contrast(named[word], named[surface]) >= READABLE, (word, surface)


@pytest.mark.parametrize("is_light", [False, True], ids=["dark", "light"])
def test_what_is_written_on_a_span_can_be_read(is_light: bool) -> None:
    for name, colour in COLOURS.items():
        ground = light.colour(colour, is_light=is_light)
        assert light.contrast(light.ink(ground), ground) >= READABLE, name


@pytest.mark.parametrize("is_light", [False, True], ids=["dark", "light"])
def test_a_span_stands_out_from_the_ground(is_light: bool) -> None:
    ground = light.surfaces(is_light=is_light)["background"]

    for name in COLOURS.keys() - OUTLINED:
        shown = light.colour(COLOURS[name], is_light=is_light)
        assert light.contrast(shown, ground) >= SEEN, name


@pytest.mark.parametrize("legend", LEGENDS)
@pytest.mark.parametrize("is_light", [False, True], ids=["dark", "light"])
def test_what_stands_in_one_legend_is_told_apart_by_every_eye(legend: str, is_light: bool) -> None:
    shown = {name: light.colour(COLOURS[name], is_light=is_light) for name in LEGENDS[legend]}

    for one, other in combinations(shown, 2):
        assert apart(shown[one], shown[other]) >= LEAST[legend], (one, other)


def test_every_colour_of_the_palette_that_is_no_shade_of_grey_has_one_on_light() -> None:
    same = {each for each in light.drawn() if light.colour(each, is_light=True) == each}

    assert same == {COLOURS[name] for name in ("front-end", *(f"span {at}" for at in range(1, 5)))}
