"""Conditions of `diff --fail-on`, as people write them: `divergence`, `ttft_p99+5%`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.ingest.errors import ConfigError

DIVERGENCE, NEW_FINDINGS = "divergence", "new-findings"
TOTALS = (
    "makespan_ns", "steps", "latency_mean_ns", "latency_p99_ns", "latency_max_ns", "ttft_mean_ns",
    "ttft_p99_ns", "max_token_gap_ns", "tokens_per_s", "fairness", "finished", "preemptions",
    "aborted", "rejected", "failed", "open",
)  # fmt: skip
"""Of `outcomes.totals`: what a condition may be about."""
BY_NAME = {name.removesuffix("_ns"): name for name in TOTALS}
_LIMIT = re.compile(r"(?P<name>[a-z0-9_]+)(?P<sign>[+-])(?P<percent>\d{1,6}(?:\.\d{1,6})?)%")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: a total that may rise (`sign` 1) or fall (-1) by `percent`, or `total` None.

    `text` is as it was written, and names a condition that is about no total.
    """

    text: str
    total: str | None = None
    sign: int = 1
    percent: float = 0.0

    def is_beyond(self, a: float, b: float) -> bool:
        """Whether B is beyond the limit where A is what it was."""
        return (b - a) * self.sign > abs(a) * self.percent / 100


def conditions_of(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Read conditions, several in a text with commas between them; raises `ConfigError`."""
    each = (part.strip() for text in texts for part in text.split(","))
    return tuple(map(_condition, dict.fromkeys(filter(None, each))))


def _condition(text: str) -> Condition:
    if text in (DIVERGENCE, NEW_FINDINGS):
        return Condition(text)
    found = _LIMIT.fullmatch(text)
    if found is None or found["name"] not in BY_NAME:
        raise ConfigError(
            f"{text!r} is no condition",
            todo=f"one of {DIVERGENCE}, {NEW_FINDINGS}, or as makespan+2% and tokens_per_s-5%, of "
            f"{', '.join(BY_NAME)}",
        )
    sign = 1 if found["sign"] == "+" else -1
    return Condition(text, BY_NAME[found["name"]], sign, float(found["percent"]))
