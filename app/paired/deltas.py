"""What differs between A and B as tables: A, B, and B less A.

What one of the two does not tell has no delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import polars as pl

from stepscope.analyzers.latency.causes import CAUSES
from stepscope.analyzers.views.requests import REQUEST
from stepscope.app.paired.alignments import Side
from stepscope.app.paired.delta_rows import delta, row, table_of
from stepscope.app.paired.lane_pairs import made_of
from stepscope.app.paired.pair import Pair
from stepscope.app.palette import NOT_BUSY
from stepscope.app.present.blocks import AtRequest, AtStep, Block, Fact, Paragraph, Table
from stepscope.app.present.diff_text import amount, inputs_table, total_name, verdict
from stepscope.app.printable import plain
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes.tracks import COLLECTIVES, STREAMS
from stepscope.app.units import duration

MOST_REQUESTS, NEAR_STEPS, MOST_NAMES = 200, 40, 20
NO_REQUESTS = "Neither trace names requests whose latency could be told apart."


def overview(pair: Pair) -> Iterator[Block]:
    """How the two compare: the verdict, what each was given, what each came to, what was found."""
    a, b = pair.difference.a, pair.difference.b
    yield Fact("A", (plain(a),))
    yield Fact("B", (plain(b),))
    yield from (Paragraph(line.strip()) for line in verdict(pair.difference))
    yield Paragraph(f"Lanes: {made_of(pair.timeline(pair.first_alignment).lanes)}.")
    if given := inputs_table(pair.difference):
        yield given
    totals = pair.difference.outcomes.totals
    yield table_of(
        "outcome",
        (
            (total_name(name), *row(name, *both))
            for name, both in totals.items()
            if both != (None, None)
        ),
    )
    causes, whose = pair.difference.outcomes.causes, pair.difference.outcomes.whose
    if causes and len({each.names_requests for each in pair.blamed}) > 1:
        yield Paragraph("Only one of them names requests: where their time went is not compared.")
    elif causes:
        yield table_of(
            f"time of {whose}", ((name, *row("_ns", *both)) for name, both in causes.items())
        )
    yield by_rule(pair)
    yield from pair.summed
    yield from _sections(pair)
    yield from _names(pair)


def by_rule(pair: Pair) -> Table:
    """How often each rule finds something; a rule that cannot judge a side has no delta there."""
    ours, theirs = (each.counts for each in pair.results)
    codes = sorted(ours.keys() | theirs.keys())
    rows = [
        (
            code,
            _judged(ours.get(code)),
            _judged(theirs.get(code)),
            _more(ours.get(code), theirs.get(code)),
        )
        for code in codes
        if ours.get(code) or theirs.get(code)
    ]
    return table_of("findings of", rows or [("no rule", "0", "0", "0")])


def _judged(number: int | None) -> str:
    return "n/a" if number is None else f"{number:,}"


def _more(a: int | None, b: int | None) -> str:
    return "not applicable" if a is None or b is None else (f"{b - a:+,}" if b != a else "0")


def _sections(pair: Pair) -> Iterator[Block]:
    """How long the lanes of each section were busy; each in the time of its own trace."""
    sides = [side.timeline for side in pair.sides]
    sections = list(dict.fromkeys(lane.section for each in sides for lane in each.lanes))
    rows = []
    for section in sections:
        busy = [busy_ns(each, section) for each in sides]
        if busy != [None, None]:
            rows.append((section, *row("_ns", *busy)))
    if rows:
        yield table_of("busy, all lanes of", rows)


def busy_ns(timeline: Timeline, section: str) -> int | None:
    """How long the lanes of a section were busy together; None where there are none."""
    lanes = [
        each.id
        for each in timeline.lanes
        if (each.section, each.kind == "counter") == (section, False)
    ]
    if not lanes:
        return None
    sums = (timeline.sums(lane, *timeline.bounds) for lane in lanes)
    return sum(each.ns for found in sums for state, each in found.items() if state not in NOT_BUSY)


def _names(pair: Pair) -> Iterator[Block]:
    """What a device executed, by name, where both tell of it: what took most in either."""
    sides = [_device_names(side.timeline) for side in pair.sides]
    if not any(sides):
        return
    names = sorted(
        sides[0].keys() | sides[1].keys(),
        key=lambda name: -max(each.get(name, 0) for each in sides),
    )
    known = [each or None for each in sides]
    rows = (
        (plain(name), *row("_ns", *(None if each is None else each.get(name, 0) for each in known)))
        for name in names[:MOST_NAMES]
    )
    yield table_of("executed on devices", rows, len(names) - MOST_NAMES)


def _device_names(timeline: Timeline) -> dict[str, int]:
    lanes = [lane.id for lane in timeline.lanes if lane.section in (STREAMS, COLLECTIVES)]
    if not lanes:
        return {}
    return dict(timeline.area(*timeline.bounds, lanes).by_name.select("name", "ns").iter_rows())


def requests(pair: Pair) -> Iterator[Block]:
    """Latency and time to first token of each request, and the cause that changed most."""
    found = pair.difference.outcomes.requests
    if found.is_empty():
        yield Paragraph(NO_REQUESTS)
        return
    yield Paragraph(
        "From arrival to the end, however it ended, and to the first token. A click on a request "
        "goes to it."
    )
    causes = _cause_that_changed(pair)
    order = found.sort(pl.col("gain_ns").abs(), descending=True, nulls_last=True)
    rows, leads = [], []
    for each in order.head(MOST_REQUESTS).iter_rows(named=True):
        who = each["rank"] or 0, each["request"] or ""
        rows.append((plain(who[1]) or "whole run", *_request(each), causes.get(who, "")))
        leads.append(AtRequest(*who))
    columns = ("request", "latency A", "B", "B − A", "TTFT A", "B ", "B − A ", "changed most")
    yield Table(
        columns, tuple(rows), to_right=columns[1:-1], num_more=max(len(found) - MOST_REQUESTS, 0),
        is_ruled=False, leads=tuple(leads),
    )  # fmt: skip


def _request(each: dict[str, int | None]) -> tuple[str, ...]:
    """The cells of a request; who is in one trace alone has no delta."""
    alone = [run for run in "ab" if each[f"latency_ns_{run}"] is not None]
    cells = []
    for name in ("latency_ns", "ttft_ns"):
        both = each[f"{name}_a"], each[f"{name}_b"]
        by = delta("_ns", *both) if len(alone) == 2 else f"only in {''.join(alone).upper() or '?'}"
        cells += [*(amount("_ns", value) for value in both), by]
    return tuple(cells)


def _cause_that_changed(pair: Pair) -> dict[tuple[int, str], str]:
    """Of each request in both, the cause of whose time more or less was spent, the most of all."""
    columns = [cause.column for cause in CAUSES]
    ours, theirs = (each.requests.select(*REQUEST, *columns) for each in pair.blamed)
    both = ours.join(theirs, on=REQUEST, suffix="_b")
    found = {}
    for each in both.iter_rows(named=True):
        by = {cause.name: each[f"{cause.column}_b"] - each[cause.column] for cause in CAUSES}
        name = max(by, key=lambda cause: abs(by[cause]))
        said = f"{name} {'+' if by[name] > 0 else ''}{duration(by[name])}"
        found[each["rank"] or 0, each["request"] or ""] = said if by[name] else "nothing"
    return found


def steps(pair: Pair, near: int | None) -> Iterator[Block]:
    """Steps of the same number beside each other, those around `near`, a step's number."""
    sides = [_steps(side) for side in pair.sides]
    numbers = sorted(sides[0].keys() | sides[1].keys())
    if not numbers:
        yield Paragraph("Neither trace has steps.")
        return
    at = min(range(len(numbers)), key=lambda place: abs(numbers[place] - (near or numbers[0])))
    first = max(min(at - NEAR_STEPS // 2, len(numbers) - NEAR_STEPS), 0)
    shown = numbers[first : first + NEAR_STEPS]
    yield Paragraph(
        f"Steps {shown[0]:,} to {shown[-1]:,} of {len(numbers):,}, around that of the cursor."
    )
    rows = tuple((f"{step:,}", *_step(*(each.get(step) for each in sides))) for step in shown)
    columns = ("step", "tokens A", "B", "B − A", "takes A", "B ", "B − A ", "kind")
    yield Table(
        columns, rows, to_right=columns[:-1], is_ruled=False,
        leads=tuple(AtStep(step) for step in shown),
    )  # fmt: skip


Step = tuple[int | None, int | None, str | None]


def _steps(side: Side) -> dict[int, Step]:
    """Tokens, time taken and kind of the walked steps of a side, by their numbers."""
    of = side.composition
    tokens = of.prefill_tokens + of.decode_tokens + np.nan_to_num(of.recompute_tokens)
    return {
        int(step): (_whole(tokens[at]), _whole(of.dur_ns[at]), of.kind[at])
        for at, step in enumerate(of.step.tolist())
    }


def _whole(value: float) -> int | None:
    return None if math.isnan(value) else round(value)


def _step(a: Step | None, b: Step | None) -> tuple[str, ...]:
    if a is None or b is None:
        alone = f"only in {'A' if b is None else 'B'}"
        tokens, takes, kind = a or b or (None, None, None)
        own = (amount("tokens", tokens), amount("_ns", takes))
        pad = [(each, "-") if b is None else ("-", each) for each in own]
        return (*pad[0], alone, *pad[1], alone, kind or "-")
    kinds = dict.fromkeys(each or "-" for each in (a[2], b[2]))
    return (*row("tokens", a[0], b[0]), *row("_ns", a[1], b[1]), " → ".join(kinds))
