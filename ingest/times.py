"""Units of time, and times that stand for something else: one constant, whoever adds them up."""

from __future__ import annotations

US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000
"""In nanoseconds, as all times are."""

POSITION_NS = 1_000
"""How far rows are apart that have an order and no time: of clock `none`, this is no duration."""

EARLIEST_NS = -(2**63)
"""The first time that there is: nothing can be before it."""

FAR_NS = 2**61
"""A time after everything, of what has no end: Unix times reach it in 2043.

Times are cut to it, 73 years either way, so that the sum of three stays within an int64.
"""
