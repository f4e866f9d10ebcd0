"""Why a request waits, or runs and is in no batch: the decision that holds, or that none does."""

from __future__ import annotations

from stepscope.analyzers.findings.wording import times
from stepscope.app.debug.why.at_position import View, proof
from stepscope.app.debug.why.chain import Link, Root, Subject
from stepscope.app.debug.why.links import Hop, link_of, unknown
from stepscope.app.debug.why.rows_by_name import Row
from stepscope.app.debug.why.running_requests import in_batch
from stepscope.app.debug.why.short_resources import POOLED, of_pool
from stepscope.app.debug.why.step_choices import chosen, preempted
from stepscope.ingest.derive.states import ENDS, ENTERS, FIRST_TOKEN, LEAVES
from stepscope.ingest.schema import NOT_READY

IN_FAVOUR = ("admitted", "chosen")
NUM_LOOKED_AT = 64
"""Of so many at the front of a queue an engine tells what was decided."""


def of_request(view: View, who: Subject) -> Hop:
    """One hop from a request: to whom it waits for, or to the root."""
    moved = view.moved(who.name)
    if moved is None:
        return _not_there(view, who)
    if moved["event"] in ENDS:
        return _ended(view, who, moved)
    if who.name in view.batch and who.name not in view.places:
        return in_batch(view, who, moved)
    decided = _standing(view, who, moved)
    since = moved["seq"] if decided is None else max(decided["seq"], moved["seq"])
    if missing := view.told.num_missing(since, view.seq):
        return _lost(view, who, decided or moved, missing)
    if decided is None:
        return _undecided(view, who, moved)
    return _by(view, who, decided)


def _not_there(view: View, who: Subject) -> Hop:
    """A request of which nothing has happened by now."""
    comes = view.later(who.name, ENTERS)
    decided = view.decided(who.name)
    if comes is None and who.name in view.batch:
        return in_batch(view, who, None)
    ran = view.last_batch(who.name) if comes is None else None
    if ran is not None and not (decided and (decided[0]["step"] or 0) > ran["step"]):
        says = f"{who} was in the batch of step {ran['step']} last"
        link = Link(who, says, view.place_of(ran | {"seq": None}), proof("batch_rows", ran))
        return link, unknown(who, f"what became of it after step {ran['step']}")
    if comes is not None and not decided:
        says = f"it arrives at {view.clock(comes['ts_ns'])}"
        link = Link(who, f"{who} is not there yet", view.at, proof("lifecycle", comes))
        return link, Root("not waiting", who, says, "", link.proof)
    if decided and view.state.waiting is None:
        return _by(view, who, decided[0])
    link = Link(who, f"nothing is recorded of {who} up to here", view.at)
    return link, unknown(who, "no row of lifecycle tells of it")


def _ended(view: View, who: Subject, moved: Row) -> Hop:
    shown = proof("lifecycle", moved)
    cause = f": {moved['cause']}" if moved["cause"] else ""
    says = f"{who} ended at {view.clock(moved['ts_ns'])} ({moved['event']}{cause})"
    link = Link(who, says, view.place_of(moved), shown)
    refused = next((row for row in view.decided(who.name) if row["verdict"] == "rejected"), None)
    if moved["event"] == "reject" or refused is not None:
        why = (refused or {}).get("reason") or moved["cause"] or "the engine does not say why"
        return link, Root("policy", who, f"it was turned away: {why}",
                          "a policy that holds it, or room for it", shown)  # fmt: skip
    return link, Root("not waiting", who, f"it ended with {moved['event']}{cause}", "", shown)


def _standing(view: View, who: Subject, moved: Row) -> Row | None:
    """The last decision against a request since it began to wait or to run."""
    decided = next(iter(view.decided(who.name)), None)
    if decided is None or decided["verdict"] in IN_FAVOUR:
        return None
    threw_out = decided["verdict"] == "preempted" and moved["event"] == "preempt"
    holds = decided["seq"] >= moved["seq"] or (threw_out and _led_to(view, who, decided, moved))
    return decided if holds else None


def _led_to(view: View, who: Subject, decided: Row, moved: Row) -> bool:
    """Whether a decision to preempt is of the preemption that followed, and of none before it."""
    if decided["step"] is not None and decided["step"] == moved["step"]:
        return True
    earlier = [row["seq"] for row in view.life(who.name) if row["seq"] < moved["seq"]]
    return bool(decided["seq"] > max(earlier, default=decided["seq"]))


def _lost(view: View, who: Subject, row: Row, missing: int) -> Hop:
    table = "decisions" if "verdict" in row else "lifecycle"
    link = Link(who, f"{who}: the last that is recorded of it", view.place_of(row),
                proof(table, row))  # fmt: skip
    says = f"{missing:,} rows of state are missing between that and here"
    return link, unknown(who, says)


def _undecided(view: View, who: Subject, moved: Row) -> Hop:
    """Nobody wrote a word about it since: it stands behind somebody, is new, or is ignored."""
    place = view.places.get(who.name)
    is_unbroken = view.told.is_unbroken(moved["seq"], view.seq)
    if place is not None and (is_unbroken or not view.told.order.is_recorded):
        ahead = _head_of(view, place)
        if ahead is not None:
            return _behind(view, who, ahead, moved)
    has_batches = view.session.trace.has("batch_rows")
    runs = f"{who} runs, and " + ("is in no batch" if has_batches else "no batch is recorded")
    waits = (
        f"{who} waits"
        if not _is_admission_unknown(view, who)
        else (f"{who} waits or runs: when it was admitted is not recorded")
    )
    link = Link(who, waits if place is not None else runs, view.place_of(moved),
                proof("lifecycle", moved))  # fmt: skip
    if not len(view.told.about_requests):
        return link, unknown(who, "no decision about any request is recorded")
    formed = _steps_since(view, moved)
    if not formed:
        says = f"no step was formed since {view.clock(moved['ts_ns'])}, when it came"
        return link, Root("running until", who, says, "it is looked at when the next one is formed",
                          link.proof)  # fmt: skip
    if not is_unbroken:
        return link, unknown(who, "no decision about it is recorded since, and one may be missing")
    says = f"{times(formed, 'step')} formed since, and nobody looked at it"
    change = "a scheduler that looks at it again in each step"
    return link, Root("silent", who, says, change, link.proof)


def _is_admission_unknown(view: View, who: Subject) -> bool:
    """Whether a request was served without a recorded admission."""
    events = {row["event"] for row in view.life(who.name)}
    return not events & {*LEAVES} and FIRST_TOKEN in events


def _steps_since(view: View, row: Row) -> int:
    seqs = view.session.moments.step_seq
    return int(((seqs > row["seq"]) & (seqs <= view.seq)).sum())


def _head_of(view: View, place: int) -> str | None:
    """Who stands next before it in the queue and was looked at; None where nobody was."""
    for name in reversed((view.state.waiting or ())[: min(place, NUM_LOOKED_AT)]):
        moved = view.moved(name)
        if moved is not None and _standing(view, Subject("request", name), moved):
            return name
    return None


def _behind(view: View, who: Subject, ahead: str, row: Row, recorded: str | None = None) -> Hop:
    """A link to somebody who stands before it in the queue at the position."""
    table = "decisions" if "verdict" in row else "lifecycle"
    head = Subject("request", ahead)
    between = view.places[who.name] - view.places[ahead] - 1
    more = f", with {between:,} between" if between else ""
    own, first = view.priority(who.name), view.priority(ahead)
    order = "" if own is None or first is None or own == first else (
        f" (its priority is {own}, that of {ahead} {first})"
    )  # fmt: skip
    link = Link(
        who, f"{who} stands behind {ahead} in the queue{order}{more}", view.place_of(row),
        proof(table, row), "queue", holder=head, num_holders=view.places[who.name],
        recorded_holder=recorded if recorded != ahead else None, site=row.get("site"),
    )  # fmt: skip
    return link, head


def _by(view: View, who: Subject, decided: Row) -> Hop:
    """One hop by a decision: what it names as short says where to go on."""
    resource = decided["resource"]
    if decided["verdict"] == "rejected":
        link = link_of(view, who, decided)
        return link, Root("policy", who, f"it was turned away: {decided['reason']}",
                          "a policy that holds it, or room for it", link.proof)  # fmt: skip
    if decided["verdict"] == "preempted":
        return preempted(view, who, decided)
    if resource == "queue":
        return _queued(view, who, decided)
    if resource in POOLED:
        return of_pool(view, who, decided)
    if resource is None or resource in NOT_READY:
        return _not_ready(view, who, decided)
    return chosen(view, who, decided)


def _queued(view: View, who: Subject, decided: Row) -> Hop:
    """Behind whom it stands: the one named if that one still stands before it, or else who does."""
    place, named = view.places.get(who.name), decided["holder"]
    if place is None:
        return link_of(view, who, decided), unknown(who, "where it stands in the queue")
    nearest = _last_behind(view, who.name, named)
    if nearest is None:
        link = link_of(view, who, decided)
        says = "nobody is before it any more, and nobody looked at it since"
        return link, Root("silent", who, says, "a scheduler that looks at its head again",
                          link.proof)  # fmt: skip
    return _behind(view, who, nearest, decided, named)


def _last_behind(view: View, name: str, named: str | None) -> str | None:
    """The first before it, hop by hop, that is not itself only behind another one."""
    place = view.places[name]
    if named is None or view.places.get(named, place) >= place:
        named = (view.state.waiting or ())[0] if place else None
    while named is not None:
        moved = view.moved(named)
        decided = moved and _standing(view, Subject("request", named), moved)
        further = decided["holder"] if decided and decided["resource"] == "queue" else None
        if further is None or view.places.get(further, len(view.places)) >= view.places[named]:
            return named
        named = further
    return None


def _not_ready(view: View, who: Subject, decided: Row) -> Hop:
    """It is not ready itself: until it is, or since it was and nobody noticed."""
    link = link_of(view, who, decided)
    was_ready = [row for row in view.life(who.name) if row["event"] == "ready"]
    if was_ready:
        shown = proof("lifecycle", was_ready[-1])
        says = (f"it is ready since {view.clock(was_ready[-1]['ts_ns'])}, and what was told of it "
                f"last is that {decided['reason'] or 'it is not'}")  # fmt: skip
        return link, Root("silent", who, says, "a scheduler that looks at those who are ready",
                          shown)  # fmt: skip
    comes = view.later(who.name, ("ready",))
    if comes is not None:
        says = f"{decided['reason'] or 'it is not ready'}, until {view.clock(comes['ts_ns'])}"
        return link, Root("running until", who, says, "what it waits for, sooner",
                          proof("lifecycle", comes))  # fmt: skip
    if decided["reason"] and decided["resource"] is None:
        return link, Root("policy", who, decided["reason"], "another policy", link.proof)
    return link, unknown(who, f"{decided['reason'] or 'it is not ready'}: until when")
