"""A query sees the tables of its trace, changes nothing, and has an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.mcp.tools import sql
from tests.app.mcp.asked import Asked
from tests.looped import looped
from tests.tiers import slow

TRACE = "fcfs-preemption-before.trace"


@looped(
    "query",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from READ_PARQUET('sample_traces/*')",
        "select * from scan_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        'select * from "/etc/passwd"',
        "attach '/etc/passwd' as p",
        "copy steps to 'out.csv'",
        "install httpfs",
        "pragma database_list",
        "drop table steps",
        "delete from steps",
        "insert into steps values (1)",
        "update steps set step = 0",
        "create table t as select 1",
        "truncate table steps",
        "select 1; drop table steps",
        "select lpad('x', 1000000000, 'y')",
        "select * from generate_series(1, 1000000000)",
        "select * from steps a, steps b, batch_rows c, batch_rows d, outputs e, outputs f",
        "select",
        "\0",
        "select getenv('HOME')",
        "select * from pg_catalog.pg_tables",
        "select * from polars.steps",
    ],
)
def test_what_is_no_question_about_the_trace_is_refused_in_a_line(
    samples: Asked, query: str
) -> None:
    said = samples.refusal("sql", trace=TRACE, query=query)

    assert "Traceback" not in said
    assert "root:" not in said


def test_the_trace_is_as_it_was_after_all_of_it(samples: Asked, sample_traces: Path) -> None:
    files = {file: file.stat().st_mtime_ns for file in sample_traces.rglob("*") if file.is_file()}

    samples.refusal("sql", trace=TRACE, query="drop table steps")
    page = samples.page("sql", trace=TRACE, query="select count(*) from steps")

    assert page.values["data"]["rows"] == [[88]]
    assert files == {
        file: file.stat().st_mtime_ns for file in sample_traces.rglob("*") if file.is_file()
    }


def test_a_query_that_takes_too_long_is_given_up(
    samples: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "SECONDS", 0.0001)
    query = (
        "select a.step, sum(b.token) from outputs a join outputs b on a.rank = b.rank group by 1"
    )

    assert "was given up after" in samples.refusal("sql", trace=TRACE, query=query)


def test_pages_of_a_query_without_an_order_are_of_one_answer(samples: Asked) -> None:
    query = "select request, count(*) n from batch_rows group by request"

    shown = [
        row[0]
        for page in samples.pages("sql", trace=TRACE, query=query, limit=7)
        for row in page.values["data"]["rows"]
    ]

    assert len(shown) == len(set(shown)) == 31


@slow
def test_a_very_long_answer_says_what_is_left_out(samples: Asked) -> None:
    query = "select a.step from outputs a join outputs b on a.step = b.step"

    page = samples.page("sql", trace=TRACE, query=query, limit=1)

    assert page.values["rows"]["of"] == sql.MOST_ROWS
    assert any("rows behind the first 10,000" in told for told in page.values["left_out"])


@looped(
    ("query", "lacking"),
    [
        ("select count(*) from core_spans", "the table core_spans, which has no row"),
        (
            "select sum(reserve_ratio) from steps",
            "the column steps.reserve_ratio, which no row tells",
        ),
        ("select sum(num_draft) from batch_rows", None),
    ],
)
def test_a_zero_over_what_is_not_recorded_is_said_to_be_none(
    samples: Asked, query: str, lacking: str | None
) -> None:
    page = samples.page("sql", trace=TRACE, query=query)

    told = [each["what"] for each in page.values["not_recorded"]]
    assert lacking is None or lacking in told
