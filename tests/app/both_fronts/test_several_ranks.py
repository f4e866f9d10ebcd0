"""A trace of several ranks: a step of one is no step of another, and fronts say whose they show."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.debug import Session
from stepscope.app.present.blocks import AtStep, Links
from stepscope.app.present.details import finding_blocks
from stepscope.app.present.where import of_rank
from stepscope.app.timeline import Composition, Timeline
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.details import about
from stepscope.app.web.panes.step import step_pane
from stepscope.app.web.resolve import resolve
from stepscope.app.web.view import View
from stepscope.ingest.trace import Trace
from tests.app.web.test_panes import said
from tests.traces import trace_of


def step(number: int, rank: int, **more: Any) -> dict[str, Any]:
    return {"rank": rank, "step": number, "ts_ns": 1000 * number, "kind": "decode",
            "dur_ns": 900, **more}  # fmt: skip


def of_two() -> Trace:
    """Two steps of rank 0 and three of rank 1."""
    return trace_of(steps=[step(1, 0), step(2, 0), step(1, 1), step(2, 1), step(3, 1)])


def found_in(rank: int | None, number: int) -> Finding:
    message, fix = "something is wrong", "mend it"
    where = {"rank": rank, "step": number, "ts_ns": 1000 * number}
    return Finding("ABC001", "a-fault", Severity.ERROR, message, fix, **where)  # type: ignore[arg-type]  # one dict of fields


def leads_to(found: Finding) -> list[object]:
    trace = of_two()
    blocks = finding_blocks(found, Timeline.of(trace), trace)
    links = [link for block in blocks if isinstance(block, Links) for link in block.choices]
    return [link.to for link in links if isinstance(link.to, AtStep)]


def test_a_finding_leads_to_its_step_only_where_that_is_of_the_rank_that_is_shown() -> None:
    assert leads_to(found_in(0, 2)) == leads_to(found_in(None, 2)) == [AtStep(2)]
    assert leads_to(found_in(1, 2)) == []


def test_the_page_shows_no_step_of_one_rank_for_a_finding_of_another() -> None:
    result = CheckResult("trace", (found_in(0, 2), found_in(1, 1)), {}, {"ABC001": 2}, ())
    loaded = LoadedTrace(of_two(), result)

    of_its_own, of_the_other = (resolve(loaded, f"?finding=ABC001.{n}") for n in (1, 2))

    assert of_its_own.view.step == 2
    assert of_the_other.view.step == 1  # where the cursor is, at the time of the finding
    later = LoadedTrace(of_two(), CheckResult("trace", (found_in(1, 3),), {}, {"ABC001": 1}, ()))
    assert resolve(later, "?finding=ABC001.1").view.step == 2


def test_both_fronts_say_whose_steps_they_show() -> None:
    trace = of_two()
    loaded = LoadedTrace(trace, CheckResult("trace", (), {}, {}, ()))

    assert of_rank(Composition.of(trace)) == " of rank 0"
    assert "step 1 of 2 of rank 0" in said(step_pane(loaded, View()))
    assert "steps 2 of rank 0" in said(about(loaded, resolve(loaded, "")))
    assert of_rank(Composition.of(trace_of(steps=[step(1, 0)]))) == ""


def test_both_fronts_step_through_the_lowest_rank_that_has_steps() -> None:
    arrived = {"rank": 0, "ts_ns": 0, "request": "r", "event": "receive"}

    trace = trace_of(lifecycle=[arrived], steps=[step(1, 1)])

    assert Session(trace).rank == Composition.of(trace).rank == 1
