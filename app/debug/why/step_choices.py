"""A request that another choice of the scheduler kept out: a bucket, a phase, a budget, a victim.

What a step may hold is a policy's to say, so these are roots; who has what it lacks is in the batch
of the step.
"""

from __future__ import annotations

from collections import Counter

from stepscope.app.debug.engine_state import BatchEntry
from stepscope.app.debug.why.at_position import View, proof
from stepscope.app.debug.why.chain import Root, Subject
from stepscope.app.debug.why.links import Hop, link_of
from stepscope.app.debug.why.rows_by_name import Row
from stepscope.app.units import count

PRIORITY = {
    "bucket": "an order of buckets by age, or batches of several buckets",
    "phase": "turns for both kinds of steps",
    "token-budget": "a larger token budget, or a part of it that is kept for others",
}

ALIKE = "prompts dealt so that ranks have them at the same time, or steps that mix both kinds"


def chosen(view: View, who: Subject, decided: Row) -> Hop:
    """The hop by a choice that was made for a step."""
    resource = decided["resource"]
    holder = _taker(view, who, decided)
    link = link_of(view, who, decided, None if holder is None else holder.request,
                   len(view.state.batch or ()) if holder else None)  # fmt: skip
    change = PRIORITY.get(resource, f"another policy of {resource}")
    if resource == "bucket":
        return link, _bucket(view, who, decided, change)
    if resource == "token-budget":
        return link, _budget(view, who, decided, holder, change)
    step = view.step_row(decided["step"])
    if resource == "phase" and step.get("by_rank") is not None:
        says = f"rank {step['by_rank']} runs {decided['instead']}, and all ranks run one kind"
        return link, Root("another rank", who, says, ALIKE, proof("steps", step))
    instead = f", and {decided['instead']} goes first" if decided["instead"] else ""
    says = f"{decided['reason'] or resource}{instead}"
    return link, Root("policy", who, says, change, link.proof)


def _taker(view: View, who: Subject, decided: Row) -> BatchEntry | None:
    """Who has most of the batch, or whom the row names where that one is in the batch."""
    batch = [entry for entry in view.state.batch or () if entry.request != who.name]
    if decided["resource"] not in PRIORITY or not batch:
        return None
    named = [entry for entry in batch if entry.request == decided["holder"]]
    return named[0] if named else max(batch, key=lambda entry: entry.num_tokens)


def _bucket(view: View, who: Subject, decided: Row, change: str) -> Root:
    """The bucket that ran, and by what it was chosen."""
    bucket = decided["instead"] or "another bucket"
    rows = view.told.about_buckets.of(bucket)
    told = [row for row in rows if row["seq"] <= view.seq and row["verdict"] == "chosen"]
    by = f": {told[-1]['reason']}" if told else ""
    says = f"the bucket {bucket} runs{by}"
    return Root("policy", who, says, change, proof("decisions", told[-1] if told else decided))


def _budget(view: View, who: Subject, decided: Row, holder: BatchEntry | None, change: str) -> Root:
    step = view.step_row(view.at.step)
    budget, reserved = step.get("token_budget"), step.get("reserved_tokens")
    of = "the token budget" if budget is None else f"of the token budget of {count(budget)}"
    kept = f"{count(reserved)} {of} are kept for decodes" if reserved else ""
    taken = ("" if holder is None or not isinstance(holder.num_tokens, int) else
             f"{holder.request} takes {count(holder.num_tokens)} ({holder.phase})")  # fmt: skip
    parts = ", ".join(part for part in (kept, taken) if part)
    says = f"{decided['reason'] or 'the token budget is spent'}{f': {parts}' if parts else ''}"
    shown = proof("steps", step) if step else proof("decisions", decided)
    return Root("policy", who, says, change, shown)


def preempted(view: View, who: Subject, decided: Row) -> Hop:
    """The hop of a victim: on whose behalf, and whether there was need."""
    named = decided["holder"]
    if decided["resource"] == "bucket":
        return chosen(view, who, decided)
    held = view.holders(decided["resource"]) or Counter()
    link = link_of(view, who, decided, named if named in held else None,
                   len(held) if named in held else None)  # fmt: skip
    whom = "itself" if named == who.name else named or "somebody"
    needed = "" if decided["needed"] is None else f", who needed {count(decided['needed'])}"
    says = f"it was preempted for {whom}{needed}: {decided['reason'] or 'no reason is given'}"
    return link, Root("policy", who, says, "another victim, or more KV blocks", link.proof)
