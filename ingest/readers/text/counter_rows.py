"""Make traces that have only counters, from rows of measurements; parse numbers and times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from stepscope.ingest.frames import Frame
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.readers.text.collect import LogRows

_LARGEST = 1e300
UNITS_OF_EPOCH = ((1e8, 1e11, 10**9), (1e11, 1e14, 10**6), (1e14, 1e17, 10**3), (1e17, 9.2e18, 1))
"""Ranges of numbers that are times since 1970: least, most, nanoseconds per unit."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value of JSON is a finite number: whole ones may have any number of digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -_LARGEST < value < _LARGEST


def epoch_ns(number: float) -> int | None:
    """Return a time since 1970 in nanoseconds, with the unit inferred from its size, or None."""
    units = (unit for least, most, unit in UNITS_OF_EPOCH if least <= number < most)
    unit = next(units, None)
    if unit is None:
        return None
    whole = int(number)
    return whole * unit + round((number - whole) * unit)


def counter_trace(
    rows: LogRows, producer: str, clock: str, notes: Iterable[str], damage: str | None
) -> tuple[dict[str, Frame], Manifest]:
    """Return the tables of the rows, and a manifest with what was read and what was not."""
    sources = sorted(rows.sources.values(), key=lambda source: source.rank)
    kept = [f"{damage}; all before is kept"] if damage else []
    manifest = Manifest(
        producer=producer,
        clock=ClockInfo(clock),
        ranks=tuple(source.rank for source in sources) or (0,),
        config={"sources": {str(source.rank): source.name for source in sources}},
        tables={"counters": "partial" if damage else "ordered" if clock == "none" else "complete"},
        closed=damage is None,
        report=ReadReport(
            read=dict(+rows.read),
            skipped=dict(+rows.skipped),
            repaired=dict(+rows.repaired),
            inferred=dict(+rows.inferred),
            notes=(*kept, *notes),
        ),
    )
    tables = {name: frame.sort("ts_ns", maintain_order=True) for name, frame in rows.tables()}
    return dict(tables), manifest
