"""Tokens that stand for a request's own, where a trace tells who begins like whom.

A request is all of one token of its own, but for its beginning: that is the other's. Two requests
then have as many first tokens in common as they had when they were recorded, which is all that a
radix cache looks at.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

FIRST = 16
"""The token of the first request; engines give some below it a meaning of their own."""
Runs = list[tuple[int, int]]


def runs_of(lifecycle: pl.DataFrame) -> dict[str, tuple[tuple[int, int], ...]]:
    """Give (token, how often in a row) of each request's prompt and output, in order.

    `lifecycle` are a rank's rows in order of time. It is empty where nobody's prompt is told to be
    like another's.
    """
    if lifecycle["num_alike"].null_count() == len(lifecycle):
        return {}
    found: dict[str, Runs] = {}
    for number, (request, length, alike, num_alike) in enumerate(_told(lifecycle)):
        runs = found.setdefault(request, [])
        if alike in found and num_alike:
            runs += _cut(found[alike], _length(runs), num_alike)
        if (rest := length - _length(runs)) > 0:
            runs.append((FIRST + number, rest))
    return {request: tuple(runs) for request, runs in found.items()}


def _told(lifecycle: pl.DataFrame) -> Iterator[tuple[str, int, str | None, int | None]]:
    """request, tokens that it has so far, whom it is like, and how far: its prompt, then all."""
    prompts: dict[str, int] = {}
    names = ("event", "request", "prompt_len", "num_generated", "alike", "num_alike")
    for event, request, prompt_len, generated, alike, num_alike in lifecycle.select(names).rows():
        if event == "arrive" and prompt_len is not None:
            prompts[request] = prompt_len
            yield request, prompt_len, alike, num_alike
        elif event in ("finish", "abort", "error") and request in prompts:
            yield request, prompts[request] + (generated or 0), alike, num_alike


def _length(runs: Runs) -> int:
    return sum(number for _, number in runs)


def _cut(runs: Runs, first: int, last: int) -> Iterator[tuple[int, int]]:
    """The tokens from `first` up to, and without, `last`."""
    at = 0
    for token, number in runs:
        begin, end = max(at, first), min(at + number, last)
        if begin < end:
            yield token, end - begin
        at += number
