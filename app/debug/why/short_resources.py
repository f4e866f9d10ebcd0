"""A request that lacks KV blocks, a slot or a seat: who holds them at the position."""

from __future__ import annotations

from collections import Counter

from stepscope.analyzers.findings.wording import times
from stepscope.app.debug.why.at_position import View, proof
from stepscope.app.debug.why.chain import Link, Root, Subject
from stepscope.app.debug.why.links import Hop, link_of, unknown
from stepscope.app.debug.why.rows_by_name import Row
from stepscope.app.units import count

POOLED = ("kv-block", "kv-token", "slot", "seat")
WORDS = {"kv-block": "KV blocks", "kv-token": "KV tokens", "slot": "slots", "seat": "running slots"}


def of_pool(view: View, who: Subject, decided: Row) -> Hop:
    """One hop to whoever holds what is short; to the root where it is not short, or leaked."""
    resource, needed = decided["resource"], decided["needed"]
    total = view.num_blocks if resource == "kv-block" else None
    if needed is not None and total is not None and needed > total:
        return _never_fits(view, who, decided, total)
    if _had_room(decided):
        link = link_of(view, who, decided)
        return link, Root("policy", who, _room(decided), "a policy that uses it", link.proof)
    if _is_said_full(view, decided):
        return _not_full(view, who, decided)
    holders = view.holders(resource)
    if holders is None or view.num_missing:
        says = f"who holds {WORDS[resource]} is not told whole up to here"
        return link_of(view, who, decided), unknown(who, says)
    free = None if total is None else total - len(view.state.kv_blocks or {})
    if free is not None and needed is not None and free >= needed:
        return _free_by_now(view, who, decided, free)
    return _held(view, who, decided, holders, free)


def _is_said_full(view: View, decided: Row) -> bool:
    """Whether running slots are said to be all taken, and the engine may have more than run."""
    running, most = view.state.running, view.most_running
    return (
        decided["resource"] == "seat"
        and most is not None
        and running is not None
        and most - len(running) >= (decided["needed"] or 1)
    )


def _not_full(view: View, who: Subject, decided: Row) -> Hop:
    link = link_of(view, who, decided)
    says = (f"{decided['reason'] or 'no running slot is free'}, and "
            f"{count(len(view.state.running or ()))} of {count(view.most_running or 0)} are"
            )  # fmt: skip
    return link, Root("policy", who, says, "a scheduler that counts them again", link.proof)


def _had_room(decided: Row) -> bool:
    needed, available = decided["needed"], decided["available"]
    return needed is not None and available is not None and available >= needed


def _room(decided: Row) -> str:
    what = WORDS[decided["resource"]]
    return (f"{decided['reason'] or 'no reason is given'}, with {count(decided['available'])} "
            f"{what} free and {count(decided['needed'])} needed")  # fmt: skip


def _never_fits(view: View, who: Subject, decided: Row, total: int) -> Hop:
    link = link_of(view, who, decided)
    says = f"it needs {count(decided['needed'])} KV blocks, and there are {count(total)} in all"
    return link, Root("policy", who, says, "a larger pool, or to turn it away", link.proof)


def _stayed_free(view: View, decided: Row, free: int) -> bool:
    """Whether there was room when this step was formed and when the one before it was.

    What a step itself frees, after it looked who fits, is no room that it left unused.
    """
    before = view.step_before
    if before is None or before.step is None or decided["step"] is None or view.num_blocks is None:
        return False
    held = view.session.state_at(before).kv_blocks or {}
    least = min(free, view.num_blocks - len(held))
    return bool(least >= decided["needed"] and before.step > decided["step"])


def _free_by_now(view: View, who: Subject, decided: Row, free: int) -> Hop:
    """What was short is there by now: for steps that did not look, or since the last one did."""
    link = link_of(view, who, decided)
    room = f"{count(free)} KV blocks are free by now and {count(decided['needed'])} needed"
    if _stayed_free(view, decided, free):
        says = f"{room}, and nothing was decided about it since step {decided['step']}"
        return link, Root("silent", who, says, "a scheduler that looks at it again", link.proof)
    says = f"{room}: they came back after step {decided['step']} had looked"
    change = "it is looked at when the next one is formed"
    return link, Root("running until", who, says, change, link.proof)


def _held(view: View, who: Subject, decided: Row, holders: Counter[str], free: int | None) -> Hop:
    others = Counter({name: held for name, held in holders.items() if name != who.name})
    gone = Counter({name: held for name, held in others.items() if view.has_ended(name)})
    living = others - gone
    lacking = None if decided["needed"] is None else decided["needed"] - (free or 0)
    if gone and (not living or (lacking is not None and gone.total() >= lacking)):
        return _leaked(view, who, decided, others, gone)
    if not living:
        link = link_of(view, who, decided)
        return link, unknown(who, f"nobody else holds any {WORDS[decided['resource']]} here")
    younger = Counter({name: held for name, held in living.items() if _came_by(view, who, name)})
    above, below = _of_other_priority(view, who, living)
    unfair = younger - above
    if lacking is not None and unfair.total() >= lacking and not below.total() >= lacking:
        return _passed(view, who, decided, others, unfair)
    if lacking is not None and below.total() >= lacking:
        return _inverted(view, who, decided, others, below)
    if lacking is not None and younger.total() >= lacking:
        return _outranked(view, who, decided, others, younger & above)
    holder = _whom(decided, living)
    link = link_of(view, who, decided, holder, len(others))
    return link, Subject("request", holder)


def _came_by(view: View, who: Subject, other: str) -> bool:
    """Whether another one arrived after one that waits, and was let in before it."""
    own, later = view.life(who.name), view.life(other)
    return bool(
        who.name in view.places and own and later and own[0]["event"] == later[0]["event"]
        and own[0]["ts_ns"] < later[0]["ts_ns"]
    )  # fmt: skip


def _passed(
    view: View, who: Subject, decided: Row, others: Counter[str], younger: Counter[str]
) -> Hop:
    """What it lacks was given to those who came later."""
    holder = max(younger, key=lambda name: younger[name])
    link = link_of(view, who, decided, holder, len(others))
    what = WORDS[decided["resource"]]
    says = (f"{count(younger.total())} {what} are held by {count(len(younger))} that came after "
            f"it and were let in before it, {holder} among them")  # fmt: skip
    return link, Root("policy", who, says, "a bound on how often it is passed", link.proof)


def _of_other_priority(
    view: View, who: Subject, living: Counter[str]
) -> tuple[Counter[str], Counter[str]]:
    """The holders of higher priority (a lower number), and those of lower priority."""
    own = view.priority(who.name)
    above, below = Counter[str](), Counter[str]()
    for name, held in living.items():
        other = view.priority(name)
        if own is not None and other is not None and other != own:
            (above if other < own else below)[name] = held
    return above, below


def _outranked(
    view: View, who: Subject, decided: Row, others: Counter[str], above: Counter[str]
) -> Hop:
    """What it lacks was given to requests of higher priority that came later."""
    holder = max(above, key=lambda name: above[name])
    link = link_of(view, who, decided, holder, len(others))
    says = (f"it has priority {view.priority(who.name)}, and {_held_by(decided, above)} of higher "
            f"priority that came after it: {_with_priority(view, above)}")  # fmt: skip
    change = "a higher priority (a lower number), or more room"
    return link, Root("policy", who, says, change, link.proof)


def _inverted(
    view: View, who: Subject, decided: Row, others: Counter[str], below: Counter[str]
) -> Hop:
    """Requests of lower priority hold what it lacks, and are not preempted."""
    holder = max(below, key=lambda name: below[name])
    link = link_of(view, who, decided, holder, len(others))
    says = (f"it has priority {view.priority(who.name)}, and {_held_by(decided, below)} of lower "
            f"priority: {_with_priority(view, below)}")  # fmt: skip
    change = (f"preempting requests of lower priority for {WORDS[decided['resource']]}, some of "
              "them reserved for urgent requests, or a limit on the others' length")  # fmt: skip
    return link, Root("policy", who, says, change, link.proof)


def _held_by(decided: Row, holders: Counter[str]) -> str:
    verb = "is" if holders.total() == 1 else "are"
    what = WORDS[decided["resource"]] if holders.total() > 1 else WORDS[decided["resource"]][:-1]
    return f"{count(holders.total())} {what} {verb} held by {times(len(holders), 'request')}"


def _with_priority(view: View, holders: Counter[str]) -> str:
    """The priorities of holders, each with one of its requests: `low-0 and 15 more (10)`."""
    by_priority: dict[int | None, list[str]] = {}
    for name in holders:
        by_priority.setdefault(view.priority(name), []).append(name)
    return ", ".join(
        f"{names[0]}{f' and {len(names) - 1:,} more' if len(names) > 1 else ''} ({priority})"
        for priority, names in sorted(by_priority.items(), key=lambda item: item[0] or 0)[:3]
    )


def _whom(decided: Row, living: Counter[str]) -> str:
    """The one that the row names if that one still holds, or else who has most, for longest."""
    if decided["holder"] in living:
        return str(decided["holder"])
    return max(living, key=lambda name: living[name])


def _leaked(
    view: View, who: Subject, decided: Row, others: Counter[str], gone: Counter[str]
) -> Hop:
    owner = max(gone, key=lambda name: gone[name])
    link: Link = link_of(view, who, decided, owner, len(others))
    ended = view.moved(owner)
    what = WORDS[decided["resource"]]
    says = (f"{count(gone.total())} {what} were never released by {count(len(gone))} that ended, "
            f"{owner} among them")  # fmt: skip
    return link, Root("leak", Subject("request", owner), says, "to release them at the end",
                      None if ended is None else proof("lifecycle", ended))  # fmt: skip
