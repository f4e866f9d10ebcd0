"""Times that stand for something else: one constant, whoever adds them up."""

from __future__ import annotations

FAR_NS = 2**61
"""A time after everything, of what has no end: Unix times reach it in 2043.

Times are cut to it, 73 years either way, so that the sum of three stays within an int64.
"""
