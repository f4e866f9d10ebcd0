"""What several rules need is made once in a check, and is not kept after it."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analyzers.views.once import once, sharing
from stepscope.ingest.trace import Trace
from tests.traces import trace_of


class Maker:
    """Counts how often it made a frame."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> pl.LazyFrame:
        self.times += 1
        return pl.LazyFrame({"nth": [self.times]})


def _made(trace: Trace, make: Maker) -> int:
    return int(once(trace, "a frame", make).collect().item())


def test_a_frame_is_made_once_while_rules_share() -> None:
    trace, make = trace_of(), Maker()

    with sharing():
        assert [_made(trace, make), _made(trace, make)] == [1, 1]


def test_another_trace_has_a_frame_of_its_own() -> None:
    make = Maker()

    with sharing():
        assert [_made(trace_of(), make), _made(trace_of(), make)] == [1, 2]


def test_nothing_is_kept_outside_nor_from_one_family_to_the_next() -> None:
    trace, make = trace_of(), Maker()

    with sharing():
        _made(trace, make)
    outside = [_made(trace, make), _made(trace, make)]
    with sharing():
        assert [*outside, _made(trace, make)] == [2, 3, 4]


def test_a_rule_that_fails_leaves_nothing_shared() -> None:
    trace, make = trace_of(), Maker()

    with pytest.raises(ZeroDivisionError):
        _fail_while_sharing(trace, make)

    assert _made(trace, make) == 2


def _fail_while_sharing(trace: Trace, make: Maker) -> None:
    with sharing():
        _made(trace, make)
        raise ZeroDivisionError
