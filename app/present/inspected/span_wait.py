"""Why a request waited over a span of its lane: the reasons with their share, who held, what ended.

The time of each reason is what `blame` says of that time, and the chain is what `why` says of the
last moment before the wait ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.latency.causes import BY_NAME
from stepscope.app.debug.session import Session
from stepscope.app.debug.shown.why_blocks import why_blocks
from stepscope.app.debug.why import Chain, why
from stepscope.app.debug.why.at_position import View
from stepscope.app.palette import FRONT_END, IDLE, PREEMPTED, REASONS, STATES, WAITING
from stepscope.app.present.blame_reasons import reasons
from stepscope.app.present.blame_tables import swatch_of
from stepscope.app.present.blocks import (
    AtSpan,
    AtTime,
    Block,
    Fact,
    Heading,
    Paragraph,
    Swatch,
    Table,
)
from stepscope.app.present.where import when
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.lanes.wait_reasons import STATE_OF_CAUSE, intervals_of
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE
from stepscope.app.units import count, duration
from stepscope.ingest.derive.states import ENDS, LEAVES
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace

DID = {
    WAITING: "waited",
    PREEMPTED: "was preempted for",
    IDLE: "was in no batch for",
    FRONT_END: "was in the front end for",
}
"""What a request did in a state in which nothing was computed for it."""
HELD_KINDS = {"kv-block": "KV blocks", "slot": "slots", "seat": "running slots"}
MOST_HOLDERS = 6


@dataclass(frozen=True)
class Reason:
    """A cause of a wait: how long it held, and the last decision that says so, in words."""

    cause: str
    ns: int
    decision: str

    @property
    def meaning(self) -> str:
        """The cause in a clause."""
        return BY_NAME[self.cause].meaning


@dataclass(frozen=True)
class Wait:
    """A wait of a request: from when to when, and its reasons, the longest first."""

    rank: int
    request: str
    from_ns: int
    to_ns: int
    reasons: tuple[Reason, ...]

    @property
    def ns(self) -> int:
        """How long it waited."""
        return self.to_ns - self.from_ns

    @property
    def has_chain(self) -> bool:
        """Whether a scheduler left it out for most of the time, so that it waited for somebody."""
        return not self.reasons or self.reasons[0].cause not in ("idle", "front-end", "delivery")

    def sentence(self, did: str = "waited") -> str:
        """What it waited for most, in one sentence."""
        start = f"{self.request} {did} {duration(self.ns)}"
        if not self.reasons:
            return f"{start}; why is not recorded."
        first = self.reasons[0]
        share = first.ns / max(self.ns, 1)
        what = first.meaning
        if first.cause == "preempted" and first.decision:
            start += " and not resumed"
            what = first.decision.removeprefix("deferred: ")
        if share > 0.995:
            return f"{start}: {what}."
        return f"{start}; {share:.0%} of that time: {what}."


def wait_of(trace: Trace, rank: int, request: str, from_ns: int, to_ns: int) -> Wait:
    """The wait of a request from one time to another, as `blame` splits it."""
    own = intervals_of(trace, request).filter(
        pl.col("rank") == rank, pl.col("to_ns") > from_ns, pl.col("from_ns") < to_ns
    )
    overlap = pl.min_horizontal("to_ns", to_ns) - pl.max_horizontal("from_ns", from_ns)
    part = pl.col("ns") * overlap / (pl.col("to_ns") - pl.col("from_ns"))
    is_whole = (pl.col("from_ns") >= from_ns) & (pl.col("to_ns") <= to_ns)
    inside = own.with_columns(
        ns=pl.when(is_whole).then("ns").otherwise(part.round().cast(pl.Int64))
    ).filter(pl.col("ns") > 0)
    sums = inside.group_by("cause", maintain_order=True).agg(total=pl.col("ns").sum())
    last = inside.unique("cause", keep="last", maintain_order=True).join(sums, on="cause")
    last = last.sort("total", descending=True, maintain_order=True)
    words = reasons(trace, last)
    return Wait(
        rank, request, from_ns, to_ns,
        tuple(
            Reason(cause, ns, text)
            for (cause, ns), text in zip(last.select("cause", "total").rows(), words, strict=True)
        ),
    )  # fmt: skip


def wait_sentence(span: SpanView, timeline: Timeline, trace: Trace) -> str:
    """What the whole wait of a span was for, in one sentence; empty of a span that is no wait."""
    who, did = timeline.request_in(span), _did(span, timeline)
    if who is None or did is None or not trace.manifest.clock.has_times:
        return ""
    whole = timeline.whole(span)
    return wait_of(trace, *who, whole.start_ns, whole.end_ns).sentence(did)


def wait_blocks(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """Why a request waited over a span; nothing of a span in which something ran."""
    who, did = timeline.request_in(span), _did(span, timeline)
    if who is None or did is None or not trace.manifest.clock.has_times:
        return
    rank, request = who
    whole = timeline.whole(span)
    wait = wait_of(trace, rank, request, whole.start_ns, whole.end_ns)
    yield Paragraph(wait.sentence(did))
    yield from _part(span, whole)
    yield from _reason_table(wait)
    view = _view(trace, wait)
    chain = _chain(view, request) if wait.has_chain else None
    if view is not None and chain is not None:
        yield from _holders(view, chain, timeline)
    yield from _ending(wait, view, chain, timeline, trace)
    yield from _cost(whole, wait, trace)
    if chain is not None:
        at = when(chain.at.ts_ns, timeline, 1)
        step = "" if chain.at.step is None else f", step {count(chain.at.step)}"
        yield Heading("what it waited for last", f"at {at}{step}")
        yield from why_blocks(chain)


def _did(span: SpanView, timeline: Timeline) -> str | None:
    """What a request did in a span in which nothing was computed for it; None in any other."""
    lane = timeline.lanes[span.lane]
    if lane.section == WAITING_QUEUE:
        position = lane.label.removeprefix("position ").split(" ")[0]
        return f"was at position {position} of the waiting queue for"
    if span.state not in REASONS:
        return DID.get(span.state)
    table, _ = span.ref
    was_let_in = table == "batch_rows" or timeline.row(span.ref)["event"] in LEAVES
    return DID[IDLE if was_let_in else WAITING]


def _part(span: SpanView, whole: SpanView) -> Iterator[Block]:
    """Which part of a wait is selected, where it has several."""
    if whole.end_ns - whole.start_ns > span.end_ns - span.start_ns:
        length = duration(span.end_ns - span.start_ns)
        yield Fact("this part", (f"{STATES[span.state].name}, {length} of it",))


def _reason_table(wait: Wait) -> Iterator[Block]:
    if not wait.reasons:
        return
    rows = tuple(
        (
            _swatch(reason.cause), reason.cause, duration(reason.ns),
            f"{reason.ns / max(wait.ns, 1):.1%}",
        )
        for reason in wait.reasons
    )  # fmt: skip
    notes = tuple(reason.decision or reason.meaning for reason in wait.reasons)
    yield Table(
        ("", "reason", "for", "share"), rows, "why it waited", ("for", "share"), notes=notes
    )
    if decision := wait.reasons[0].decision:
        yield Fact("last", (decision,))


def _swatch(cause: str) -> Swatch:
    """What a cause looks like on the bar."""
    state = STATE_OF_CAUSE.get(cause)
    if state is None:
        return swatch_of(BY_NAME[cause].group)
    look = STATES[state]
    return Swatch(look.glyph, look.colour, look.cue)


def _holders(view: View, chain: Chain, timeline: Timeline) -> Iterator[Block]:
    """Who held what was short as the wait ended, each with a link to where it was then."""
    short = next((link for link in chain.links if link.resource in HELD_KINDS), None)
    held = None if short is None or short.resource is None else view.holders(short.resource)
    if short is None or not held:
        return
    what = HELD_KINDS[short.resource or ""]
    lacked = [
        f"{text} {count(value)}"
        for text, value in (("needed", short.needed), ("free", short.available))
        if value is not None
    ]
    title = ", ".join([f"who held {what}", *lacked])
    shown = held.most_common(MOST_HOLDERS)
    since = view.at.ts_ns - timeline.bounds[0]
    lanes = [timeline.lane_of_request(view.at.rank, name) for name, _ in shown]
    leads = tuple(None if lane is None else AtSpan(lane, since) for lane in lanes)
    yield Table(("request", what), tuple(shown), title, num_more=len(held) - len(shown),
                leads=leads)  # fmt: skip


def _ending(
    wait: Wait, view: View | None, chain: Chain | None, timeline: Timeline, trace: Trace
) -> Iterator[Block]:
    """What ended the wait: the event of the request, and who let go of anything just before."""
    own = (pl.col("request") == wait.request) & (pl.col("rank") == wait.rank)
    ended = (
        trace.lifecycle.filter(own, pl.col("ts_ns") == wait.to_ns)
        .filter(pl.col("event").is_in([*LEAVES, *ENDS]))
        .collect()
    )
    if ended.is_empty():
        return
    row = ended.row(0, named=True)
    step = "" if row["step"] is None else f", step {count(row['step'])}"
    at = AtTime(wait.to_ns - timeline.bounds[0])
    yield Fact("ended by", (f"{row['event']} at {when(wait.to_ns, timeline, 1)}{step}",), to=at)
    since = next((link.position.ts_ns for link in (chain.links if chain else ())), None)
    if view is None or since is None:
        return
    let_go = (
        trace.lifecycle.filter(
            pl.col("rank") == wait.rank, pl.col("request") != wait.request,
            pl.col("ts_ns").is_between(since, wait.to_ns),
            pl.col("event").is_in([*ENDS, "preempt"]),
        )
        .sort("ts_ns")
        .collect()
    )  # fmt: skip
    if len(let_go):
        told = [f"{each['request']} ({each['event']})" for each in let_go.to_dicts()]
        more = f" and {len(told) - MOST_HOLDERS:,} more" if len(told) > MOST_HOLDERS else ""
        yield Fact("after", (f"{', '.join(told[:MOST_HOLDERS])}{more}",))


def _cost(span: SpanView, wait: Wait, trace: Trace) -> Iterator[Block]:
    """For whom a request was preempted, and what it computed again until the next time."""
    if span.state != PREEMPTED:
        return
    own = (pl.col("request") == wait.request) & (pl.col("rank") == wait.rank)
    events = trace.lifecycle.filter(own, pl.col("event") == "preempt").collect()
    began = events.filter(pl.col("ts_ns") == wait.from_ns)
    for whom in began["by_request"].drop_nulls():
        yield Fact("preempted for", ("itself" if whom == wait.request else str(whom),))
    later = events.filter(pl.col("ts_ns") > wait.from_ns)["ts_ns"].min()
    again = trace.batch_rows.filter(own, pl.col("is_recompute"), pl.col("ts_ns") >= wait.to_ns)
    if later is not None:
        again = again.filter(pl.col("ts_ns") < later)
    tokens, steps = again.select(pl.col("num_tokens").sum(), pl.len()).collect().row(0)
    if steps:
        spent = intervals_of(trace, wait.request).filter(
            pl.col("rank") == wait.rank, pl.col("cause") == "recompute",
            pl.col("from_ns") >= wait.to_ns,
            pl.lit(value=True) if later is None else pl.col("from_ns") < later,
        )["ns"].sum()  # fmt: skip
        yield Fact("it cost", (f"{times(tokens, 'token')} computed again in {times(steps, 'step')},"
                               f" {duration(int(spent))}",))  # fmt: skip


_SESSIONS: WeakKeyDictionary[Trace, dict[int, Session | None]] = WeakKeyDictionary()


def session_of(trace: Trace, rank: int) -> Session | None:
    """The debugger's session of a rank, made once; None where no state can be worked out."""
    known = _SESSIONS.setdefault(trace, {})
    if rank not in known:
        try:
            known[rank] = Session(trace, rank)
        except StepscopeError:
            known[rank] = None
    return known[rank]


def _view(trace: Trace, wait: Wait) -> View | None:
    """The engine as the last step before the end of a wait was formed; None without any state."""
    session = session_of(trace, wait.rank)
    if session is None:
        return None
    moments = session.moments
    at = moments.position(wait.to_ns - 1)
    place = None if at.step is None else moments.place_of(at.step)
    formed = at if place is None else moments.at_step(place)
    return View(session, formed if formed.ts_ns >= wait.from_ns else at)


def _chain(view: View | None, request: str) -> Chain | None:
    if view is None:
        return None
    try:
        return why(view.session, request, view.at)
    except StepscopeError:
        return None
