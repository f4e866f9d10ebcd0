from __future__ import annotations

import time

from stepscope.ingest.replay.virtual_clock import Clock


def test_it_is_everybodys_time_as_long_as_it_lasts() -> None:
    clock = Clock()
    clock.move_to(5_000_000_000)

    with clock.for_everybody():
        inside = time.time_ns(), time.time(), time.monotonic()

    assert inside == (5_000_000_000, 5.0, 5.0)
    assert time.time_ns() > 1_000_000_000_000_000_000


def test_it_never_goes_back() -> None:
    clock = Clock()
    clock.move_to(5)

    clock.move_to(3)

    assert clock.now_ns() == 5
