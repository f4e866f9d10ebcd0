"""Who was in a batch and who was not: whom the trace does not name is not nobody."""

from __future__ import annotations

from stepscope.app.debug.detail import StepDetail
from stepscope.app.debug.reasons import LeftOut
from stepscope.app.units import count

NOBODY = ("idle", "dummy")
"""Kinds of steps that compute nothing for anybody."""


def num_batched(detail: StepDetail) -> int | None:
    """How many requests the step says that its batch has; None where it does not say."""
    told = [detail.step.get(name) for name in ("num_prefill_reqs", "num_decode_reqs")]
    known = [number for number in told if number is not None]
    return sum(known) if known else None


def knows_batch(detail: StepDetail) -> bool:
    """Whether it is known who is in the batch: of a step without rows, that nobody is."""
    if detail.rows or detail.after.step is None or detail.step.get("kind") in NOBODY:
        return True
    computed = [detail.step.get(name) for name in ("num_prefill_tokens", "num_decode_tokens")]
    return detail.after.batch is not None and not num_batched(detail) and not any(computed)


def known_left_out(detail: StepDetail) -> tuple[LeftOut, ...]:
    """Who was left out; of a batch that is not known, nobody who runs can be said to be."""
    known = knows_batch(detail)
    return tuple(left for left in detail.left_out if known or not left.is_running)


def batch_heading(detail: StepDetail) -> tuple[str, str]:
    """How many are in the batch, and what the trace does not record of them, empty if nothing."""
    told, named = num_batched(detail), len(detail.rows)
    if detail.after.step is None and detail.after.batch is None:
        return "batch", "The trace does not record batches."
    if not knows_batch(detail):
        heading = "batch" if told is None else f"batch of {count(told)}"
        return heading, "The trace does not record who is in this step's batch."
    heading = f"batch of {count(named)}"
    if detail.after.step is None:
        return heading, "No batch was formed yet."
    if told is not None and told != named:
        return heading, f"The step says {count(told)}; these are the ones that the trace names."
    return heading, "" if named else "No request is in this step's batch."


def left_out_heading(detail: StepDetail) -> tuple[str, str]:
    """How many were left out, and what the trace does not record of them, empty if nothing."""
    waiting, num_waiting = detail.after.waiting, detail.step.get("num_waiting")
    if waiting is None:
        unsaid = "The trace does not record who waits."
        if num_waiting is None:
            return "left out", unsaid
        return "left out", f"The step says that {count(num_waiting)} wait. {unsaid}"
    heading = f"left out {count(len(detail.left_out))}"
    if not knows_batch(detail):
        return heading, "The trace does not record which of the running requests are in the batch."
    return heading, "" if detail.left_out else "No waiting or running request was left out."
