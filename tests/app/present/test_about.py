"""What a trace is, in the words of both fronts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.cli.commands.info import as_text
from stepscope.app.present.about import how_many, told_of_it
from stepscope.app.present.blocks import Heading, Items
from stepscope.app.timeline import Composition
from stepscope.app.tui.pages.overview_words import about
from stepscope.app.tui.widgets.prose import lay_out
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.details import about as details
from stepscope.app.web.resolve import resolve
from stepscope.ingest.merging.merge import merge
from stepscope.ingest.trace import Trace
from tests.app.web.test_panes import said
from tests.ingest.merging.pairs import profiled, recorded
from tests.traces import trace_of


def on_the_page(trace: Trace) -> str:
    loaded = LoadedTrace(trace, CheckResult("trace", (), {}, {}, ()))
    return said(details(loaded, resolve(loaded, "")))


def in_the_terminal(trace: Trace) -> str:
    lines = lay_out(about(trace, Composition.of(trace)).body, 200)
    return "\n".join("".join(piece.text for piece in line) for line in lines)


def test_both_fronts_say_how_a_merged_profile_fits_its_recording(tmp_path: Path) -> None:
    trace, (merged,) = merge(recorded(tmp_path), profiled(tmp_path))

    assert merged.said() in on_the_page(trace)
    assert merged.said() in in_the_terminal(trace)


def test_both_fronts_say_what_was_lost_and_that_a_recording_was_not_closed() -> None:
    trace = trace_of(steps=[{"step": 1, "kind": "decode"}], closed=False, dropped={"steps": 7})

    for told in (on_the_page(trace), in_the_terminal(trace)):
        assert "not closed: the recording ended before it was finished" in told
        assert "dropped 7 rows of steps" in told


def test_nothing_is_said_of_a_trace_that_is_whole() -> None:
    assert list(told_of_it(trace_of(steps=[{"step": 1, "kind": "decode"}]))) == []


def test_notes_are_lines_under_a_heading() -> None:
    heading, notes = told_of_it(trace_of(closed=False))

    assert heading == Heading("notes")
    assert isinstance(notes, Items)


def test_what_an_adapter_did_not_find_is_told_by_info_and_both_fronts() -> None:
    gone = {"not_found": ["scheduler._preempt_request", "block_pool.touch(blocks)"]}
    trace = trace_of(steps=[{"step": 1, "kind": "decode"}], config=gone)

    said = "not recorded: the engine has no scheduler._preempt_request, block_pool.touch(blocks)"
    for told in (on_the_page(trace), in_the_terminal(trace), as_text(trace)):
        assert said in told
    for odd in ("text", list[str](), None):
        assert "not recorded: the" not in as_text(trace_of(config={"not_found": odd}))


def test_findings_are_counted_with_how_often_they_occurred_where_that_is_more() -> None:
    once = Finding("STV001", "x", Severity.ERROR, "m", "f")

    assert how_many([]) == "0"
    assert how_many([once, once]) == "2"
    assert how_many([once, replace(once, count=1_500)]) == "2 ×1,501"
