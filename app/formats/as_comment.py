"""The difference of two runs as a comment on a pull request: GitHub's Markdown, and GitLab's.

Text from a trace is neither Markdown nor HTML in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.analyzers.diff.compare import Difference
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.gate.judge import Judged
from stepscope.app.present.diff_text import amount, fate_of, total_name, verdict
from stepscope.app.printable import markdown_literal

WORST = 5
MARKS = {True: "❌", False: "✅", None: "❔"}
Pair = tuple[Any, Any]


def comment_of_two(found: Difference, judged: Sequence[Judged], link: str | None) -> Iterator[str]:
    """Two runs: the conditions, where they diverge, what came of it, who lost most."""
    yield from _head(judged, link)
    yield ""
    yield f"**{markdown_literal(found.a)}** against **{markdown_literal(found.b)}**:"
    for line in verdict(found):
        yield f"{markdown_literal(line.strip())}."
    if found.inputs:
        yield ""
        yield "Given differently: " + "; ".join(
            f"{_code(each.what)} {_code(each.a)} → {_code(each.b)}" for each in found.inputs[:WORST]
        )
    yield from _totals(found.outcomes.totals, ("A", "B"))
    yield from _who_lost(found.outcomes.requests)


def comment_of_several(
    medians: Mapping[str, Pair], counts: tuple[int, int], judged: Sequence[Judged], link: str | None
) -> Iterator[str]:
    """Several runs on a side: the conditions, and the medians of both."""
    yield from _head(judged, link)
    header = [f"{side}, median of {number}" for side, number in zip("AB", counts, strict=True)]
    yield from _totals(medians, header)


def _head(judged: Sequence[Judged], link: str | None) -> Iterator[str]:
    failed = sum(each.fails for each in judged)
    said = f"{failed} of {len(judged)} conditions failed" if judged else "no condition was given"
    yield f"### stepscope: {said}"
    if judged:
        yield ""
        yield "| | condition | seen |"
        yield "|---|---|---|"
    for each in judged:
        condition, seen = _code(each.condition.text), markdown_literal(each.said)
        yield f"| {MARKS[each.failed]} | {condition} | {seen} |"
    if link:
        yield ""
        yield f"[The report]({_url(link)})"


def _totals(totals: Mapping[str, Pair], header: Sequence[str]) -> Iterator[str]:
    told = [(name, pair) for name, pair in totals.items() if pair != (None, None)]
    differing = [(name, pair) for name, pair in told if pair[0] != pair[1]]
    yield ""
    if not differing:
        yield f"All {len(told)} totals are the same."
        return
    yield f"| outcome | {header[0]} | {header[1]} |"
    yield "|---|---:|---:|"
    for name, pair in differing:
        cells = (markdown_literal(amount(name, number)) for number in pair)
        yield f"| {total_name(name)} | {' | '.join(cells)} |"


def _who_lost(requests: pl.DataFrame) -> Iterator[str]:
    lost = requests.filter(pl.col("change") == "lost")
    if lost.is_empty():
        return
    yield ""
    yield f"{times(len(lost), 'request')} lost by it; most of all:"
    yield ""
    for row in lost.sort("gain_ns", nulls_last=False).head(WORST).iter_rows(named=True):
        fates = " → ".join(markdown_literal(fate_of(row, run)) for run in "ab")
        yield f"- {_code(row['request'] or '')}: {fates}"


def _code(value: Any) -> str:
    return f"<code>{markdown_literal('-' if value is None else str(value))}</code>"


def _url(text: str) -> str:
    return "".join(char if char.isascii() and char.isprintable() and char not in "()<> \\" else
                   f"%{ord(char):02X}" if ord(char) < 128 else "" for char in text)  # fmt: skip
