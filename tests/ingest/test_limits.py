"""Limits on what is read: how they are set, what a file beyond one still gives."""

from __future__ import annotations

import pytest

from stepscope.ingest.errors import ConfigError
from stepscope.ingest.limits import DEFAULTS, NAMES, limits_of


def test_each_limit_is_set_by_its_name_in_numbers_or_bytes() -> None:
    found = limits_of(["depth=64", "inflated=2GiB", "line = 8 k".replace(" = ", "="), "rows=1_000"])

    assert (found.depth, found.inflated, found.line, found.rows) == (64, 2 << 30, 8 << 10, 1_000)
    assert found.tracks == DEFAULTS.tracks


@pytest.mark.parametrize("text", ["depth", "depth=", "depth=0", "depth=-1", "depth=1.5", "text=1x"])
def test_what_is_no_number_from_1_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not NAME=N"):
        limits_of([text])


def test_an_unknown_limit_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=", ".join(NAMES)):
        limits_of(["deep=3"])
