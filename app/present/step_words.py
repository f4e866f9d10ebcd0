"""A step's numbers in words, for its line in the terminal and its table in the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def tokens(step: Mapping[str, Any]) -> str:
    """The tokens of a row of `steps` by kind, in all, and against the budget, as far as told."""
    names = ("num_prefill_tokens", "num_decode_tokens")
    told, budget = of_both(step, *names), step.get("token_budget")
    known = [step[name] for name in names if step.get(name) is not None]
    if len(known) == len(names):
        return f"{told} = {sum(known):,}" + ("" if budget is None else f" of {budget:,}")
    return told if budget is None or not told else f"{told}, budget {budget:,}"


def of_both(step: Mapping[str, Any], prefill: str, decode: str) -> str:
    """How many of prefill and of decode; that of which nothing is told is not none of it."""
    both = {"prefill": step.get(prefill), "decode": step.get(decode)}
    known = [f"{number:,} {kind}" for kind, number in both.items() if number is not None]
    if len(known) != 1:
        return " + ".join(known)
    return f"{known[0]}, {next(kind for kind in both if both[kind] is None)} unknown"
