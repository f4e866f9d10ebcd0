"""Where the operations of two ranks diverge, told so that a person sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepscope.engine.parallel.links.transport import Operation

History = Sequence[Operation]
NUM_BEFORE, NUM_BEHIND = 3, 3


def first_difference(histories: Mapping[int, History], first_ordinal: int = 0) -> int | None:
    """Return the ordinal at which the ranks' operations first differ, None if they never do.

    A rank that issued fewer differs from the others at the first that it lacks. The histories
    begin with operation `first_ordinal`.
    """
    longest = max(map(len, histories.values()), default=0)
    for index in range(longest):
        shapes = {each[index].shape if index < len(each) else None for each in histories.values()}
        if len(shapes) > 1:
            return first_ordinal + index
    return None


def explain(histories: Mapping[int, History], first_ordinal: int = 0) -> str:
    """Return what faces what at the first difference, and each rank's sequence around it."""
    ordinal = first_difference(histories, first_ordinal)
    if ordinal is None:
        return "the ranks' operations are the same"
    index = ordinal - first_ordinal
    facing = " faces ".join(
        f"{_at(each, index)} on rank {rank}" for rank, each in sorted(histories.items())
    )
    around = "; ".join(
        f"rank {rank}: {_around(each, index, first_ordinal)}"
        for rank, each in sorted(histories.items())
    )
    return f"at operation {ordinal} {facing}; {around}"


def _at(history: History, index: int) -> str:
    return str(history[index]) if index < len(history) else "nothing"


def _around(history: History, index: int, first_ordinal: int) -> str:
    begin = max(0, index - NUM_BEFORE)
    window = history[begin : index + NUM_BEHIND]
    named = (_short(i, each, index) for i, each in enumerate(window, start=begin))
    return f"[{first_ordinal + begin}] " + " ".join(named) if window else "nothing"


def _short(i: int, operation: Operation, index: int) -> str:
    slot = "" if operation.slot is None else f" {operation.slot}"
    letter = {"broadcast": "B", "all-reduce": "AR"}.get(operation.op, operation.op)
    text = f"{letter}({operation.command or '?'}{slot})"
    return f">{text}<" if i == index else text
