"""BAT005: a token from an unfinished prefill, past the cap, or after the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat005_partial_token_leak import PartialTokenLeak
from stepscope.engine.requests.request import EOS_TOKEN
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, event
from tests.analyzers.serving_rows import chunk, row, token
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

EOS = {"engine": {"eos_token": 9}}


def leaks(
    *tokens: Row, rows: list[Row] | None = None, finish: Row | None = None, cap: int = 3
) -> list[Finding]:
    life = [event("a", "arrive", 0, max_tokens=cap), *([finish] if finish else [])]
    given: dict[str, Any] = {"batch_rows": rows} if rows else {}
    return PartialTokenLeak().check(trace_of(outputs=tokens, lifecycle=life, config=EOS, **given))


def test_a_token_of_a_chunk_that_does_not_end_its_prompt_is_found() -> None:
    rows = [chunk(1, "a", 8, final=False), chunk(2, "a", 4), chunk(2, "b", 4, final=False)]

    (found,) = leaks(token(1, "a", 0), token(2, "a", 1), rows=rows)

    assert (
        found.message
        == "1 token of 1 request is of an unfinished prompt: first a in step 1, token 1"
    )
    assert (found.request, found.ts_ns) == ("a", 20)


def test_a_token_that_is_written_a_step_late_belongs_to_the_step_that_sampled_it() -> None:
    rows = [chunk(1, "a", 8), chunk(2, "a", 4, final=False)]

    assert leaks(token(2, "a", 0, source_step=1), rows=rows) == []


def test_tokens_past_the_cap_are_found() -> None:
    (found,) = leaks(*(token(n, "a", n) for n in range(5)))

    assert found.message == (
        "2 tokens of 1 request are past their cap: first a in step 3, token 4 of at most 3"
    )


def test_tokens_of_requests_that_are_not_in_the_batch_are_another_rules() -> None:
    rows = [row(n, "a") for n in range(3)] + [row(3, "b")]

    assert leaks(*(token(n, "a", n) for n in range(4)), rows=rows) == []


def test_tokens_behind_the_end_are_found() -> None:
    (found,) = leaks(token(1, "a", 0, token=9), token(2, "a", 1, token=5))

    assert found.message == (
        "1 token of 1 request is behind the end of its output: first a in step 2, token 2 "
        "of at most 1"
    )


def test_an_end_that_is_told_to_be_a_cut_is_found() -> None:
    finish = event("a", "finish", 30)

    (found,) = leaks(token(1, "a", 0), token(2, "a", 1, token=9), finish=finish)

    assert "is the end of an output that is told to be cut" in found.message
    assert (
        leaks(token(1, "a", 0), token(2, "a", 1, token=9), finish=finish | {"cause": "eos"}) == []
    )


def test_placeholders_are_not_tokens() -> None:
    assert leaks(*(token(n, "a", n, is_placeholder=True) for n in range(5))) == []


def test_without_an_idea_of_what_ends_an_output_nothing_is_said_of_ends() -> None:
    rows = [token(n, "a", n, token=2) for n in range(3)]

    assert PartialTokenLeak().check(trace_of(outputs=rows)) == []


@looped(
    ("fault", "count", "says"),
    [
        ("token-past-cap", 6, "past their cap"),
        ("token-after-eos", 27, "behind the end of their output"),
        ("cap-before-eos", 3, "told to be cut"),
    ],
)
def test_faults_of_ending_are_found(record: Record, fault: str, count: int, says: str) -> None:
    (found,) = PartialTokenLeak().check(record("slot-recycling", fault=fault))

    assert found.count == count
    assert says in found.message


@slow
@each_scenario
@looped("variant", ["before", "after"])
def test_sound_engines_are_clean(record: Record, scenario: str, variant: str) -> None:
    assert PartialTokenLeak().check(record(scenario, variant)) == []


def test_ends_and_caps_that_are_kept_are_clean(record: Record) -> None:
    assert PartialTokenLeak().check(record("slot-recycling", eos_after="5")) == []
    assert PartialTokenLeak().check(record("slot-recycling", eos_after="14")) == []


def test_the_reference_engine_declares_what_ends_an_output(record: Record) -> None:
    trace = record("slot-recycling", fault="token-after-eos")
    engine = {**trace.manifest.config["engine"], "eos_token": None}
    silent = replace(trace.manifest, config={**trace.manifest.config, "engine": engine})
    tables = {name: trace.table(name).collect() for name in ("outputs", "lifecycle")}

    assert trace.manifest.config["engine"]["eos_token"] == EOS_TOKEN
    assert PartialTokenLeak().check(Trace.from_tables(tables, silent)) == []
    assert len(PartialTokenLeak().check(Trace.from_tables(tables, trace.manifest))) == 1
