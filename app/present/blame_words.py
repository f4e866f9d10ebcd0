"""A row of blame in words: what it is called, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.app.widths import fit

WIDEST_NAME = 16


def row_name(row: Mapping[str, Any], widest: int | None = None) -> str:
    """What a row of `Blame.requests` is called, with its rank where that is not 0.

    Cut to `widest` cells of a terminal, if that is given; else as recorded, for a front to escape.
    """
    name = "whole run" if row["request"] is None else row["request"]
    full = f"{row['rank']}:{name}" if row["rank"] else name
    return full if widest is None else fit(full, widest)


def outcome(row: Mapping[str, Any]) -> str:
    """How a request ended; of a run that names none, which steps the row is of."""
    if row["request"] is None:
        return f"all steps of rank {row['rank']}"
    return row["outcome"] or "still there when the trace ended"
