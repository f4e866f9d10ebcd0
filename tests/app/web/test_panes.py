"""What the drawer and the details say, as text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from dash import html
from dash.development.base_component import Component

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import SEVERITIES
from stepscope.app.present.blocks import Title
from stepscope.app.present.details import selection_blocks
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.details import about
from stepscope.app.web.panes.findings import findings_pane
from stepscope.app.web.panes.overview import overview_pane
from stepscope.app.web.panes.sql import sql_pane
from stepscope.app.web.panes.step import step_pane
from stepscope.app.web.panes.table import PAGE_ROWS, table_pane
from stepscope.app.web.pictures.route import position
from stepscope.app.web.resolve import resolve
from stepscope.app.web.skeleton.layout import layout
from stepscope.app.web.view import View
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import part
from tests.app.web.small_traces import STEP_NS, conflict_trace, loaded_of
from tests.conftest import ROOT
from tests.tiers import slow
from tests.traces import trace_of


@cache
def small() -> LoadedTrace:
    return loaded_of(conflict_trace())


def texts(component: Any) -> Iterator[str]:
    if isinstance(component, str):
        yield component
    elif isinstance(component, Component):
        yield from texts(getattr(component, "children", None))
    elif isinstance(component, list | tuple):
        for each in component:
            yield from texts(each)


def hrefs(component: Any) -> set[str]:
    found = {href} if (href := getattr(component, "href", None)) else set()
    children = component if isinstance(component, list) else getattr(component, "children", None)
    below = children if isinstance(children, list) else [children] if children else []
    return found.union(*map(hrefs, below)) if below else found


def said(component: Any) -> str:
    return " ".join(texts(component))


def test_a_finding_is_told_from_what_to_how_to_fix() -> None:
    told = said(about(small(), resolve(small(), "?finding=COR001.1")))

    order = [
        "mix-on-occupied-group",
        "evidence",
        "why, as recorded",
        "state before",
        "how to fix",
    ]
    places = [told.index(part) for part in order]
    assert places == sorted(places)
    admitted = "admitted: the group's AIC is free, core-group needs 3, 2 available, held by push"
    assert admitted in told
    assert "qk_pv 7/8" in told


def test_the_state_before_and_after_names_what_ran_on_every_core_of_the_group() -> None:
    told = said(about(small(), resolve(small(), "?finding=COR001.1")))

    _, _, state = told.partition("state before")
    assert "AIC idle qk_pv 7/8" in state
    assert "AIV1 push 31/32 push 31/32" in state


def test_a_span_is_told_with_the_row_that_it_stands_for() -> None:
    told = said(about(small(), resolve(small(), "?sel=0@250000")))

    assert "D 3" in told
    assert "steps row 2" in told
    assert "token budget 256" in told


def test_a_marked_range_is_told_as_in_the_terminal() -> None:
    query = f"?sel=0@250000&mark=0..{2 * STEP_NS}&t=0..1000"
    resolved = resolve(small(), query)
    in_terminal = selection_blocks(resolved.selection, small().timeline, small().trace)

    told = said(about(small(), resolved))

    assert in_terminal[0] == Title("200 µs marked")
    assert "200 µs marked" in told
    assert "busy in it" in told
    assert "100.0%   engine, 2 spans" in told


def test_a_jump_to_a_finding_lets_go_of_the_mark_as_in_the_terminal() -> None:
    resolved = resolve(small(), "?finding=COR001.1&mark=0..100000")

    assert resolved.view.mark is None
    assert "mix-on-occupied-group" in said(about(small(), resolved))


def test_arguments_that_are_not_json_are_shown_as_they_are() -> None:
    spans = [{"ts_ns": 0, "dur_ns": 10, "track": "t", "name": "n", "args": "{not json"}]

    told = said(about(loaded := loaded_of(trace_of(spans=spans)), resolve(loaded, "?sel=0@5")))

    assert "{not json" in told


def test_the_step_shows_the_batch_and_the_state() -> None:
    told = said(step_pane(small(), resolve(small(), "?step=2").view))

    assert "3 of 6" in told
    assert "running · 3 req-0 req-1 req-2" in told
    assert "0 prefill + 3 decode = 3 of 256" in told


def test_why_who_is_asked_about_waits_is_told_with_links_to_the_rows_that_prove_it() -> None:
    pane = step_pane(small(), resolve(small(), "?step=2&who=req-0").view)

    assert "why req-0 req-0: " in said(pane)
    assert "1 → step 2 req-0 runs in step 2" in said(pane)
    assert "?tab=step&seq=18" in hrefs(pane)
    assert resolve(small(), "?tab=step&seq=18").view.step == 2
    assert "?who=" in hrefs(pane), "it closes"


def test_names_in_the_queues_lead_to_why() -> None:
    pane = step_pane(small(), resolve(small(), "?step=2").view)

    assert "?tab=step&who=req-1" in hrefs(pane)
    assert "why" not in said(pane)


def test_a_name_that_the_trace_does_not_have_is_not_asked_about() -> None:
    pane = step_pane(small(), resolve(small(), "?step=2&who=%3Cb%3E").view)

    assert "why" not in said(pane)


def test_without_steps_the_drawer_shows_the_cores_at_what_is_selected() -> None:
    blocks = [part(number, 0, number * 10_000, number * 10_000 + 5_000) for number in range(2)]
    loaded = loaded_of(trace_of(core_spans=blocks))

    first = said(step_pane(loaded, resolve(loaded, "").view))
    between = said(step_pane(loaded, resolve(loaded, "?sel=0@7000").view))

    assert "This trace has no steps; this is at 0.000 ms." in first
    assert "cores running 1 of 1" in first
    assert "cores running 0 of 1" in between
    assert "The trace does not record batches." in first


def test_findings_are_listed_worst_first_with_the_current_one_marked() -> None:
    loaded = small()
    pane = findings_pane(loaded, resolve(loaded, "?finding=COR001.1").view)

    found = [SEVERITIES.index(each.severity) for each in loaded.findings.values()]
    marked = [line for line in pane.children if "current" in line.className]
    assert len(pane.children) == len(loaded.findings)
    assert found == sorted(found)
    assert ["qk_pv 7/8 took" in said(line) for line in marked] == [True]


def test_a_clean_trace_says_how_many_rules_looked() -> None:
    clean = loaded_of(trace_of(core_spans=[part(1, 1, 0, 9)]))

    assert said(findings_pane(clean, View())).startswith("Nothing was found: ")
    assert " rules could judge; record steps for up to " in said(findings_pane(clean, View()))


def test_where_no_rule_could_judge_nothing_is_said_to_be_found() -> None:
    counted = loaded_of(trace_of(spans=[{"span": 1, "track": "main", "name": "work"}]))

    assert said(findings_pane(counted, View())).startswith("No rule could judge what ran: ")
    assert "Findings ○" in said(layout(counted))


def test_a_table_is_shown_a_page_at_a_time() -> None:
    counters = [{"ts_ns": at, "name": "c", "value": float(at)} for at in range(PAGE_ROWS + 20)]
    loaded = loaded_of(trace_of(counters=counters))

    told = said(table_pane(loaded, View(table="counters", page=2)))

    assert "rows 101 to 120 of 120" in told


def test_a_page_beyond_the_last_is_the_last() -> None:
    assert "rows 1 to 6 of 6" in said(table_pane(small(), View(table="steps", page=9)))


def test_a_table_is_sorted_by_a_column_and_by_none_that_is_not_there() -> None:
    def first_step(sort: str) -> str:
        head, body = table_pane(small(), View(table="steps", sort=sort)).children[-1].children
        columns = [said(name).rstrip(" ▴▾") for name in head.children.children]
        return said(body.children[0].children[columns.index("step")])

    assert first_step("-step") == "5"
    assert first_step("step; drop table") == "0"


def test_a_query_is_answered() -> None:
    told = said(sql_pane(small(), View(sql="SELECT count(*) AS n FROM steps")))

    assert "1 row " in told
    assert told.split()[-1] == "6"


def test_a_query_that_does_not_run_is_told_why() -> None:
    faults = {
        "SELECT * FROM step": "did you mean",
        "SELEC": "does not run",
        "SELECT * FROM read_csv('secret.csv')": "is not allowed",
        "SELECT rpad(kind, 10000000000, 'x') FROM steps": "is not allowed",
    }

    panes = {query: said(sql_pane(small(), View(sql=query))) for query in faults}

    assert [query for query, fault in faults.items() if fault not in panes[query]] == []


def test_every_pane_stands_over_an_empty_trace() -> None:
    empty = loaded_of(trace_of())
    panes = (findings_pane, overview_pane, step_pane, table_pane, sql_pane)

    assert [pane.__name__ for pane in panes if not said(pane(empty, View()))] == []


def test_the_place_in_the_bar_says_that_it_is_the_middle_and_not_the_chosen_step() -> None:
    asked = {"t0": 0, "t1": 2 * STEP_NS}

    assert position(small(), asked) == "middle step 1, 2 of 6 · 0.1000 ms"


def test_an_answer_of_very_many_rows_is_cut_and_says_so() -> None:
    step = {"ts_ns": 1, "kind": "decode"}
    loaded = loaded_of(trace_of(steps=[{**step, "step": number} for number in range(400)]))

    told = said(sql_pane(loaded, View(sql="select a.step from steps a cross join steps b")))

    assert "more than 100,000 rows, the first 200" in told


def test_rules_that_could_not_judge_are_counted_by_family_and_listed_on_a_click() -> None:
    told = about(small(), resolve(small(), ""))

    clean, details = (each for each in told if isinstance(each, html.Details))
    codes = check(conflict_trace()).not_applicable
    assert "COR002" in said(clean)
    assert not {*codes} & {*said(clean).split()}
    assert vars(details)["open"] is False
    assert said(details).startswith(f"{len(codes)} rules: ")
    assert all(code in said(details) for code in codes)


@slow
def test_what_was_found_is_told_by_rule_with_its_name_the_worst_first() -> None:
    loaded = loaded_of(Trace.open(ROOT / "sample_traces" / "fcfs-preemption-before.trace"))

    told = said(about(loaded, resolve(loaded, "")))

    assert "✖ STV001 40 request-starved ▲ STV002 241 fcfs-inversion" in told


def test_a_long_name_of_a_file_goes_on_in_the_next_line_behind_what_joins_its_words() -> None:
    name = "vllm_cpu_tiny_llama_preemptions.json.gz"
    loaded = loaded_of(trace_of(steps=[{"step": 1, "ts_ns": 0, "kind": "decode"}], name=name))

    heading, *_ = about(loaded, resolve(loaded, ""))

    assert any(isinstance(each, html.Wbr) for each in heading.children)
    assert "".join(texts(heading)) == name
